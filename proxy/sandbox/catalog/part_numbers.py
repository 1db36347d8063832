"""Part numbers, own and alternate ones: exact, prefix and substring search.

All normalised part numbers are stored sorted in one long text, so that a substring search is one scan.
"""

import sqlite3

import msgspec
import numpy as np

from proxy.sandbox.catalog import columns, matching

_END = "\U0010ffff"
# Higher than every key of `closest`.
_NO_MATCH = 2 * matching.INSIDE + 2


class PartNumberIndex:
    """Index of the part numbers of all parts. A number is identified by its position in sorted order."""

    def __init__(self, connection: sqlite3.Connection, stored: columns.Columns) -> None:
        self._connection, self._columns = connection, stored

    def parts(self, positions: columns.Array | slice) -> columns.Array:
        """The parts that have the numbers at these positions."""
        return self._columns.column("name_rows")[positions]

    def equal(self, norm: str) -> list[tuple[int, str, bool]]:
        """(position, number, whether it is an alternate one) of the numbers that normalise to `norm`."""
        return list(
            self._connection.execute(
                "SELECT position, mpn, aka FROM names WHERE norm = ? ORDER BY position", (norm,)
            ).fetchall()
        )

    def written(self, positions: list[int]) -> list[str]:
        """The numbers at these positions, as they are written."""
        spellings = dict(
            self._connection.execute(
                "SELECT position, mpn FROM names WHERE position IN (SELECT value FROM json_each(?))",
                (msgspec.json.encode(positions).decode(),),
            ).fetchall()
        )
        return [spellings[position] for position in positions]

    def with_prefix(self, norm: str) -> slice:
        """The positions of the numbers with this prefix."""
        return slice(self._position(norm), self._position(norm + _END))

    def closest(self, q: str, norm: str) -> tuple[columns.Array, columns.Array]:
        """The parts, ascending, that have `norm` in a number, with twice the closeness of the closest one to `q`, and
        one more where that is an alternate number."""
        positions = self.containing(norm)
        close = np.full(len(positions), matching.INSIDE, np.int8)
        prefixed = self.with_prefix(norm)
        close[np.searchsorted(positions, prefixed.start) : np.searchsorted(positions, prefixed.stop)] = matching.PREFIX
        for position, mpn, _ in self.equal(norm):
            close[np.searchsorted(positions, position)] = matching.LITERAL if mpn == q else matching.EQUAL
        keys = close * 2 + self._columns.column("name_aka")[positions]
        rows = self.parts(positions)
        closest = np.full(self._columns.length("ids"), _NO_MATCH, np.int8)
        for key in range(_NO_MATCH - 1, -1, -1):
            closest[rows[keys == key]] = key
        matching_rows = np.flatnonzero(closest < _NO_MATCH)
        return matching_rows, closest[matching_rows]

    def containing(self, norm: str) -> columns.Array:
        """The positions, ascending, of the numbers that contain `norm`."""
        text, starts = self._columns.column("name_text"), self._columns.column("name_starts")
        at = _occurrences(
            text, np.frombuffer(norm.encode(), np.uint8), self._columns.derived("byte counts", self._byte_counts)
        )
        positions = np.searchsorted(starts, at, side="right") - 1
        return positions[np.flatnonzero(np.diff(positions, prepend=-1))]

    def _byte_counts(self) -> columns.Array:
        """The number of occurrences of each byte value."""
        return np.bincount(self._columns.column("name_text"), minlength=256)

    def _position(self, norm: str) -> int:
        row = self._connection.execute(
            "SELECT position FROM names WHERE norm >= ? ORDER BY norm, position LIMIT 1", (norm,)
        ).fetchone()
        return int(row[0]) if row else self._columns.length("name_rows")


def _occurrences(text: columns.Array, pattern: columns.Array, byte_counts: columns.Array) -> columns.Array:
    """Positions of `pattern` in `text`, ascending. Starts with the rarest byte, which leaves the fewest candidates."""
    order = np.argsort(byte_counts[pattern], kind="stable").tolist()
    rarest, *others = order
    at: columns.Array = np.flatnonzero(text == pattern[rarest]) - rarest
    at = at[(at >= 0) & (at <= len(text) - len(pattern))]
    for offset in others:
        at = at[text[at + offset] == pattern[offset]]
    return at
