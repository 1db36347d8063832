"""Database of the SQLite store: its tables, its transactions, and its file with the lock beside it.

Only SQLite opens the file: to close any other descriptor of it drops SQLite's locks, and the next process that ends
deletes the write-ahead log under the others. Statements run in the thread of the event loop, checkpoints in their own.
"""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from proxy import errors
from proxy.store.protocol import Usage
from proxy.store.rows import TABLES, Kind, PartRow, Reservation, ResultRow

R = TypeVar("R")

VERSION = 2
APPLICATION = 0x76334272  # by which a file is recognized, whatever its version
PAGE_BYTES = 8192  # large parts take fewer pages than by SQLite's default of 4096
BUSY_SECONDS, RETRY_SECONDS = 5.0, 0.001  # to wait for another process's transaction, and between two attempts
CHECKPOINT_BYTES = 8 * 2**20  # written to the write-ahead log, after which its pages are moved to the file
CHECKPOINT_ROUNDS = 10  # at most, while writers go on
LOG_BYTES = 8 * CHECKPOINT_BYTES  # to which SQLite shortens the write-ahead log when it begins anew
RESTORE = "stop the service, restore the file from a backup, and start"
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
APPENDED = (PartRow, ResultRow)
# These are appended, with numbers that rise in one sequence. A body has a table of its own, so that others
# are read quickly as a whole.
_APPENDED_TABLES = (
    "CREATE TABLE part (n INTEGER PRIMARY KEY, scope, uid, fetched, id, features)",
    "CREATE TABLE body (n INTEGER PRIMARY KEY, body)",
    "CREATE TABLE result (n INTEGER PRIMARY KEY AUTOINCREMENT, scope, key, fetched, asked, hits, items, details)",
)
# Their rows stay in a file of another version, so that columns stay, too; later ones are the last and have a default.
_KEPT = (Usage, Reservation)


