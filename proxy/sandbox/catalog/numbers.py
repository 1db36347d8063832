"""Part numbers, their own and alternate ones: equal ones, beginnings, and those that hold a text anywhere.

Used by search.py and completion.py. All normalised numbers stand sorted in one long text.
"""

import sqlite3

import msgspec
import numpy as np

from proxy.sandbox.catalog import columns, matching

_END = "\U0010ffff"
# Beyond every key of `closest`.
_NOT_AT_ALL = 2 * matching.INSIDE + 2


class Numbers:
    """The part numbers of all parts, by their place in the sorted order."""

    def __init__(self, connection: sqlite3.Connection, stored: columns.Columns) -> None:
        self._database, self._columns = connection, stored

    def parts(self, places: columns.Array | slice) -> columns.Array:
        """Whose numbers these are."""
        return self._columns.whole("name_rows")[places]

    def equal(self, norm: str) -> list[tuple[int, str, bool]]:
        """(place, number, whether it is an alternate one) of the numbers that are this once normalised."""
        return list(
            self._database.execute(
                "SELECT position, mpn, aka FROM names WHERE norm = ? ORDER BY position", (norm,)
            ).fetchall()
        )

    def written(self, places: list[int]) -> list[str]:
        """The numbers at these places, as they are written."""
        found = dict(
            self._database.execute(
                "SELECT position, mpn FROM names WHERE position IN (SELECT value FROM json_each(?))",
                (msgspec.json.encode(places).decode(),),
            ).fetchall()
        )
        return [found[place] for place in places]

    def beginning(self, norm: str) -> slice:
        """The places of the numbers that begin so."""
        return slice(self._place(norm), self._place(norm + _END))

    def closest(self, q: str, norm: str) -> tuple[columns.Array, columns.Array]:
        """The parts, ascending, that have `norm` in a number, with twice the closeness of the closest one to `q`, and
        one more where that is an alternate number."""
        places = self.holding(norm)
        close = np.full(len(places), matching.INSIDE, np.int8)
        begun = self.beginning(norm)
        close[np.searchsorted(places, begun.start) : np.searchsorted(places, begun.stop)] = matching.PREFIX
        for place, mpn, _ in self.equal(norm):
            close[np.searchsorted(places, place)] = matching.LITERAL if mpn == q else matching.EQUAL
        keys = close * 2 + self._columns.whole("name_aka")[places]
        rows = self.parts(places)
        closest = np.full(self._columns.length("ids"), _NOT_AT_ALL, np.int8)
        for key in range(_NOT_AT_ALL - 1, -1, -1):
            closest[rows[keys == key]] = key
        found = np.flatnonzero(closest < _NOT_AT_ALL)
        return found, closest[found]

    def holding(self, norm: str) -> columns.Array:
        """The places, ascending, of the numbers that have `norm` in them."""
        text, starts = self._columns.whole("name_text"), self._columns.whole("name_starts")
        at = _occurrences(text, np.frombuffer(norm.encode(), np.uint8), self._columns.derived("signs", self._signs))
        places = np.searchsorted(starts, at, side="right") - 1
        return places[np.flatnonzero(np.diff(places, prepend=-1))]

    def _signs(self) -> columns.Array:
        """How often each byte occurs."""
        return np.bincount(self._columns.whole("name_text"), minlength=256)

    def _place(self, norm: str) -> int:
        row = self._database.execute(
            "SELECT position FROM names WHERE norm >= ? ORDER BY norm, position LIMIT 1", (norm,)
        ).fetchone()
        return int(row[0]) if row else self._columns.length("name_rows")


def _occurrences(text: columns.Array, wanted: columns.Array, often: columns.Array) -> columns.Array:
    """Where `wanted` begins in `text`, ascending: the rarest sign is looked for first."""
    order = np.argsort(often[wanted], kind="stable").tolist()
    rarest, *others = order
    at: columns.Array = np.flatnonzero(text == wanted[rarest]) - rarest
    at = at[(at >= 0) & (at <= len(text) - len(wanted))]
    for offset in others:
        at = at[text[at + offset] == wanted[offset]]
    return at
