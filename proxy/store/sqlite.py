"""Store in SQLite: a file for the processes of a machine, or memory for one.

Statements run in the thread of the event loop: in another one they would take twice the CPU. Checkpoints, which wait
for the disk, have a thread.
"""
# ruff: noqa: S608 - only names of tables and columns are put into statements

import asyncio
import contextlib
import functools
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from proxy import errors
from proxy.kit.clock import Clock
from proxy.store.protocol import Finish
from proxy.store.rows import TABLES, Key, Kind, PartRow, Row, Rows
from proxy.store.sqlite_file import LOG_BYTES, RESTORE, StoreFile
from proxy.store.store import Store

R = TypeVar("R")

VERSION = 6
APPLICATION = 0x76334272  # by which a file is recognized, whatever its version
BUSY_SECONDS, RETRY_SECONDS = 5.0, 0.001  # to wait for another process's transaction, and between two attempts
CHECKPOINT_BYTES = 8 * 2**20  # written to the write-ahead log, after which its pages are moved to the file
CHECKPOINT_ROUNDS = 10  # at most, while writers go on
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
ROW_BYTES = 2**10  # about what a row writes beside its body

_INDEXES = "part_id ON part (id) WHERE id IS NOT NULL", "part_fetched ON part (fetched)"
_USED_BYTES = """
SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
_DROP_OLDEST = "DELETE FROM part WHERE rowid IN (SELECT rowid FROM part ORDER BY fetched LIMIT 8)"
_PUT = {kind: f"REPLACE INTO {name} VALUES (?{', ?' * (len(kind._fields) - 1)})" for kind, (name, *_) in TABLES.items()}
_ADD = """
INSERT INTO usage VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET used = max(0, used + excluded.used),
uncertain = max(0, uncertain + excluded.uncertain), reserved = max(0, reserved + excluded.reserved)
"""


@functools.cache
def _statement(verb: str, kind: Kind, length: int) -> str:
    """Return a statement about the rows of a table whose first columns are given."""
    condition = " AND ".join(f"{column} = ?" for column in kind._fields[:length])
    return f"{verb} FROM {TABLES[kind][0]} WHERE {condition or 'TRUE'}"


@dataclass(kw_only=True)
class SqliteRows(Rows):
    """Rows of the tables."""

    execute: Callable[..., sqlite3.Cursor]

    def find(self, kind: type[Row], key: Key) -> Iterator[Row]:
        return map(kind._make, self.execute(_statement("SELECT *", kind, len(key)), key))

    def timed(self, kind: Kind, first: float, last: float, most: int = -1) -> list[Key]:
        table, length, time = TABLES[kind]
        names = ", ".join(kind._fields[:length])
        found = f"SELECT {names} FROM {table} WHERE {time} BETWEEN ? AND ? LIMIT ?"
        return self.execute(found, (first, last, most)).fetchall()

    def uids(self, scope: str, id: str) -> list[str]:
        return [uid for (uid,) in self.execute("SELECT name FROM part WHERE scope = ? AND id = ?", (scope, id))]


class SqliteStore(Store):
    """Store in a file or in memory. Made by `open`."""

    def __init__(
        self, path: Path | None, clock: Clock, worker: str, cache_bytes: int, resources: contextlib.AsyncExitStack
    ) -> None:
        super().__init__(worker, cache_bytes)
        self._clock = clock
        self._written = 0  # about the bytes that were, since the start
        self._checkpoint_at = CHECKPOINT_BYTES  # when so many are, the write-ahead log is moved to the file
        self._count_at = 0  # when so many are, the used bytes are counted again
        self._damage = ""  # what SQLite has found, perhaps in pages that others have still in memory
        self._checkpoint: asyncio.Future[None] | None = None
        try:
            self._file = StoreFile(path, resources)
            self._connection = resources.enter_context(contextlib.closing(_connect(self._file.name)))
            self._execute = self._connection.execute
            tables = self._execute("SELECT name FROM sqlite_master").fetchone()
            if tables and self._execute("PRAGMA application_id").fetchone() != (APPLICATION,):
                raise errors.StoreUnavailable(f"{path} has other tables than the store's; name another file")
            (mode,) = self._execute("PRAGMA journal_mode = WAL").fetchone()  # which changes the file
        except (OSError, sqlite3.Error) as error:
            folder = "it needs a folder that this user may write to"
            reason = f"{error.strerror}; {folder}" if isinstance(error, OSError) else error
            raise errors.StoreUnavailable(f"{path} cannot be opened: {reason}") from error
        if mode not in ("wal", "memory"):
            raise errors.StoreUnavailable(f"{path}: its disk cannot have SQLite's WAL mode; name another place")
        self._thread = resources.enter_context(ThreadPoolExecutor(1, thread_name_prefix="store checkpoint"))

    @classmethod
    async def open(cls, path: Path | None, clock: Clock, worker: str, cache_bytes: int) -> "SqliteStore":
        """Open the store in a file, which is made where it is missing, or in memory (None). If no other process uses
        it, what is reserved becomes uncertain usage. Raises StoreUnavailable."""
        async with contextlib.AsyncExitStack() as resources:
            store = cls(path, clock, worker, cache_bytes, resources)
            await store._run(store._make_tables)
            if store._file.is_alone:
                await store.end_worker(None)
            store._file.share()
            store._execute("PRAGMA busy_timeout = 0")  # from now on the event loop goes on while this process waits
            store._resources = resources.pop_all()
        return store

    def _make_tables(self, _rows: SqliteRows) -> None:
        """Make the tables that are missing. Of those of another version usage stays, where all that was reserved is
        uncertain."""
        tables = {name for (name,) in self._execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        (version,) = self._execute("PRAGMA user_version").fetchone()
        if version == VERSION:
            return
        if tables and not self._file.is_alone:
            raise errors.StoreUnavailable(f"{self._file.name} is used by another version of v3bridge; stop that first")
        for name in tables - {"usage", "sqlite_sequence"}:
            self._execute(f'DROP TABLE "{name}"')
        for kind, (name, length, _) in TABLES.items():
            columns, key = ", ".join(kind._fields), ", ".join(kind._fields[:length])
            order = "" if kind is PartRow else "WITHOUT ROWID"  # in the order of keys, unless rows are large
            self._execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY ({key})) {order}")
        for index in _INDEXES:
            self._execute(f"CREATE INDEX {index}")
        self._execute("UPDATE usage SET uncertain = uncertain + reserved, reserved = 0")
        self._execute(f"PRAGMA application_id = {APPLICATION}")
        self._execute(f"PRAGMA user_version = {VERSION}")

    async def finish(self, finishes: Sequence[Finish]) -> None:
        try:
            await super().finish(finishes)
        except errors.StoreUnavailable:
            if not any(finish.results for finish in finishes):
                raise
            # The disk may have room for the usage, if not for the results.
            await super().finish([finish._replace(results=()) for finish in finishes])

    async def _run(self, work: Callable[[SqliteRows], R], *, is_kept: bool = True) -> R:
        if self._damage:
            raise errors.StoreUnavailable(self._damage)
        try:
            await self._begin()
            self._file.check()
            rows = SqliteRows(now=self._clock.now(), execute=self._execute)
            result = work(rows)
            if is_kept:
                self._write(rows)
            self._execute("COMMIT" if is_kept else "ROLLBACK")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):  # after some errors SQLite has rolled back itself
                self._execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
                    self._damage = f"{self._file.name} is damaged ({error}); {RESTORE}"
                raise errors.StoreUnavailable(self._damage or f"the store (SQLite) cannot be used: {error}") from error
            raise
        is_due = self._file.path and self._written > self._checkpoint_at
        if is_due and (self._checkpoint is None or self._checkpoint.done()):
            self._checkpoint_at = self._written + CHECKPOINT_BYTES
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

    def _write(self, rows: SqliteRows) -> None:
        """Write what a transaction has changed, and delete the oldest parts and results beyond the bound."""
        for (kind, key), row in rows.writes.items():
            if row is None:
                self._execute(_statement("DELETE", kind, len(key)), key)
            else:
                self._execute(_PUT[kind], row)
                self._written += ROW_BYTES + (len(row[-1]) if kind is PartRow else 0)
        self._connection.executemany(_ADD, rows.added.values())
        while self._written > self._count_at:
            (used,) = self._execute(_USED_BYTES).fetchone()
            free = self._cache_bytes - used
            if free >= 0 or not self._execute(_DROP_OLDEST).rowcount:
                self._count_at = self._written + max(0, min(free, self._cache_bytes // 64))


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, timeout=BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    # The log keeps its size: a writer that makes it longer waits for the checkpoint's fsync.
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
