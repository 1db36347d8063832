"""Database of the SQLite store: its tables, its transactions, and its file with the lock beside it.

Only SQLite opens the file: to close any other descriptor of it drops SQLite's locks, and the next process that ends
deletes the write-ahead log under the others. Statements run in the thread of the event loop, checkpoints in their own.
"""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from proxy import errors

R = TypeVar("R")

VERSION = 1
APPLICATION = 0x76334272  # by which a file is recognized, whatever its version
LIBRARY = (3, 38)  # of SQLite: the first with ->>
BUSY_SECONDS, RETRY_SECONDS = 5.0, 0.001  # to wait for another process's transaction, and between two attempts
CHECKPOINT_BYTES = 8 * 2**20  # written to the write-ahead log, after which its pages are moved to the file
TRANSACTION_BYTES = 2**15  # about what a transaction writes beside the bodies of parts
CHECKPOINT_ROUNDS = 10  # at most, while writers go on

# A file of another version keeps these two tables, so they stay as they are.
_KEPT_SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (account TEXT, period TEXT, used INTEGER, uncertain INTEGER, reserved INTEGER,
    PRIMARY KEY (account, period)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reservation (id TEXT PRIMARY KEY, worker TEXT, accounts TEXT, parts INTEGER, deadline REAL,
    state TEXT) WITHOUT ROWID;
"""
_KEPT_TABLES = ("usage", "reservation")
_SCHEMA = """
CREATE TABLE busy (scope TEXT, key TEXT, reservation TEXT, PRIMARY KEY (scope, key)) WITHOUT ROWID;
CREATE INDEX busy_by_reservation ON busy (reservation);
CREATE TABLE result (scope TEXT, key TEXT, fetched REAL, asked INTEGER, hits INTEGER, items TEXT, details BLOB,
    PRIMARY KEY (scope, key));
CREATE INDEX result_by_age ON result (fetched);
CREATE TABLE part (scope TEXT, uid TEXT, id TEXT, digest TEXT, features INTEGER, fetched REAL, body BLOB,
    PRIMARY KEY (scope, uid));
CREATE INDEX part_by_id ON part (scope, id);
CREATE INDEX part_by_age ON part (fetched);
CREATE TABLE forgotten (number INTEGER);
INSERT INTO forgotten VALUES (0);
CREATE TABLE value (key TEXT PRIMARY KEY, value TEXT, since REAL, until REAL) WITHOUT ROWID;
CREATE TABLE seen (kind TEXT, day INTEGER, application TEXT, key TEXT, endpoint TEXT, user_agent TEXT, detail TEXT,
    requests INTEGER, last REAL, PRIMARY KEY (day, kind, application, key, endpoint, user_agent, detail));
CREATE INDEX seen_by_age ON seen (kind, last);
"""


class Database:
    """Connection to a file, which is made where it is missing, or to memory."""

    def __init__(self, path: Path | None) -> None:
        """Raise StoreUnavailable where the file cannot be opened."""
        self._path = path
        self._file = ":memory:" if path is None else str(path.resolve())
        self.written = 0  # bytes since the last checkpoint, which the user adds to
        self._lock = -1
        self._inode, self._bytes = (0, 0), 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store checkpoint")
        self._checkpoint: asyncio.Future[None] | None = None
        if sqlite3.sqlite_version_info < LIBRARY:
            raise errors.StoreUnavailable(f"SQLite is {sqlite3.sqlite_version}, and 3.38 or later is needed")
        try:
            if path is not None:
                self._inode = _make(path)
                self._lock = os.open(f"{self._file}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            self.rows = _connect(self._file)
        except (OSError, sqlite3.Error) as error:
            raise errors.StoreUnavailable(f"{path} cannot be opened: {error}") from error

    async def prepare(self, start_alone: Callable[[], None]) -> None:
        """Lock the use of the file, make the tables where they are missing or another version's, and call `start_alone`
        in a transaction if no other process uses the file. Raises StoreUnavailable."""
        alone = self._path is None or await self._lock_use()
        await self._retry(lambda: self.rows.execute("PRAGMA journal_mode = WAL"))
        if self._path is not None and self.rows.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            raise errors.StoreUnavailable(f"{self._path}: its disk cannot have SQLite's WAL mode; name another place")
        await self.transaction(self._make_tables)
        if alone:
            await self.transaction(start_alone)
        if self._path is not None:
            await self._retry(lambda: fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB))
        self.rows.execute("PRAGMA busy_timeout = 0")  # from now on the event loop goes on while this one waits

    async def transaction(self, work: Callable[[], R]) -> R:
        """Return what `work` returns, in a transaction. Raises StoreUnavailable; then nothing was changed."""
        # Immediate: one that reads first would fail at its first write, had another process written meanwhile.
        await self._retry(lambda: self.rows.execute("BEGIN IMMEDIATE"))
        try:
            self._check_file()
            changes = self.rows.total_changes
            result = work()
            self.rows.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):  # after some errors SQLite has rolled back itself
                self.rows.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise _unavailable(error) from error
            raise
        self.written += TRANSACTION_BYTES * (self.rows.total_changes > changes)
        if self.written > CHECKPOINT_BYTES and self._path and (self._checkpoint is None or self._checkpoint.done()):
            self.written = 0
            self._checkpoint = asyncio.get_running_loop().run_in_executor(self._thread, _move_pages, self._file)
        return result

    def used_bytes(self) -> int:
        """Return the bytes of all pages that are not free."""
        size, pages, free = (
            self.rows.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
        )
        return int(size * (pages - free))

    async def aclose(self) -> None:
        """Close the file, then unlock it."""
        if self._checkpoint is not None:
            await self._checkpoint
        self._thread.shutdown()
        self.rows.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def _lock_use(self) -> bool:
        """Lock the use of the file, and return whether this process is alone; else wait for one that is and starts."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await self._retry(lambda: fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB))
            return False
        return True

    async def _retry(self, work: Callable[[], object]) -> None:
        """Call what may have to wait for another process. Raises StoreUnavailable."""
        end = asyncio.get_running_loop().time() + BUSY_SECONDS
        while True:
            try:
                work()
            except (sqlite3.Error, OSError) as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                is_busy = code == sqlite3.SQLITE_BUSY or isinstance(error, BlockingIOError)
                if not is_busy or asyncio.get_running_loop().time() > end:
                    raise _unavailable(error) from error
            else:
                return
            await asyncio.sleep(RETRY_SECONDS)

    def _make_tables(self) -> None:
        application, version = (
            self.rows.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        tables = [name for (name,) in self.rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if tables and application != APPLICATION:
            raise errors.StoreUnavailable(f"{self._path} has other tables than the store's; name another file")
        if version == VERSION:
            return
        statements = [f"DROP TABLE {table}" for table in tables if table not in _KEPT_TABLES]
        statements += [*_KEPT_SCHEMA.split(";\n"), *_SCHEMA.split(";\n")]
        statements += [f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}"]
        for statement in statements:
            self.rows.execute(statement)

    def _check_file(self) -> None:
        """Raise StoreUnavailable where SQLite would go on with a file that is gone or not as it was written."""
        if self._path is None:
            return
        try:
            found = os.stat(self._path)
            os.stat(f"{self._file}-wal")
        except OSError as error:
            raise errors.StoreUnavailable(
                f"{error.filename} was deleted or cannot be reached ({error.strerror}); restart to begin a new file, "
                "and set the parts that are used with `v3bridge usage --set`"
            ) from error
        if (found.st_dev, found.st_ino) != self._inode:
            raise errors.StoreUnavailable(f"{self._path} was replaced; restart to use the new file")
        if found.st_nlink > 1:
            raise errors.StoreUnavailable(
                f"{self._path} has a second name (a hard link), by which a program would destroy it; delete that name"
            )
        if found.st_size < self._bytes:
            raise errors.StoreUnavailable(
                f"{self._path} was truncated; stop the service, restore the file from a backup, and start"
            )
        self._bytes = found.st_size


def _make(path: Path) -> tuple[int, int]:
    """Make the file if it is missing, for its owner only: it has tokens. SQLite gives the files beside it its mode.
    Return its device and inode."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))  # new: nobody has locked it
    found = path.stat()
    if found.st_mode & 0o077:
        path.chmod(0o600)
    return found.st_dev, found.st_ino


def _connect(file: str) -> sqlite3.Connection:
    rows = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
    rows.execute("PRAGMA synchronous = NORMAL")
    rows.execute("PRAGMA wal_autocheckpoint = 0")
    # The log keeps its size: a writer that makes it longer waits for the checkpoint's fsync (p99 6 ms instead of 1.4).
    rows.execute(f"PRAGMA journal_size_limit = {8 * CHECKPOINT_BYTES}")
    return rows


def _move_pages(file: str) -> None:
    """Move the pages of the write-ahead log to the file, until it has all: the next transaction then begins the log
    anew. Writers go on meanwhile, and wait only if they write faster than pages are moved."""
    with contextlib.closing(_connect(file)) as rows, contextlib.suppress(sqlite3.Error):
        before = -1
        for _ in range(CHECKPOINT_ROUNDS):
            _, pages, _ = rows.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if pages == before:  # nothing was written meanwhile
                return
            before = pages
        rows.execute("PRAGMA wal_checkpoint(RESTART)")


def _unavailable(error: Exception) -> errors.StoreUnavailable:
    return errors.StoreUnavailable(f"the store (SQLite) cannot be used: {error}")
