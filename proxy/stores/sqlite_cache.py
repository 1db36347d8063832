"""Shared response cache in an SQLite file beside the store: for the workers of one machine, and kept across restarts.

A file of its own, because a cache wants the opposite of a ledger: no durability, many writes, and deletion when it is
damaged. Reads have a connection and a thread of their own, so that they wait for no write.

A claim is a lock on one byte of a second file, at an offset made of the key: a system call of a microsecond instead of
a transaction, and the kernel releases it when its owner dies, however that happens.
"""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import struct
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import structlog

from proxy import errors
from proxy.kit.clock import Clock
from proxy.stores import sqlite_schema
from proxy.stores.protocols import CacheLookup, CacheRecord, CacheUsage

VERSION = 1
SUFFIX, CLAIMS_SUFFIX = ".cache", ".claims"
KEPT_MAX = 86_400.0  # seconds: an entry that ends later was stored before the clock was set back
WAL_BYTES = 4_194_304  # that the file with new pages keeps on the disk between large transactions
EVICTED = 32  # entries that are deleted at a time to make room
EXPIRED = 1000  # expired entries that are deleted in one transaction, so that other workers do not wait for long

_SCHEMA = """
CREATE TABLE entries (key BLOB PRIMARY KEY, application TEXT NOT NULL, stored REAL NOT NULL, until REAL NOT NULL,
    content BLOB NOT NULL)
"""
_BY_END = "CREATE INDEX IF NOT EXISTS entries_by_end ON entries (until)"
_OLDEST = "SELECT rowid FROM entries ORDER BY rowid LIMIT ?"
_LOCK = struct.Struct("hhqqi0q")  # struct flock on 64-bit Linux: type, whence, start, length, process

R = TypeVar("R")

log = structlog.get_logger()


class SqliteCache:
    """Cache of at most about `size` bytes beside the store's file. The files are opened when they are first needed."""

    def __init__(self, store: Path, size: int, clock: Clock) -> None:
        self._path = store.with_name(store.name + SUFFIX)
        self._size = size
        self._clock = clock
        self._reader = _Connection(self._path, "cache reads", query_only=True)
        self._writer = _Connection(self._path, "cache writes", query_only=False)
        self._claims: _Claims | None = None

    async def look_up(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup]:
        # Claimed before they are read: an owner releases a key after its entry is there, so that a key that can be
        # claimed has its final entry. The other order would miss what is stored in between.
        claimed: set[bytes] = set()
        marks = ",".join("?" * len(keys))
        statement = f"SELECT key, stored, content FROM entries WHERE key IN ({marks})"  # noqa: S608 - marks only
        try:
            claimed.update(key for key in keys if claim and self._claim(key))
            rows = await self._reader.run(lambda connection: connection.execute(statement, keys).fetchall())
        except BaseException:
            self._release(claimed)
            raise
        fresh = {key for key, stored, _ in rows if stored >= fresh_from}
        self._release(claimed & fresh)
        contents = {key: content for key, _, content in rows}
        return [CacheLookup(contents.get(key), key in claimed and key not in fresh) for key in keys]

    async def put(self, records: Sequence[CacheRecord]) -> None:
        try:
            await self._writer.run(lambda connection: self._put(connection, records))
        finally:
            self._release(record.key for record in records)

    async def release(self, keys: Sequence[bytes]) -> None:
        self._release(keys)

    async def cache_usage(self) -> list[CacheUsage]:
        statement = (
            "SELECT application, count(*), sum(length(content)), min(stored), max(stored) FROM entries "
            "GROUP BY application ORDER BY application"
        )
        rows = await self._reader.run(lambda connection: connection.execute(statement).fetchall())
        return [CacheUsage(*row) for row in rows]

    async def clear(self, application: str | None) -> int:
        return await self._writer.run(lambda connection: _clear(connection, application))

    async def aclose(self) -> None:
        await self._reader.close()
        await self._writer.close()
        if self._claims is not None:
            self._claims.close()
            self._claims = None

    def _claim(self, key: bytes) -> bool:
        try:
            if self._claims is None:
                self._claims = _Claims(self._path.with_name(self._path.name + CLAIMS_SUFFIX))
            return self._claims.lock(key)
        except OSError as error:
            raise errors.StoreUnavailable(f"the shared cache cannot be used: {error.strerror}") from error

    def _release(self, keys: Iterable[bytes]) -> None:
        if self._claims is not None:
            for key in keys:
                self._claims.unlock(key)

    def _put(self, connection: sqlite3.Connection, records: Sequence[CacheRecord]) -> None:
        """Store entries, and delete some that have expired; without entries to store, all that have."""
        while self._put_some(connection, records) == EXPIRED and not records:
            pass

    def _put_some(self, connection: sqlite3.Connection, records: Sequence[CacheRecord]) -> int:
        now = self._clock.now()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", records)
        expired = "SELECT rowid FROM entries WHERE until <= ? OR until > ? LIMIT ?"
        deleted = connection.execute(
            f"DELETE FROM entries WHERE rowid IN ({expired})",  # noqa: S608 - no input
            (now, now + KEPT_MAX, EXPIRED),
        ).rowcount
        # A replaced row gets a new number: the smallest numbers are those of the oldest entries.
        while _used_bytes(connection) > self._size:
            delete = f"DELETE FROM entries WHERE rowid IN ({_OLDEST})"  # noqa: S608 - no input
            if not connection.execute(delete, (EVICTED,)).rowcount:
                break
        connection.execute("COMMIT")
        return deleted


