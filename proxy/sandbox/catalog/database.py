"""The SQLite database that a catalog searches: its tables, and opening one.

Used by the loader and by prepared.py. It holds the lines of the parts, what is looked up by name, and the columns that
searches read; whole records are put together from the lines on demand.
"""

import sqlite3
from pathlib import Path

from proxy.sandbox.catalog import columns

_TABLES = f"""
CREATE TABLE parts (id INTEGER PRIMARY KEY, uid TEXT, line TEXT);
CREATE TABLE uids (uid TEXT PRIMARY KEY, part INTEGER) WITHOUT ROWID;
CREATE TABLE skus (norm TEXT, part INTEGER);
CREATE TABLE names (position INTEGER PRIMARY KEY, norm TEXT, mpn TEXT, aka INTEGER);
CREATE TABLE terms (position INTEGER PRIMARY KEY, term TEXT, first INTEGER, stop INTEGER);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
{columns.TABLES}
"""
INDEXES = """
CREATE UNIQUE INDEX parts_uid ON parts (uid);
CREATE INDEX skus_norm ON skus (norm);
CREATE INDEX names_norm ON names (norm);
CREATE INDEX terms_term ON terms (term, first, stop);
"""
# Bytes: columns come in large pieces.
_PAGE = 16_384
# KiB that are held while indexes are made.
_CACHE = 256 * 1024
# Bytes of a file that are read without copying: more than any catalog has.
_MAPPED = 1 << 36


def empty(path: Path | None = None) -> sqlite3.Connection:
    """A new database, in memory or in a file that nobody reads yet. One thread at a time may use it, not only the one
    that made it."""
    database = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
    # Until it is whole, nothing of it is worth keeping.
    database.executescript(
        f"PRAGMA page_size = {_PAGE}; PRAGMA cache_size = -{_CACHE};"
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
    )
    database.executescript(_TABLES)
    return database


def opened(path: Path) -> sqlite3.Connection:
    """A file that nobody writes to any more, to be read."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    database = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
    database.execute(f"PRAGMA mmap_size = {_MAPPED}")
    return database
