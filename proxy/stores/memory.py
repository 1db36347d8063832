"""Store in the memory of one process, lost when it ends: for trials and tests. An SQLite database without a file."""

import sqlite3
import weakref
from collections.abc import Callable
from typing import TypeVar

from proxy.kit.clock import Clock
from proxy.stores import sqlite, sqlite_schema

R = TypeVar("R")


class MemoryStore(sqlite.SqlStore):
    """Store on one connection. Nothing is awaited: memory is quick, and every operation is atomic by itself."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False), clock)
        sqlite_schema.create(self._connection)
        self._close = weakref.finalize(self, self._connection.close)

    def journal(self, owner: str) -> None:  # noqa: ARG002 - nothing here is slow, or durable
        return None

    async def check_writable(self) -> None:
        pass

    async def aclose(self) -> None:
        pass  # several gateways of a process use it after each other

    async def _transaction(self, begin: str, work: Callable[[sqlite3.Connection], R]) -> R:
        return sqlite.committed(self._connection, begin, work)
