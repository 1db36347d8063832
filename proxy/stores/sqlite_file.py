"""The file of the SQLite store: made for its owner's eyes alone, opened, and brought to the schema of this version.

Used by stores/sqlite.py at start, in the one thread that will go on using the connection.
"""

import os
import sqlite3
import time
from pathlib import Path

from proxy import errors

VERSION = 3
LIBRARY = (3, 38)  # of SQLite: the first with ->>
BUSY_SECONDS = 5.0  # that a writer waits for another process's transaction

_TRIES = 50  # at taking a new file into WAL mode, which several workers may want at the same moment
_PAUSE = 0.1

_SCHEMA = """
CREATE TABLE requests (key TEXT NOT NULL, at REAL NOT NULL, until REAL NOT NULL);
CREATE INDEX requests_by_key ON requests (key, at);
CREATE TABLE tokens (key TEXT PRIMARY KEY, token TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE locks (name TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE lines (account TEXT NOT NULL, period TEXT NOT NULL, used INTEGER NOT NULL, doubtful INTEGER NOT NULL,
    PRIMARY KEY (account, period)) WITHOUT ROWID;
CREATE TABLE claims (account TEXT NOT NULL, period TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL,
    parts INTEGER NOT NULL, PRIMARY KEY (account, period, id)) WITHOUT ROWID;
CREATE INDEX claims_by_id ON claims (id);
CREATE TABLE owners (name TEXT PRIMARY KEY, until REAL NOT NULL, settled INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE closures (account TEXT PRIMARY KEY, until REAL NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
"""

# What each version has beyond the one before it.
_STEPS = (
    _SCHEMA,
    "CREATE TABLE notes (kind TEXT NOT NULL, owner TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (kind, owner));\n",
    "CREATE TABLE intents (id TEXT PRIMARY KEY, owner TEXT NOT NULL, parts INTEGER NOT NULL, lines TEXT NOT NULL, "
    "uncertain INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;\n"
    "INSERT INTO intents SELECT id, max(owner), max(parts), json_group_array(json_array(account, period)), 0 "
    "FROM claims GROUP BY id;\n",
)

# A settlement as one statement: between two, a thread asks for the interpreter anew, and on a busy worker waits for it.
_SETTLING = """
CREATE TEMP VIEW settling AS SELECT '' AS owner, 0 AS sequence, '' AS claims, '' AS bookings;
CREATE TEMP TRIGGER settle INSTEAD OF INSERT ON settling
WHEN NEW.sequence > coalesce((SELECT settled FROM owners WHERE name = NEW.owner), 0)
BEGIN
    INSERT INTO owners VALUES (NEW.owner, 0, NEW.sequence)
        ON CONFLICT (name) DO UPDATE SET settled = excluded.settled;
    DELETE FROM claims WHERE id IN (SELECT value FROM json_each(NEW.claims));
    UPDATE lines SET doubtful = max(0, doubtful - coalesce((
            SELECT sum(parts) FROM intents, json_each(intents.lines) AS line
            WHERE uncertain AND line.value ->> 0 = lines.account AND line.value ->> 1 = lines.period
                AND intents.id IN (SELECT value FROM json_each(NEW.claims))), 0))
        WHERE EXISTS (SELECT 1 FROM intents WHERE uncertain AND id IN (SELECT value FROM json_each(NEW.claims)));
    DELETE FROM intents WHERE id IN (SELECT value FROM json_each(NEW.claims));
    INSERT INTO lines
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(NEW.bookings) WHERE true
        ON CONFLICT (account, period)
        DO UPDATE SET used = used + excluded.used, doubtful = doubtful + excluded.doubtful;
END;
"""


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the file, which is made where it is missing. Raises ConfigError."""
    if sqlite3.sqlite_version_info < LIBRARY:
        needed = ".".join(map(str, LIBRARY))
        raise errors.ConfigError(
            f"store: {path}: needs SQLite {needed} or later, and this Python has {sqlite3.sqlite_version}"
        )
    try:
        _make(path)
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    except OSError as error:
        raise errors.ConfigError(f"store: {path}: cannot be opened: {error.strerror}") from error
    except sqlite3.Error as error:
        raise errors.ConfigError(f"store: {path}: cannot be opened: {error}") from error
    try:
        _prepare(connection, path)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise errors.ConfigError(f"store: {path}: cannot be used: {error}") from error
        raise
    return connection


def _make(path: Path) -> None:
    """The file and the folders above it, for their owner alone. SQLite gives -wal and -shm the same mode."""
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    _write_ahead(connection, path)
    connection.execute("PRAGMA synchronous = NORMAL")  # what is committed survives the process, if not the machine
    connection.execute("BEGIN IMMEDIATE")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise errors.ConfigError(
            f"store: {path}: was made by a newer v3bridge (its schema is {version}, this one knows {VERSION})"
        )
    for step in _STEPS[version:]:
        for statement in step.split(";\n"):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
    connection.executescript(_SETTLING)


def _write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """WAL mode. While another process takes the file there, SQLite does not wait by itself."""
    for left in reversed(range(_TRIES)):
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if not left or error.sqlite_errorname not in ("SQLITE_BUSY", "SQLITE_BUSY_RECOVERY", "SQLITE_LOCKED"):
                raise
            time.sleep(_PAUSE)
        else:
            break
    if mode != "wal":
        raise errors.ConfigError(f"store: {path}: cannot be shared here: its disk does not allow SQLite's WAL mode")
