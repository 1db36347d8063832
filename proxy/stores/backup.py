"""Copies of the SQLite store: made while services use it, and put back while none does."""

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from proxy import errors
from proxy.stores import sqlite_schema
from proxy.stores.protocols import LedgerEntry

_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")


class LostUsage(NamedTuple):
    """Ledger entry that a restore sets back: its used and uncertain parts now, and in the backup."""

    entry: LedgerEntry
    stored: int
    restored: int


class Restoration:
    """A backup, and the store that it replaces, which nothing else can open meanwhile. Made by `restoration`."""

    def __init__(self, backup: sqlite3.Connection, store: sqlite3.Connection) -> None:
        self._backup = backup
        self._store = store
        self.entries = len(_ledger(backup))

    def lost_usage(self) -> list[LostUsage]:
        """Return the ledger entries of which the store has more than the backup."""
        restored = _ledger(self._backup)
        return [
            LostUsage(entry, parts, restored.get(entry, 0))
            for entry, parts in _ledger(self._store).items()
            if parts > restored.get(entry, 0)
        ]

    def restore(self) -> None:
        """Replace the content of the store, in one transaction: if it breaks off, the store is as it was."""
        self._backup.backup(self._store)


def back_up(store: Path, target: Path, kept_tokens: str) -> None:
    """Copy the store as it is at one moment; replace the target once the copy is complete. Of the access tokens only
    those stay that begin with `kept_tokens`. Raises ConfigError."""
    if target.exists():
        if target.samefile(store):
            raise errors.ConfigError(f"{target}: is the store itself; name another file")
        try:
            with _opened(target, "ro"):
                pass
        except errors.ConfigError as error:
            reason = "exists and is not a backup, so it is not replaced; name another file"
            raise errors.ConfigError(f"{target}: {reason}") from error
    with _explained(target):
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.")
        try:
            with contextlib.closing(sqlite3.connect(name, isolation_level=None)) as copy:
                with _opened(store, "rw") as source:
                    source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # one file, which can be read where nothing can be written
                copy.execute("DELETE FROM tokens WHERE substr(token, 1, ?) <> ?", (len(kept_tokens), kept_tokens))
                copy.execute("VACUUM")  # pages that are free may hold tokens, too
            os.fsync(descriptor)
            os.replace(name, target)
        finally:
            os.close(descriptor)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


@contextlib.contextmanager
def restoration(backup: Path, store: Path) -> Iterator[Restoration]:
    """Open a backup, which is checked, and the store, which is locked and made where it is missing. Raises ConfigError
    where a service uses the store."""
    with _opened(backup, "ro") as source:
        damage = source.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise errors.ConfigError(f"{backup}: is damaged ({damage}); restore another backup")
        with _explained(store), contextlib.closing(_locked(store)) as target:
            yield Restoration(source, target)


def _locked(store: Path) -> sqlite3.Connection:
    """Open the store alone. A service holds a lock on its file for as long as it runs."""
    sqlite_schema.make(store)
    connection = sqlite3.connect(store, timeout=0.0, isolation_level=None)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")  # the lock stays
    except sqlite3.Error as error:
        connection.close()
        if error.sqlite_errorname in _LOCKED:
            raise errors.ConfigError(
                f"store: {store}: is in use; stop the service and the commands that use it, and try again"
            ) from error
        if error.sqlite_errorname in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
            raise errors.ConfigError(
                f"store: {store}: is damaged; stop the service, move the file away, and try again"
            ) from error
        raise
    return connection


@contextlib.contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Open an existing store of this version. Raises ConfigError."""
    if not path.exists():
        raise errors.ConfigError(f"{path}: does not exist")
    with _explained(path), path.open("rb") as file:
        if file.read(len(sqlite_schema.MAGIC)) != sqlite_schema.MAGIC:
            raise errors.ConfigError(f"{path}: is not a store of v3bridge")
    address = f"file:{quote(str(path))}?mode={mode}"
    with (
        _explained(path),
        contextlib.closing(sqlite3.connect(address, timeout=sqlite_schema.BUSY_SECONDS, uri=True)) as opened,
    ):
        version = opened.execute("PRAGMA user_version").fetchone()[0]
        if version != sqlite_schema.VERSION:
            raise errors.ConfigError(
                f"{path}: its schema is {version}, and that of this version of v3bridge {sqlite_schema.VERSION}; "
                "use the version that made it"
            )
        yield opened


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of a file into ConfigError."""
    try:
        yield
    except OSError as error:
        raise errors.ConfigError(f"{path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise errors.ConfigError(f"{path}: {error}") from error


def _ledger(connection: sqlite3.Connection) -> dict[LedgerEntry, int]:
    """Return the used and uncertain parts of every ledger entry; none of a file without a ledger."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'ledger'").fetchone():
        return {}
    rows = connection.execute("SELECT account, period, used + uncertain FROM ledger ORDER BY account, period")
    return {LedgerEntry(account, period): parts for account, period, parts in rows}
