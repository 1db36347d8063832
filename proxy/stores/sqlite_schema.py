"""Files of SQLite, readable by their owner only, and the schema of the store, which is that of one version."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from proxy import errors

VERSION = 13
MAGIC = b"SQLite format 3\0"  # the first bytes of a file
LIBRARY = (3, 38)  # of SQLite: the first with ->>
BUSY_SECONDS = 5.0  # that a writer waits for another process's transaction

_TRIES = 50  # at switching a new file to WAL mode, which several workers may do at the same moment
_PAUSE = 0.1  # seconds between two of them
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")  # the second: no room for the file beside it

_SCHEMA = """
CREATE TABLE owners (name TEXT PRIMARY KEY, until REAL NOT NULL, settled INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE ledger (account TEXT NOT NULL, period TEXT NOT NULL, used INTEGER NOT NULL, uncertain INTEGER NOT NULL,
    PRIMARY KEY (account, period)) WITHOUT ROWID;
CREATE TABLE reservations (id TEXT PRIMARY KEY, owner TEXT NOT NULL, parts INTEGER NOT NULL, entries TEXT NOT NULL,
    uncertain INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE reserved (account TEXT NOT NULL, period TEXT NOT NULL, id TEXT NOT NULL, parts INTEGER NOT NULL,
    PRIMARY KEY (account, period, id)) WITHOUT ROWID;
CREATE INDEX reserved_by_id ON reserved (id);
CREATE TABLE exhausted_quotas (account TEXT PRIMARY KEY, until REAL NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE notes (kind TEXT NOT NULL, owner TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (kind, owner));
"""


def connect(path: Path, *, reads_only: bool = False) -> sqlite3.Connection:
    """Open the file, which is made where it is missing. Raises ConfigError.

    SQLite writes a file beside it even to read. `reads_only`: where the disk is full or read-only, the file is read
    without, if nothing else has it open."""
    if sqlite3.sqlite_version_info < LIBRARY:
        needed = ".".join(map(str, LIBRARY))
        raise errors.ConfigError(
            f"store: {path}: needs SQLite {needed} or later, and this Python has {sqlite3.sqlite_version}"
        )
    try:
        try:
            make(path)
            return _opened(path)
        except (OSError, sqlite3.OperationalError):
            if reads_only and _is_complete(path):
                return _opened(path, "?immutable=1")
            raise
    except OSError as error:
        raise errors.ConfigError(f"store: {path}: cannot be opened: {error.strerror}") from error
    except sqlite3.Error as error:
        reason = "the disk is full" if error.sqlite_errorname in _FULL else error
        raise errors.ConfigError(f"store: {path}: cannot be used: {reason}") from error


def _opened(path: Path, reading: str = "") -> sqlite3.Connection:
    """Open the file, by the query of an address for `reading` only. Raises sqlite3.Error, and ConfigError for another
    schema."""
    # Transactions begin explicitly (isolation_level=None); one thread at a time uses the connection, so its check is
    # off.
    connection = sqlite3.connect(
        f"file:{quote(str(path))}{reading}",
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    try:
        if reading:
            _version(connection, path)
        else:
            _prepare(connection, path)
    except BaseException:
        connection.close()  # else it would keep the file open
        raise
    return connection


def json_text(values: Sequence[Any]) -> str:
    """Return values as SQLite's json_each takes them: one statement for all."""
    return msgspec.json.encode(values).decode()


def _is_complete(path: Path) -> bool:
    """Return whether a file holds all that was committed: no process uses it, and none was killed that did."""
    beside = path.with_name(f"{path.name}-wal")
    return path.is_file() and path.stat().st_size > 0 and not (beside.exists() and beside.stat().st_size)


def try_out(path: Path) -> int:
    """Return the schema of an existing file after a transaction that is rolled back. Changes nothing. Raises
    sqlite3.Error where the file cannot be opened, read or written, or another process writes for too long."""
    # mode=rw: a file that is missing is not made.
    address = f"file:{quote(str(path))}?mode=rw"
    with contextlib.closing(sqlite3.connect(address, timeout=BUSY_SECONDS, isolation_level=None, uri=True)) as tried:
        tried.execute("BEGIN IMMEDIATE")
        version = int(tried.execute("PRAGMA user_version").fetchone()[0])
        tried.execute(f"PRAGMA user_version = {version}")  # the first write, of what is there already
        tried.execute("ROLLBACK")
    return version


def make(path: Path) -> None:
    """Make the file, for its owner only. SQLite gives -wal and -shm the same mode."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # A file made by hand may be readable by others; it holds tokens.
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


class WatchedFile:
    """The file of an open store, watched for what SQLite does not notice. Closed after the connection: to close a
    descriptor of a file drops SQLite's locks on it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY)

    def check(self) -> None:
        """Raise sqlite3.OperationalError where the file is not usable any more: SQLite would go on with a deleted file,
        whose content is lost when the process ends, and with what it remembers of an overwritten one."""
        if not has_path(self._descriptor, self._path):
            raise sqlite3.OperationalError(f"{self._path} was deleted or replaced; restart to begin a new file")
        if os.pread(self._descriptor, len(MAGIC), 0) != MAGIC:
            raise sqlite3.OperationalError(
                f"{self._path} was overwritten; stop the service, restore the file from a backup, and start"
            )

    def check_folder(self) -> None:
        """Raise sqlite3.OperationalError where the folder is read-only: on such a mount, writes to open files may still
        succeed."""
        if not os.access(self._path.parent, os.W_OK):
            raise sqlite3.OperationalError(f"{self._path.parent} is read-only; make it writable")

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def has_path(descriptor: int, path: Path) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def create(connection: sqlite3.Connection) -> None:
    """Make the tables."""
    # Not executescript(), which would commit a transaction first.
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Set the connection up, and make the tables of a new file."""
    write_ahead(connection, path)
    connection.execute("PRAGMA synchronous = NORMAL")  # what is committed survives the process, if not the machine
    # Immediate: workers that start together must not all make the tables.
    connection.execute("BEGIN IMMEDIATE")
    if _version(connection, path) == 0:  # else nothing is written: the disk may be full
        create(connection)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the schema of the file, 0 for a new one. Raises ConfigError for another: its tables would be misread, so
    that usage is lost."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version not in (0, VERSION):
        raise errors.ConfigError(f"store: {path}: {other_version(version)}")
    return version


def other_version(version: int) -> str:
    """Return the reason for refusing a file of another schema, and what starting with a new one loses."""
    return (
        f"was made by another version of v3bridge (its schema is {version}, that of this one {VERSION}); use that "
        "version, or move the file away: then the used and uncertain parts of the running period are lost"
    )


def write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Switch to WAL mode. While another process does so, SQLite fails instead of waiting for it."""
    for tries_left in reversed(range(_TRIES)):
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if not tries_left or error.sqlite_errorname not in ("SQLITE_BUSY", "SQLITE_BUSY_RECOVERY", "SQLITE_LOCKED"):
                raise
            time.sleep(_PAUSE)
        else:
            break
    if mode != "wal":
        raise errors.ConfigError(f"store: {path}: cannot be shared here: its disk does not allow SQLite's WAL mode")