class Database:
    """Connection to a file, which is made where it is missing, or to memory."""

    def __init__(self, path: Path | None) -> None:
        """Lock the use of the file: if no other process uses it, `is_alone`, and none can until `share`. Raises
        StoreUnavailable."""
        self._path = path
        self._file = ":memory:" if path is None else str(path.resolve())
        self.written = 0  # bytes since the last checkpoint, which the user adds to
        self.is_alone = True
        self._inode, self._bytes, self._log_bytes = [0, 0], 0, 0
        self._damage = ""  # what SQLite has found, perhaps in pages that others have still in memory
        self._checkpoint: asyncio.Future[None] | None = None
        with contextlib.ExitStack() as stack:
            try:
                if path is not None:
                    is_new, *self._inode = _make(path)
                    self._lock = os.open(f"{self._file}.lock", os.O_RDWR | os.O_CREAT, 0o600)
                    stack.callback(os.close, self._lock)
                    self.is_alone = _lock_use(self._lock)
                    if not (self.is_alone or is_new or path.stat().st_size):
                        raise errors.StoreUnavailable(f"{path} was truncated; {RESTORE}")
                self.rows = stack.enter_context(contextlib.closing(_connect(self._file)))
                self.rows.execute(f"PRAGMA page_size = {PAGE_BYTES}")
                (mode,) = self.rows.execute("PRAGMA journal_mode = WAL").fetchone()
            except (OSError, sqlite3.Error) as error:
                raise errors.StoreUnavailable(f"{path} cannot be opened: {error}") from error
            if mode not in ("wal", "memory"):
                raise errors.StoreUnavailable(f"{path}: its disk cannot have SQLite's WAL mode; name another place")
            self._thread = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="store checkpoint"))
            self._opened = stack.pop_all()  # closed in reverse: the file before its lock

    def share(self) -> None:
        """Let other processes use the file, and the event loop go on while this one waits for theirs."""
        if self._path is not None:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        self.rows.execute("PRAGMA busy_timeout = 0")

    async def transaction(self, work: Callable[[], R], *, is_kept: bool = True) -> R:
        """Do all of some work or nothing. Raises StoreUnavailable."""
        if self._damage:
            raise errors.StoreUnavailable(self._damage)
        try:
            await self._begin()
            self._check_file()
            result = work()
            self.rows.execute("COMMIT" if is_kept else "ROLLBACK")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):  # after some errors SQLite has rolled back itself
                self.rows.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                self._check_file()  # which may be the reason
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
                    self._damage = f"{self._path} is damaged ({error}); {RESTORE}"
                    raise errors.StoreUnavailable(self._damage) from error
                raise errors.StoreUnavailable(f"the store (SQLite) cannot be used: {error}") from error
            raise
        if self.written > CHECKPOINT_BYTES and self._path and (self._checkpoint is None or self._checkpoint.done()):
            self.written = 0
            self._checkpoint = asyncio.get_running_loop().run_in_executor(self._thread, _move_pages, self._file)
        return result

    def used_bytes(self) -> int:
        """Return the bytes of all pages that are not free."""
        return PAGE_BYTES * (self._pragma("page_count") - self._pragma("freelist_count"))

    async def aclose(self) -> None:
        if self._checkpoint is not None:
            await self._checkpoint
        self._opened.close()

    async def _begin(self) -> None:
        """Begin a transaction that may write at once: one that reads first would fail at its first write, had another
        process written meanwhile."""
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.rows.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    def _pragma(self, name: str) -> int:
        return int(self.rows.execute(f"PRAGMA {name}").fetchone()[0])

    def make_tables(self) -> None:
        tables = {name for (name,) in self.rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and self._pragma("application_id") != APPLICATION:
            raise errors.StoreUnavailable(f"{self._path} has other tables than the store's; name another file")
        if self._pragma("user_version") == VERSION:
            return
        if tables and not self.is_alone:
            raise errors.StoreUnavailable(f"{self._path} is used by another version of v3bridge; stop that first")
        for name in tables - {TABLES[kind][0] for kind in _KEPT} - {"sqlite_sequence"}:
            self.rows.execute(f"DROP TABLE {name}")
        for kind, (name, length) in TABLES.items():
            columns, key = ", ".join(kind._fields), ", ".join(kind._fields[:length])
            if kind not in APPENDED:
                self.rows.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID")
        for table in _APPENDED_TABLES:
            self.rows.execute(table)
        for kind in _KEPT:
            self._add_columns(kind)
        self.rows.execute(f"PRAGMA application_id = {APPLICATION}")
        self.rows.execute(f"PRAGMA user_version = {VERSION}")

    def _add_columns(self, kind: Kind) -> None:
        """Add those that the table of an earlier version lacks."""
        name = TABLES[kind][0]
        before = {row[1] for row in self.rows.execute(f"PRAGMA table_info({name})")}
        for column, default in kind._field_defaults.items():
            if column not in before:
                self.rows.execute(f"ALTER TABLE {name} ADD COLUMN {column} DEFAULT {default!r}")

    def _check_file(self) -> None:
        """Raise StoreUnavailable where SQLite would go on with a file that is gone or not as it was written."""
        if self._path is None:
            return
        try:
            found = os.stat(self._path)
            log = os.stat(f"{self._file}-wal")
        except OSError as error:
            raise errors.StoreUnavailable(
                f"{error.filename} was deleted or cannot be reached ({error.strerror}); restart to begin a new file, "
                "and set the parts that are used with `v3bridge usage --set`"
            ) from error
        mistake = ""
        if [found.st_dev, found.st_ino] != self._inode:
            mistake = "was replaced; restart to use the new file"
        elif found.st_nlink > 1:
            mistake = "has a second name (a hard link), by which a program would destroy it; delete that name"
        elif found.st_size < self._bytes or log.st_size < min(self._log_bytes, LOG_BYTES):
            mistake = f"or its write-ahead log was truncated; {RESTORE}"
        if mistake:
            raise errors.StoreUnavailable(f"{self._path} {mistake}")
        self._bytes, self._log_bytes = found.st_size, log.st_size


def _make(path: Path) -> tuple[bool, int, int]:
    """Make the file if it is missing, for its owner only: it has tokens. SQLite gives the files beside it its mode.
    Return whether it is new, its device and its inode."""
    is_new = not path.exists()
    path.touch(0o600)
    path.chmod(0o600)
    found = path.stat()
    return is_new, found.st_dev, found.st_ino


def _lock_use(lock: int) -> bool:
    """Lock the use of the file, and return whether this process is alone; else wait for one that is and starts."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(lock, fcntl.LOCK_SH)
        return False
    return True


def _connect(file: str) -> sqlite3.Connection:
    rows = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
    rows.execute("PRAGMA synchronous = NORMAL")
    rows.execute("PRAGMA wal_autocheckpoint = 0")
    # The log keeps its size: a writer that makes it longer waits for the checkpoint's fsync (p99 6 ms instead of 1.4).
    rows.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
    return rows


def _move_pages(file: str) -> None:
    """Move the pages of the write-ahead log to the file, until it has all: the next transaction then begins the log
    anew. Writers go on meanwhile, and wait only if they write faster than pages are moved."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_connect(file)) as rows:
        before = -1
        for _ in range(CHECKPOINT_ROUNDS):
            _, pages, _ = rows.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if pages == before:  # nothing was written meanwhile
                return
            before = pages
        rows.execute("PRAGMA wal_checkpoint(RESTART)")
