"""The state file: a SQLite database with one table, rows by kind and key, held by one sandbox at a time.

Only `store.py` uses it. It does not know what is in a row. SQLite's own lock on the file is the lock of the sandbox: it
is gone with the process, however that ends.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MARK = 0x76336273  # SQLite's application_id: whose file it is
VERSION = 1
MODE = 0o600  # it holds secrets
_TABLE = "CREATE TABLE row (kind TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (kind, key))"
_PUT = "INSERT INTO row VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"


class StateError(Exception):
    """A change that cannot be written: the disk is full, the folder is gone. Nothing has changed."""


class StateFile:
    """Open until it is closed. Each change is in the file when the call returns; else it raises StateError.

    Raises ValueError, which names the file, where it cannot be had: it is another program's or a newer version's, it
    cannot be written, or a sandbox holds it.
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
            found = self._database.execute("SELECT key, value FROM row WHERE kind = ? ORDER BY rowid", (kind,))
            return found.fetchall()
        except sqlite3.Error as error:
            raise ValueError(f"{self._path}: {_reason(error)}") from None

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Add it, or put it in the place of the one with its key."""
        self._run(_PUT, (kind, key, value))

    def remove(self, kind: str, key: str) -> None:
        """Take it away, if it is there."""
        self._run("DELETE FROM row WHERE kind = ? AND key = ?", (kind, key))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes of the block, or none. Within another one it adds to that."""
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
        """What a new file begins with is complete; a file that was left before is as good as empty."""
        if self._database.in_transaction:
            self._database.execute("COMMIT")

    def close(self) -> None:
        """The next may have it."""
        self._database.close()

    def _run(self, statement: str, values: tuple[object, ...] = ()) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise StateError(f"{self._path} {_reason(error)}") from None

    def _take(self) -> bool:
        """Whether it is new: then a transaction has begun, which `finish` ends."""
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        mark, version = (run(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        is_empty = run("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        if mark != MARK and not (is_empty and mark == version == 0):
            raise ValueError("it is not a sandbox's state file")
        if version > VERSION:
            raise ValueError(f"a newer version has written it (format {version}; this one knows {VERSION})")
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
    """An empty file that only its owner reads, where there is none."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))
    except OSError as error:
        raise ValueError(f"{path}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """In a user's words, as far as it is a user's to know."""
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith("SQLITE_BUSY"):
        return "another sandbox is using it"
    if code == "SQLITE_NOTADB":
        return "it is not a sandbox's state file"
    if isinstance(error, OSError):
        return f"cannot be written: {error.strerror}"
    return f"cannot be used: {error}" if isinstance(error, sqlite3.Error) else str(error)
