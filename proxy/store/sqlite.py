"""Store in SQLite: a file for the processes of a machine, or memory for one.

Statements run in the thread of the event loop: in another one they would take twice the CPU. Checkpoints, which wait
for the disk, have a thread.
"""
# ruff: noqa: S608 - only names of tables and columns are put into statements

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from proxy import errors
from proxy.kit.clock import Clock
from proxy.store.protocol import Finish
from proxy.store.rows import FETCHED, TABLES, Key, Kind, Transaction
from proxy.store.sqlite_file import LOG_BYTES, RESTORE, StoreFile
from proxy.store.store import Store

R = TypeVar("R")

VERSION = 5
APPLICATION = 0x76334272  # by which a file is recognized, whatever its version
BUSY_SECONDS, RETRY_SECONDS = 5.0, 0.001  # to wait for another process's transaction, and between two attempts
CHECKPOINT_BYTES = 8 * 2**20  # written to the write-ahead log, after which its pages are moved to the file
CHECKPOINT_ROUNDS = 10  # at most, while writers go on
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
ROW_BYTES = 2**10  # about what a row writes beside its texts

_INDEXES = ("part_id ON part (id)", "part_fetched ON part (fetched)", "result_fetched ON result (fetched)")
# Eight of the oldest parts and results: deleted at a time.
_OLDEST = "SELECT max(fetched) FROM (SELECT fetched FROM part UNION ALL SELECT fetched FROM result ORDER BY 1 LIMIT 8)"


def _where(kind: Kind, length: int) -> str:
    """Return the condition by the first columns of a table."""
    return " AND ".join(f"{column} = ?" for column in kind._fields[:length])


_GET = {kind: f"SELECT * FROM {name} WHERE {_where(kind, length)}" for kind, (name, length, _) in TABLES.items()}
_DROP = {kind: f"DELETE FROM {name} WHERE {_where(kind, length)}" for kind, (name, length, _) in TABLES.items()}
_PUT = {kind: f"REPLACE INTO {name} VALUES (?{', ?' * (len(kind._fields) - 1)})" for kind, (name, *_) in TABLES.items()}
_ADD = """
INSERT INTO usage VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET used = max(0, used + excluded.used),
uncertain = max(0, uncertain + excluded.uncertain), reserved = max(0, reserved + excluded.reserved)
"""


