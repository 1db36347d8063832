"""Opens the store that the setting `store` names, and the shared cache beside it."""

import os
import sqlite3
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
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


async def open_store(
    url: config.StoreUrl, clock: Clock, environ: Mapping[str, str] = os.environ, *, reads_only: bool = False
) -> Store:
    """Open a store, to be closed by the caller; `reads_only`: a file is also read on a full disk. Raises ConfigError.
    Redis is connected to when it is first needed."""
    text = url.reveal()
    if text == "memory:":
        return MemoryStore(clock)
    if (file := _usable_file(url, environ)) is not None:
        return await SqliteStore.open(file, clock, reads_only=reads_only)
    try:
        # Imported here only: the package is an extra (redis).
        from proxy.stores.redis import RedisStore
    except ImportError as error:
        raise errors.ConfigError(REDIS_MISSING) from error
    return RedisStore(text, clock)


def open_cache(
    url: config.StoreUrl, size: int, lease: float, clock: Clock, environ: Mapping[str, str] = os.environ
) -> CacheStore | None:
    """Open the shared cache of `size` bytes, to be closed by the caller; None for a store in memory, which nobody
    shares. Files and Redis are used when first needed; `lease`: seconds that a claim outlives its owner at most. Raises
    ConfigError."""
    text = url.reveal()
    if text == "memory:":
        return None
    if (file := _usable_file(url, environ)) is not None:
        return cache_file.CacheFile(cache_file.beside(file), size, clock)
    try:
        from proxy.stores.redis import RedisCache
    except ImportError as error:
        raise errors.ConfigError(REDIS_MISSING) from error
    return RedisCache(text, size, lease, clock)


def _usable_file(url: config.StoreUrl, environ: Mapping[str, str]) -> Path | None:
    """Return the file of an SQLite store, whose folder exists; None for another store. Raises ConfigError."""
    file = store_place.file_of(url, environ)
    if file is None:
        return None
    if (folder := store_place.missing_folder(file, environ)) is not None:
        # A mistyped path, or a disk that is not mounted: the usage in the ledger would begin from zero.
        raise errors.ConfigError(
            f"store: the folder of {file} does not exist, and a new store would know no usage; mount its disk, or make "
            f"the folder: {store_place.make_command(folder)}"
        )
    sqlite_schema.make_folders(file)
    return file
