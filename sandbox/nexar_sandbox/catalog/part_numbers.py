"""Part numbers, own and alternate ones: exact, prefix and substring search, and completions of a prefix.

All normalized part numbers are stored sorted in one long text, so that a substring search is one scan.
"""

import sqlite3

import msgspec
import numpy as np

from nexar_sandbox.catalog import columns, matching, records, reference_data, search_hits

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
        """(position, number, whether it is an alternate one) of the numbers that normalize to `norm`."""
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


class QueryCompletion:
    """Completions of a prefix: the catalog's own part numbers and names, no dictionary."""

    def __init__(
        self,
        column_store: columns.Columns,
        reference: reference_data.ReferenceData,
        numbers: PartNumberIndex,
    ) -> None:
        self._columns, self._reference, self._numbers = column_store, reference, numbers

    def suggest(
        self, q: str, *, category_id: str | None, limit: int, part_numbers_only: bool
    ) -> tuple[records.Suggestion, ...]:
        """Completions of `q`, most offered parts first: part numbers in their category, then names of makers and
        categories; inside `category_id` part numbers only."""
        start = matching.normalize(q)
        if not start:
            return ()
        suggestions = self._part_numbers(start, category_id, limit)
        if not part_numbers_only and category_id is None:
            suggestions += _makers(self._reference, start)
            suggestions += [
                records.Suggestion(category.name, category.name, category.id)
                for category in self._reference.categories.values()
                if matching.normalize(category.name).startswith(start)
            ]
        return tuple(dict.fromkeys(suggestions))[:limit]

    def _part_numbers(self, start: str, category_id: str | None, limit: int) -> list[records.Suggestion]:
        matches = self._numbers.with_prefix(start)
        positions = np.arange(matches.start, matches.stop)
        if category_id is not None:
            positions = positions[self._inside(category_id)[self._category(positions)]]
        offered = self._columns.column("offers")[self._numbers.parts(positions)].astype(np.int64)
        # Most offers first, then by the number as it is written.
        keys = (-offered << 32) + self._columns.column("name_order")[positions]
        best = positions[search_hits.lowest(keys, limit)]
        labels = self._columns.labels("categories")
        categories = (self._reference.categories[labels[code]] for code in self._category(best).tolist())
        mpns = self._numbers.written(best.tolist())
        return [
            records.Suggestion(mpn, category.name, category.id) for mpn, category in zip(mpns, categories, strict=True)
        ]

    def _category(self, positions: columns.Array) -> columns.Array:
        return self._columns.column("category")[self._numbers.parts(positions)]

    def _inside(self, category_id: str) -> columns.Array:
        """Which category codes are those of the category and its descendants."""
        below = self._reference.descendants(category_id) if category_id in self._reference.categories else ()
        return np.isin(np.array(self._columns.labels("categories"), str), np.array(below, str))


def _makers(reference: reference_data.ReferenceData, start: str) -> list[records.Suggestion]:
    return [
        records.Suggestion(maker.name, "", "")
        for maker in reference.companies.values()
        if "manufacturer" in maker.roles and matching.normalize(maker.name).startswith(start)
    ]
