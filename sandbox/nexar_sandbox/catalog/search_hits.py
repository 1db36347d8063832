"""Hits of a search: all of them counted, sorted only as far as a page needs; and aggregations over them.

Parts are numbered by row, most offered first and then by id; hits that nothing else distinguishes are in that order.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from nexar_sandbox.catalog import columns, filters, records, units

# Up to this many hits are sorted completely: selecting the best ones first would cost more.
_FULL_SORT = 4096

LabelCounts = list[tuple[str, int]]


class SearchHits:
    """All hits, best first. `rows` are the rows of the parts, ascending; `keys` their sort keys, lowest first, if any.
    `akas` are the rows of the parts that matched by an alternate MPN; `aka_of` gives that MPN for a part id."""

    def __init__(
        self,
        rows: columns.Array,
        ids: columns.Array,
        keys: columns.Array | None = None,
        akas: columns.Array | None = None,
        aka_of: Callable[[str], str] = str,
    ) -> None:
        self.rows = rows
        self._ids, self._keys, self._aka_of = ids, keys, aka_of
        self._akas = frozenset() if akas is None else frozenset(map(str, ids[akas].tolist()))
        self._first: columns.Array = rows[:0]

    @property
    def hits(self) -> int:
        """The number of hits."""
        return len(self.rows)

    def page(self, start: int, limit: int) -> tuple[str, ...]:
        """Up to `limit` ids, from index `start` on."""
        return tuple(map(str, self._ids[self._best(start + limit)[start : start + limit]].tolist()))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of all hits."""
        return self.page(0, self.hits)

    def intersect(self, rows: columns.Array) -> "SearchHits":
        """The hits that are also in `rows`, in the same order."""
        inside = np.isin(self.rows, rows)
        keys = None if self._keys is None else self._keys[inside]
        common = SearchHits(self.rows[inside], self._ids, keys, None, self._aka_of)
        common._akas = self._akas
        return common

    @property
    def aka(self) -> dict[str, str]:
        """The matched alternate MPN by part id, for the parts that matched by one."""
        return {id_: self._aka_of(id_) for id_ in (self.ids if self._akas else ()) if id_ in self._akas}

    def aka_of(self, id_: str) -> str | None:
        """The alternate MPN by which this part matched; None if it matched otherwise."""
        return self._aka_of(id_) if id_ in self._akas else None

    def _best(self, count: int) -> columns.Array:
        if len(self._first) < min(count, self.hits):
            order = slice(0, count) if self._keys is None else lowest(self._keys, count)
            self._first = self.rows[order]
        return self._first


def lowest(keys: columns.Array, count: int) -> columns.Array:
    """The indices of the `count` lowest keys, in order; equal ones keep their order."""
    if len(keys) <= max(count, _FULL_SORT):
        return np.argsort(keys, kind="stable")[:count]
    last = np.partition(keys, count - 1)[count - 1]
    below = np.flatnonzero(keys < last)
    chosen = np.concatenate((below, np.flatnonzero(keys == last)[: count - len(below)]))
    return chosen[np.argsort(keys[chosen], kind="stable")]


