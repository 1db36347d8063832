"""Columns of figures in the catalog's database, read when they are first needed.

A row of SQL for each part is too slow for searches with a hundred thousand hits. A column is one array, stored in
pieces of the same size, so that a slice of a long column can be read without the rest.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

TABLES = """
CREATE TABLE columns (name TEXT PRIMARY KEY, type TEXT, length INTEGER) WITHOUT ROWID;
CREATE TABLE pieces (name TEXT, number INTEGER, data BLOB, PRIMARY KEY (name, number));
CREATE TABLE labels (name TEXT PRIMARY KEY, data TEXT) WITHOUT ROWID;
"""
Array = npt.NDArray[Any]
# Values in a piece.
_PIECE = 1 << 16


class Columns:
    """The columns of one database. Whole columns are cached; slices are not."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._cache: dict[str, Any] = {}

    def column(self, name: str) -> Array:
        """A whole column. Raises KeyError if there is none."""
        return cast(Array, self.derived(name, lambda: self.slice(name, 0, self.length(name))))

    def slice(self, name: str, start: int, stop: int) -> Array:
        """The values from `start` to before `stop`."""
        kind, _ = self._shape(name)
        if stop <= start:
            return np.empty(0, kind)
        first = start // _PIECE
        rows = self._connection.execute(
            "SELECT data FROM pieces WHERE name = ? AND number BETWEEN ? AND ? ORDER BY number",
            (name, first, (stop - 1) // _PIECE),
        )
        values = np.frombuffer(b"".join(data for (data,) in rows), kind)
        return values[start - first * _PIECE : stop - first * _PIECE]

    def length(self, name: str) -> int:
        """The number of values in the column."""
        return self._shape(name)[1]

    def labels(self, name: str) -> list[Any]:
        """The labels of a column's codes; empty if there is no such column."""
        return cast(list[Any], self.derived(f"labels of {name}", lambda: self._labels(name)))

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """The cached result of `make`, which must depend on the columns alone."""
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    def _labels(self, name: str) -> list[Any]:
        row = self._connection.execute("SELECT data FROM labels WHERE name = ?", (name,)).fetchone()
        return list(msgspec.json.decode(row[0])) if row else []

    def _shape(self, name: str) -> tuple[str, int]:
        return cast(tuple[str, int], self.derived(f"shape of {name}", lambda: self._read_shape(name)))

    def _read_shape(self, name: str) -> tuple[str, int]:
        row = self._connection.execute("SELECT type, length FROM columns WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise KeyError(name)
        return str(row[0]), int(row[1])


def write(connection: sqlite3.Connection, name: str, values: Array, kind: str) -> None:
    """Store a column; `kind` is a dtype with its byte order."""
    stored = np.ascontiguousarray(values, kind)
    connection.execute("INSERT INTO columns VALUES (?,?,?)", (name, kind, len(stored)))
    pieces = (
        (name, number, stored[start : start + _PIECE].tobytes())
        for number, start in enumerate(range(0, len(stored), _PIECE))
    )
    connection.executemany("INSERT INTO pieces VALUES (?,?,?)", pieces)


def write_labels(connection: sqlite3.Connection, name: str, values: Sequence[Any]) -> None:
    """Store the labels of a column's codes."""
    connection.execute("INSERT INTO labels VALUES (?,?)", (name, msgspec.json.encode(values).decode()))
