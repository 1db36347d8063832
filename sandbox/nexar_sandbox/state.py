"""State of one sandbox: mappings of frozen values by kind, in memory and written through to the state file if there is
one.

A component gets its rows at the start and uses them as a dict. Assigning a key writes it; changing a value in place
does not. The file is a SQLite database with one table of rows by kind and key, locked by one sandbox at a time:
SQLite's lock is released when the process ends.
"""

import os
import sqlite3
from collections.abc import Iterator, MutableMapping, ValuesView
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from nexar_sandbox.kit import clock as clocks

MARK = 0x76336273  # SQLite's application_id: whose file it is
VERSION = 3  # raised when rows are stored in another form
MODE = 0o600  # it holds secrets
_TABLE = "CREATE TABLE row (kind TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (kind, key))"
_PUT = "INSERT INTO row VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"


class StateError(Exception):
    """A change could not be written (disk full, folder missing). Nothing has changed."""


T = TypeVar("T")


class StateStore:
    """The state of one sandbox, in memory only. `is_new`: it is empty, so that initial values have to be added."""

    is_new, is_persistent = True, False

    def rows(self, _kind: str, _of: type[T]) -> MutableMapping[str, T]:
        """Return the rows of a kind by key, oldest first. Raises ValueError for an unreadable row."""
        return {}

    def transaction(self) -> AbstractContextManager[None]:
        """Yield a transaction around the block. Nested blocks join the outer one."""
        return nullcontext()

    def complete_creation(self) -> None:
        """Commit the initial content of a new store; without it a file counts as empty."""

    def close(self) -> None:
        """Close the file, if there is one."""


class StateFile(StateStore):
    """A state in memory and in a file. A change is written when the call returns, or StateError is raised.

    The constructor raises ValueError, which names the file, if the file is another program's or another version's,
    is not writable, or is locked by another sandbox.
    """

    is_persistent = True

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))
        except OSError as error:
            raise ValueError(f"{path}: {_reason(error)}") from None
        self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self.is_new = self._take()
        except (sqlite3.Error, OSError, ValueError) as error:
            self._database.close()
            raise ValueError(f"{path}: {_reason(error)}") from None

    def rows(self, kind: str, of: type[T]) -> MutableMapping[str, T]:
        try:
            rows = self._database.execute("SELECT key, value FROM row WHERE kind = ? ORDER BY rowid", (kind,))
            return PersistentRows(self, kind, {key: self._read(kind, key, value, of) for key, value in rows.fetchall()})
        except sqlite3.Error as error:
            raise ValueError(f"{self._path}: {_reason(error)}") from None

    def put(self, kind: str, key: str, value: bytes) -> None:
        self._run(_PUT, (kind, key, value))

    def remove(self, kind: str, key: str) -> None:
        self._run("DELETE FROM row WHERE kind = ? AND key = ?", (kind, key))

    @contextmanager
    def transaction(self) -> Iterator[None]:
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
        if self._database.in_transaction:
            self._database.execute("COMMIT")

    def close(self) -> None:
        self._database.close()

    def _run(self, statement: str, values: tuple[object, ...] = ()) -> None:
        try:
            self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise StateError(f"{self._path} {_reason(error)}") from None

    def _read(self, kind: str, key: str, value: bytes, of: type[T]) -> T:
        try:
            return msgspec.json.decode(value, type=of)
        except msgspec.DecodeError as error:
            raise ValueError(f"{self._path}: {kind} {key} cannot be read: {error}") from None

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


def _reason(error: Exception) -> str:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith("SQLITE_BUSY"):
        return "another sandbox is using it"
    if code == "SQLITE_NOTADB":
        return "it is not a sandbox's state file"
    if isinstance(error, OSError):
        return f"cannot be written: {error.strerror}"
    return f"cannot be used: {error}" if isinstance(error, sqlite3.Error) else str(error)


class PersistentRows(MutableMapping[str, T]):
    """Rows that are written to the file before memory, so that both agree after a failure."""

    def __init__(self, into: StateFile, kind: str, values: dict[str, T]) -> None:
        self._file, self._kind, self._values = into, kind, values

    def __getitem__(self, key: str) -> T:
        return self._values[key]

    def __setitem__(self, key: str, value: T) -> None:
        # Sorted, so that equal sets are equal bytes.
        self._file.put(self._kind, key, msgspec.json.encode(value, order="sorted"))
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self._values:
            raise KeyError(key)
        self._file.remove(self._kind, key)
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def values(self) -> ValuesView[T]:
        return self._values.values()


class ExpiringRow(msgspec.Struct, Generic[T], frozen=True):
    """A value that expires at `until`, in seconds since 1970."""

    value: T
    until: float


class ExpiringRows(Generic[T]):
    """Rows that expire `lifetime` seconds after insertion; at most `most` of them, the oldest are dropped first."""

    def __init__(
        self, rows: MutableMapping[str, ExpiringRow[T]], clock: clocks.Clock, lifetime: float, most: int = 10_000
    ) -> None:
        self._rows, self._clock, self._lifetime, self._most = rows, clock, lifetime, most
        self._drop_old()

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str) -> T | None:
        row = self._rows.get(key)
        return None if row is None or row.until <= self._clock.now() else row.value

    def put(self, key: str, value: T) -> None:
        """Insert or replace a value; replacing keeps its expiry."""
        existing = self._rows.get(key)
        self._rows[key] = ExpiringRow(value, existing.until if existing else self._clock.now() + self._lifetime)
        self._drop_old()

    def drop(self, key: str) -> None:
        self._rows.pop(key, None)

    def items(self) -> Iterator[tuple[str, T]]:
        """Unexpired rows, oldest first; rows may be dropped while iterating."""
        now = self._clock.now()
        yield from [(key, row.value) for key, row in self._rows.items() if row.until > now]

    def _drop_old(self) -> None:
        now = self._clock.now()
        # Rows are in the order of insertion and live equally long: the first one expires first.
        while self._rows and (len(self._rows) > self._most or next(iter(self._rows.values())).until <= now):
            del self._rows[next(iter(self._rows))]