class HitCounts:
    """Aggregations over the hits of searches in one catalog. `sellers` are the ids of all sellers by position.

    Every count is over all hits, not over a page. Most frequent first; among equals the one with the lowest part id
    first.
    """

    def __init__(self, column_store: columns.Columns, sellers: Sequence[str]) -> None:
        self._columns, self._sellers = column_store, sellers

    def makers(self, hits: SearchHits) -> LabelCounts:
        """(maker id, parts)."""
        return self._grouped("maker", hits, self._columns.labels("makers"))

    def categories(self, hits: SearchHits) -> LabelCounts:
        """(category id, parts) for the categories the parts are in themselves."""
        return self._grouped("category", hits, self._columns.labels("categories"))

    def stock(self, hits: SearchHits) -> list[tuple[bool, int]]:
        """Parts by whether any seller has them in stock: (in stock, parts)."""
        return self._grouped("stocked", hits, (False, True))

    def cad(self, hits: SearchHits) -> LabelCounts:
        """(state of `filters.CAD_STATES`, parts)."""
        names = {level: name for name, level in filters.CAD_STATES.items()}
        return self._grouped("cad", hits, [names[level] for level in range(len(names))])

    def sellers(self, hits: SearchHits) -> LabelCounts:
        """(seller id, parts it lists)."""
        mask = self._mask(hits)
        packed = np.packbits(mask)
        listed = [np.bitwise_and(packed, filters.bits(self._columns, i)) for i in range(len(self._sellers))]
        totals = np.array([np.bitwise_count(each).sum(dtype=np.int64) for each in listed], np.int64)

        def firsts(tied: columns.Array) -> columns.Array:
            ids = self._columns.column("ids")
            rows = (np.flatnonzero(np.unpackbits(listed[i], count=len(mask))) for i in tied.tolist())
            return np.array([ids[each].min() for each in rows], np.int64)

        return [(self._sellers[code], count) for code, count in _frequent(totals, firsts)]

    def values(self, hits: SearchHits, attribute: records.CatalogAttribute) -> records.SpecCounts:
        """The values of one property among the hits that have it."""
        labels = self._columns.labels(f"spec {attribute.shortname}")
        if not labels:
            return records.SpecCounts(attribute, (), None, None)
        rows, codes = filters.values(self._columns, attribute.shortname)
        inside = self._mask(hits)[rows]
        counts = self._by_code(codes[inside], rows[inside], len(labels))
        numbers = [labels[code] for code, _ in counts if not isinstance(labels[code], str)]
        return records.SpecCounts(
            attribute,
            tuple(_bucket(labels[code], count, attribute) for code, count in counts),
            min(numbers, default=None),
            max(numbers, default=None),
        )

    def unlisted(self, hits: SearchHits) -> int:
        """The number of hits that no seller lists."""
        return int(np.count_nonzero(self._columns.column("offers")[hits.rows] == 0))

    def all_in(self, column: str, labels: str) -> dict[str, int]:
        """The number of parts, of all parts, that have each value of a column."""
        totals = np.bincount(self._columns.column(column)).tolist()
        return dict(zip(self._columns.labels(labels), totals, strict=False))

    def _grouped(self, column: str, hits: SearchHits, labels: Sequence[Any]) -> list[tuple[Any, int]]:
        codes = self._columns.column(column)[hits.rows]
        return [(labels[code], count) for code, count in self._by_code(codes, hits.rows, len(labels))]

    def _by_code(self, codes: columns.Array, rows: columns.Array, size: int) -> list[tuple[int, int]]:
        def firsts(tied: columns.Array) -> columns.Array:
            lowest = np.full(size, np.iinfo(np.int64).max)
            among = np.isin(np.arange(size), tied)[codes]
            np.minimum.at(lowest, codes[among], self._columns.column("ids")[rows[among]])
            return lowest[tied]

        return _frequent(np.bincount(codes, minlength=size), firsts)

    def _mask(self, hits: SearchHits) -> columns.Array:
        mask = np.zeros(self._columns.length("ids"), bool)
        mask[hits.rows] = True
        return mask


def _frequent(totals: columns.Array, firsts: Callable[[columns.Array], columns.Array]) -> list[tuple[int, int]]:
    """(code, count) of the codes that occur. `firsts` gives the lowest part id of each code, which orders equal
    counts."""
    codes = np.flatnonzero(totals)
    amounts = totals[codes]
    _, which, often = np.unique(amounts, return_inverse=True, return_counts=True)
    tied = often[which] > 1
    lowest = np.zeros(len(codes), np.int64)
    if tied.any():
        lowest[tied] = firsts(codes[tied])
    order = np.lexsort((codes, lowest, -amounts))
    return list(zip(codes[order].tolist(), amounts[order].tolist(), strict=True))


def _bucket(value: float | str, count: int, attribute: records.CatalogAttribute) -> tuple[str, float | None, int]:
    if isinstance(value, str):
        return value, None, count
    return units.displayed(value, attribute.units_symbol).display, value, count


def split_values(spec_counts: records.SpecCounts) -> records.SpecCounts:
    """Split texts with several values, such as "I2C, SPI", into a bucket for each value, as filters take each of them.
    Most frequent first; equal ones stay in their order."""
    totals: Counter[tuple[str, float | None]] = Counter()
    for display, number, count in spec_counts.buckets:
        values = [display] if number is not None else dict.fromkeys(map(str.strip, display.split(",")))
        totals.update(dict.fromkeys(((value, number) for value in values), count))
    return replace(spec_counts, buckets=tuple((*value, count) for value, count in totals.most_common()))
