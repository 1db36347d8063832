"""The state file: a SQLite database with one table of rows by kind and key, locked by one sandbox at a time.

Used by `store.py` only, which encodes the rows. SQLite's file lock is released when the process ends.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MARK = 0x76336273  # SQLite's application_id: whose file it is
VERSION = 3  # raised when rows are stored in another form
MODE = 0o600  # it holds secrets
_TABLE = "CREATE TABLE row (kind TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (kind, key))"
_PUT = "INSERT INTO row VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"


class StateError(Exception):
    """A change could not be written (disk full, folder missing). Nothing has changed."""


class StateFile:
    """An open state file. A change is written when the call returns, or StateError is raised.

    The constructor raises ValueError, which names the file, if the file is another program's or another version's,
    is not writable, or is locked by another sandbox.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _make(path)
        self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self.is_new = self._take()
        except (sqlite3.Error, OSError, ValueError) as error:
            self._database.close()
            raise ValueError(f"{path}: {_reason(error)}") from None

    def rows(self, kind: str) -> list[tuple[str, bytes]]:
        """Keys and values of a kind, oldest first."""
        try:
            rows = self._database.execute("SELECT key, value FROM row WHERE kind = ? ORDER BY rowid", (kind,))
            return rows.fetchall()
        except sqlite3.Error as error:
            raise ValueError(f"{self._path}: {_reason(error)}") from None

    def put(self, kind: str, key: str, value: bytes) -> None:
        self._run(_PUT, (kind, key, value))

    def remove(self, kind: str, key: str) -> None:
        self._run("DELETE FROM row WHERE kind = ? AND key = ?", (kind, key))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Yield a transaction around the block. Nested blocks join the outer one."""
        if self._database.in_transaction:
            yield
            return
        self._run("BEGIN")
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            with suppress(sqlite3.OperationalError):  # a full disk may have made SQLite do it by itself
                self._database.execute("ROLLBACK")
            raise

    def complete_creation(self) -> None:
        """Commit the initial content of a new file; without it the file counts as empty."""
        if self._database.in_transaction:
            self._database.execute("COMMIT")

    def close(self) -> None:
        self._database.close()

    def _run(self, statement: str, values: tuple[object, ...] = ()) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise StateError(f"{self._path} {_reason(error)}") from None

    def _take(self) -> bool:
        """Return true if it is new: then a transaction has begun, which `complete_creation` ends."""
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        mark, version = (run(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        is_empty = run("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        if mark != MARK and not (is_empty and mark == version == 0):
            raise ValueError("it is not a sandbox's state file")
        if version not in (0, VERSION):
            other = "a newer" if version > VERSION else "an earlier"
            raise ValueError(
                f"{other} version has written it (format {version}; this one knows {VERSION}); in another file its "
                "users, applications, sign-ins and design data are lost"
            )
        self._path.chmod(MODE)
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("BEGIN EXCLUSIVE")
        if version:
            run("COMMIT")
            return False
        run(f"PRAGMA application_id = {MARK}")
        run(f"PRAGMA user_version = {VERSION}")
        run(_TABLE)
        return True


def _make(path: Path) -> None:
    """Create an empty file with mode 0600 if there is none."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))
    except OSError as error:
        raise ValueError(f"{path}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith("SQLITE_BUSY"):
        return "another sandbox is using it"
    if code == "SQLITE_NOTADB":
        return "it is not a sandbox's state file"
    if isinstance(error, OSError):
        return f"cannot be written: {error.strerror}"
    return f"cannot be used: {error}" if isinstance(error, sqlite3.Error) else str(error)