class SqliteStore(Store):
    """Store in a file or in memory. Made by `open`."""

    def __init__(self, path: Path | None, clock: Clock, worker: str, cache_bytes: int) -> None:
        super().__init__(worker, cache_bytes)
        self._clock = clock
        self._written = 0  # bytes since the last checkpoint
        self._room = 0  # bytes that may be written until the used ones are counted again
        self._damage = ""  # what SQLite has found, perhaps in pages that others have still in memory
        self._checkpoint: asyncio.Future[None] | None = None
        with contextlib.ExitStack() as stack:
            try:
                self._file = StoreFile(path)
                stack.callback(self._file.close)
                connection = stack.enter_context(contextlib.closing(_connect(self._file.name)))
                self._execute, self._many = connection.execute, connection.executemany
                (mode,) = self._execute("PRAGMA journal_mode = WAL").fetchone()
            except (OSError, sqlite3.Error) as error:
                raise errors.StoreUnavailable(f"{path} cannot be opened: {error}") from error
            if mode not in ("wal", "memory"):
                raise errors.StoreUnavailable(f"{path}: its disk cannot have SQLite's WAL mode; name another place")
            self._thread = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="store checkpoint"))
            self._opened = stack.pop_all()  # closed in reverse: the file before its lock

    @classmethod
    async def open(cls, path: Path | None, clock: Clock, worker: str, cache_bytes: int) -> "SqliteStore":
        """Open the store in a file, which is made where it is missing, or in memory (None). If no other process uses
        it, what is reserved becomes uncertain usage. Raises StoreUnavailable."""
        store = cls(path, clock, worker, cache_bytes)
        try:
            await store._run(store._make_tables)
            if store._file.is_alone:
                await store.end_worker(None)
            store._file.share()
            store._execute("PRAGMA busy_timeout = 0")  # from now on the event loop goes on while this process waits
        except BaseException:
            await store._close()
            raise
        return store

    def _make_tables(self, _rows: Transaction) -> None:
        """Make the tables that are missing. Of those of another version usage stays, where all that was reserved is
        uncertain."""
        tables = {name for (name,) in self._execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and self._pragma("application_id") != APPLICATION:
            raise errors.StoreUnavailable(f"{self._file.name} has other tables than the store's; name another file")
        if self._pragma("user_version") == VERSION:
            return
        if tables and not self._file.is_alone:
            raise errors.StoreUnavailable(f"{self._file.name} is used by another version of v3bridge; stop that first")
        for name in tables - {"usage", "sqlite_sequence"}:
            self._execute(f"DROP TABLE {name}")
        for kind, (name, length, _) in TABLES.items():
            columns, key = ", ".join(kind._fields), ", ".join(kind._fields[:length])
            order = "" if kind in FETCHED else "WITHOUT ROWID"  # in the order of keys, unless rows are large
            self._execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY ({key})) {order}")
        for index in _INDEXES:
            self._execute(f"CREATE INDEX {index}")
        self._execute("UPDATE usage SET uncertain = uncertain + reserved, reserved = 0")
        self._execute(f"PRAGMA application_id = {APPLICATION}")
        self._execute(f"PRAGMA user_version = {VERSION}")

    async def _close(self) -> None:
        if self._checkpoint is not None:
            await self._checkpoint
        self._opened.close()

    async def finish(self, finishes: Sequence[Finish]) -> None:
        try:
            await super().finish(finishes)
        except errors.StoreUnavailable:
            if not any(finish.results for finish in finishes):
                raise
            # The disk may have room for the usage, if not for the results.
            await super().finish([finish._replace(results=()) for finish in finishes])

    async def _run(self, work: Callable[[Transaction], R], *, is_kept: bool = True) -> R:
        if self._damage:
            raise errors.StoreUnavailable(self._damage)
        try:
            await self._begin()
            self._file.check()
            rows = Transaction(self._read, self._clock.now())
            result = work(rows)
            if is_kept:
                self._write(rows)
            self._execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):  # after some errors SQLite has rolled back itself
                self._execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                self._file.check()  # which may be the reason
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
                    self._damage = f"{self._file.name} is damaged ({error}); {RESTORE}"
                raise errors.StoreUnavailable(self._damage or f"the store (SQLite) cannot be used: {error}") from error
            raise
        if self._written > CHECKPOINT_BYTES and self._file.path and (not self._checkpoint or self._checkpoint.done()):
            self._written = 0
            self._checkpoint = asyncio.get_running_loop().run_in_executor(self._thread, _move_pages, self._file.name)
        return result

    async def _begin(self) -> None:
        """Begin a transaction that may write at once: one that reads first would fail at its first write, had another
        process written meanwhile."""
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    def _read(self, kind: Kind, key: Key, times: Key = (), *, is_id: bool = False) -> Any:
        table, length, time = TABLES[kind]
        if is_id:
            return self._execute("SELECT * FROM part WHERE scope = ? AND id = ?", key).fetchone()
        if times:
            names = ", ".join(kind._fields[:length]) if kind in FETCHED else "*"
            return self._execute(f"SELECT {names} FROM {table} WHERE {time} BETWEEN ? AND ? LIMIT ?", times).fetchall()
        if len(key) < length:
            return self._execute(f"SELECT * FROM {table} WHERE {_where(kind, len(key)) or 'TRUE'}", key).fetchall()
        return self._execute(_GET[kind], key).fetchone()

    def _write(self, rows: Transaction) -> None:
        """Write what was changed, and delete the oldest parts and results beyond the bound."""
        written = 0
        for kind, changed in rows.changed.items():
            kept = [row for row in changed.values() if row is not None]
            self._many(_PUT[kind], kept)
            if len(kept) < len(changed):
                self._many(_DROP[kind], [key for key, row in changed.items() if row is None])
            bodies = sum(len(row[-1] or b"") for row in kept) if kind in FETCHED else 0  # and details
            written += ROW_BYTES * len(changed) + bodies
        self._many(_ADD, [(*pair, *added) for pair, added in rows.added.items()])
        self._written += written
        self._room -= written
        while self._room < 0:
            pages = self._pragma("page_count") - self._pragma("freelist_count")
            free = self._cache_bytes - self._pragma("page_size") * pages
            oldest = self._execute(_OLDEST).fetchone() if free < 0 else (None,)
            if oldest[0] is None:
                self._room = max(0, min(free, self._cache_bytes // 64))
            for kind in FETCHED:
                self._execute(f"DELETE FROM {TABLES[kind][0]} WHERE fetched <= ?", oldest)

    def _pragma(self, name: str) -> int:
        return int(self._execute(f"PRAGMA {name}").fetchone()[0])


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    # The log keeps its size: a writer that makes it longer waits for the checkpoint's fsync (p99 6 ms instead of 1.4).
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
    return connection


def _move_pages(name: str) -> None:
    """Move the pages of the write-ahead log to the file, until it has all: the next transaction then begins the log
    anew. Writers go on meanwhile, and wait only if they write faster than pages are moved."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_connect(name)) as connection:
        before = -1
        for _ in range(CHECKPOINT_ROUNDS):
            _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if pages == before:  # nothing was written meanwhile
                return
            before = pages
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
