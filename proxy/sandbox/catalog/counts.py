"""How hits spread over makers, sellers, categories, stock, CAD models and values: the aggregations of a
search.

Used by the store only. Every count is over all hits of a `Ranked`, not over a page; most frequent first, equal ones
as they come among the hits by id.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from proxy.sandbox.catalog import columns, filters, ranked, records, units

Pairs = list[tuple[str, int]]


class Counts:
    """Counts over the hits of searches in one catalog. `sellers` are the ids of all sellers by position."""

    def __init__(self, stored: columns.Columns, sellers: Sequence[str]) -> None:
        self._columns, self._sellers = stored, sellers

    def makers(self, hits: ranked.Ranked) -> Pairs:
        """(maker id, parts)."""
        return self._grouped("maker", hits, self._columns.labels("makers"))

    def categories(self, hits: ranked.Ranked) -> Pairs:
        """(category id, parts) for the categories the parts are in themselves."""
        return self._grouped("category", hits, self._columns.labels("categories"))

    def stock(self, hits: ranked.Ranked) -> list[tuple[bool, int]]:
        """(somebody has it in stock, parts)."""
        return self._grouped("stocked", hits, (False, True))

    def cad(self, hits: ranked.Ranked) -> Pairs:
        """(state of `filters.CAD_STATES`, parts)."""
        names = {level: name for name, level in filters.CAD_STATES.items()}
        return self._grouped("cad", hits, [names[level] for level in range(len(names))])

    def sellers(self, hits: ranked.Ranked) -> Pairs:
        """(seller id, parts it lists)."""
        asked = self._mask(hits)
        packed = np.packbits(asked)
        listed = [np.bitwise_and(packed, filters.bits(self._columns, i)) for i in range(len(self._sellers))]
        counted = np.array([np.bitwise_count(each).sum(dtype=np.int64) for each in listed], np.int64)

        def firsts(tied: columns.Array) -> columns.Array:
            ids = self._columns.whole("ids")
            rows = (np.flatnonzero(np.unpackbits(listed[i], count=len(asked))) for i in tied.tolist())
            return np.array([ids[each].min() for each in rows], np.int64)

        return [(self._sellers[code], count) for code, count in _frequent(counted, firsts)]

    def values(self, hits: ranked.Ranked, attribute: records.Attribute) -> records.SpecCounts:
        """The values of one property among the hits that have it."""
        labels = self._columns.labels(f"spec {attribute.shortname}")
        if not labels:
            return records.SpecCounts(attribute, (), None, None)
        rows, codes = filters.values(self._columns, attribute.shortname)
        inside = self._mask(hits)[rows]
        found = self._by_code(codes[inside], rows[inside], len(labels))
        numbers = [labels[code] for code, _ in found if not isinstance(labels[code], str)]
        return records.SpecCounts(
            attribute,
            tuple(_bucket(labels[code], count, attribute) for code, count in found),
            min(numbers, default=None),
            max(numbers, default=None),
        )

    def unlisted(self, hits: ranked.Ranked) -> int:
        """Parts that no seller lists."""
        return int(np.count_nonzero(self._columns.whole("offers")[hits.rows] == 0))

    def all_in(self, column: str, labels: str) -> dict[str, int]:
        """How many of all parts have each value of a column."""
        found = np.bincount(self._columns.whole(column)).tolist()
        return dict(zip(self._columns.labels(labels), found, strict=False))

    def _grouped(self, column: str, hits: ranked.Ranked, labels: Sequence[Any]) -> list[tuple[Any, int]]:
        codes = self._columns.whole(column)[hits.rows]
        return [(labels[code], count) for code, count in self._by_code(codes, hits.rows, len(labels))]

    def _by_code(self, codes: columns.Array, rows: columns.Array, size: int) -> list[tuple[int, int]]:
        def firsts(tied: columns.Array) -> columns.Array:
            lowest = np.full(size, np.iinfo(np.int64).max)
            among = np.isin(np.arange(size), tied)[codes]
            np.minimum.at(lowest, codes[among], self._columns.whole("ids")[rows[among]])
            return lowest[tied]

        return _frequent(np.bincount(codes, minlength=size), firsts)

    def _mask(self, hits: ranked.Ranked) -> columns.Array:
        mask = np.zeros(self._columns.length("ids"), bool)
        mask[hits.rows] = True
        return mask


def _frequent(counted: columns.Array, firsts: Callable[[columns.Array], columns.Array]) -> list[tuple[int, int]]:
    """(code, count) of what occurs; `firsts` has the lowest id of each of some codes, which decides among equals."""
    codes = np.flatnonzero(counted)
    amounts = counted[codes]
    _, which, often = np.unique(amounts, return_inverse=True, return_counts=True)
    tied = often[which] > 1
    lowest = np.zeros(len(codes), np.int64)
    if tied.any():
        lowest[tied] = firsts(codes[tied])
    order = np.lexsort((codes, lowest, -amounts))
    return list(zip(codes[order].tolist(), amounts[order].tolist(), strict=True))


def _bucket(value: float | str, count: int, attribute: records.Attribute) -> tuple[str, float | None, int]:
    if isinstance(value, str):
        return value, None, count
    return units.shown(value, attribute.units_symbol).display, value, count
