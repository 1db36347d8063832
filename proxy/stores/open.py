"""Opens the usage ledger beside the store that the setting `store` names, and the shared cache beside it."""

import sqlite3
import weakref
from collections.abc import Callable
from typing import TypeVar

from proxy import config, errors
from proxy.config import store_place
from proxy.kit import extras
from proxy.kit.clock import Clock
from proxy.stores import cache_file, sqlite, sqlite_schema
from proxy.stores.protocols import CacheStore, Store
from proxy.stores.sqlite import SqliteStore

R = TypeVar("R")


class MemoryStore(sqlite.SqlStore):
    """Store in memory, lost when the process ends: for trials and tests. Nothing is awaited: memory is
    quick, and every operation is atomic by itself."""

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


REDIS_MISSING = f"store: Redis needs another package; {extras.install_line('redis')}"


async def open_store(url: config.StoreUrl, clock: Clock, *, reads_only: bool = False) -> Store:
    """Open a store, to be closed by the caller; `reads_only`: a file is also read on a full disk. Raises ConfigError.
    Redis is connected to when it is first needed."""
    text = url.reveal()
    if text == "memory:":
        return MemoryStore(clock)
    if (file := store_place.usable_file(url)) is not None:
        return await SqliteStore.open(store_place.core_file(file), clock, reads_only=reads_only)
    try:
        # Imported here only: the package is an extra (redis).
        from proxy.stores.redis import RedisStore
    except ImportError as error:
        raise errors.ConfigError(REDIS_MISSING) from error
    return RedisStore(text, clock)


def open_cache(url: config.StoreUrl, size: int, lease: float, clock: Clock) -> CacheStore | None:
    """Open the shared cache of `size` bytes, to be closed by the caller; None for a store in memory, which nobody
    shares. Files and Redis are used when first needed; `lease`: seconds that a claim outlives its owner at most. Raises
    ConfigError."""
    text = url.reveal()
    if text == "memory:":
        return None
    if (file := store_place.usable_file(url)) is not None:
        return cache_file.CacheFile(cache_file.beside(store_place.core_file(file)), size, clock)
    try:
        from proxy.stores.redis import RedisCache
    except ImportError as error:
        raise errors.ConfigError(REDIS_MISSING) from error
    return RedisCache(text, size, lease, clock)