class _Connection:
    """Connection to the cache file in a thread of its own. Begins a new file where the old one is damaged or gone."""

    def __init__(self, path: Path, name: str, *, query_only: bool) -> None:
        self._path = path
        self._query_only = query_only
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._closed = False

    async def run(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Run `work` in the thread; a second time, with a new file, if the file turns out to be damaged."""
        if self._closed:
            raise errors.StoreUnavailable("the shared cache is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._in_thread, work)
        except (sqlite3.Error, OSError, errors.ConfigError) as error:
            raise errors.StoreUnavailable(f"the shared cache (SQLite) cannot be used: {error}") from error

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            self._thread.shutdown()

    def _in_thread(self, work: Callable[[sqlite3.Connection], R]) -> R:
        try:
            return work(self._opened())
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                self._close()  # which rolls back
                raise
            self._discard(error)
            return work(self._opened())

    def _opened(self) -> sqlite3.Connection:
        # SQLite goes on with a file that has been deleted or replaced, where nobody else would find the entries.
        if self._connection is not None and self._file != sqlite_schema.identity(self._path):
            self._close()
        if self._connection is None:
            sqlite_schema.make(self._path)
            self._file = sqlite_schema.identity(self._path)
            self._connection = sqlite3.connect(
                self._path, timeout=sqlite_schema.BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            _prepare(self._connection, self._path)
            if self._query_only:
                self._connection.execute("PRAGMA query_only = ON")
        return self._connection

    def _discard(self, error: sqlite3.Error) -> None:
        """Delete a damaged file, unless another connection has done so."""
        self._close()
        if self._file == sqlite_schema.identity(self._path):
            log.warning("shared cache deleted", file=str(self._path), exc_info=error)
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Claims:
    """Locks on the bytes of a file that stays empty. They belong to the open file (OFD locks): to this object, not to
    the process."""

    def __init__(self, path: Path) -> None:
        sqlite_schema.make(path)
        self._descriptor = os.open(path, os.O_RDWR)

    def lock(self, key: bytes) -> bool:
        """Claim a key; return False if another owner has it."""
        try:
            self._set(fcntl.F_WRLCK, key)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock(self, key: bytes) -> None:
        with contextlib.suppress(OSError):
            self._set(fcntl.F_UNLCK, key)

    def close(self) -> None:
        """Close the file, which releases every claim."""
        os.close(self._descriptor)

    def _set(self, kind: int, key: bytes) -> None:
        offset = int.from_bytes(key[:7], "big")
        if hasattr(fcntl, "F_OFD_SETLK"):
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _LOCK.pack(kind, os.SEEK_SET, offset, 1, 0))
        else:  # other systems: the lock belongs to the process, which is enough for the service
            command = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
            fcntl.lockf(self._descriptor, command, 1, offset)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Set the connection up; make the table in a new file, and empty a file of another version."""
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    sqlite_schema.write_ahead(connection, path)
    connection.execute("PRAGMA synchronous = OFF")  # a cache may lose everything in a power failure
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
        connection.execute("DROP TABLE IF EXISTS entries")
        connection.execute(_SCHEMA)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute(_BY_END)
    connection.execute("COMMIT")


def _is_damage(error: sqlite3.Error) -> bool:
    """Return whether only a new file helps; not so with a full disk or a busy file."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def _used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file that hold entries: counted in pages, which needs no sum over all entries."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)
    return (pages - free) * size


def _clear(connection: sqlite3.Connection, application: str | None) -> int:
    """Delete entries, and give their space back to the disk."""
    deleted = connection.execute("DELETE FROM entries WHERE ?1 IS NULL OR application = ?1", (application,)).rowcount
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    return deleted
