"""Hits of a search, and aggregations over them."""

import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from nexar_sandbox.catalog import filters, records, reference_data, units

LabelCounts = list[tuple[str, int]]
_CAD_NAMES = {level: name for name, level in filters.CAD_STATES.items()}


class SearchHits:
    """All hits, best first: `parts` are the numbers of their ids, `akas` the alternate MPNs of those that matched by
    one."""

    def __init__(self, parts: Sequence[int], akas: Mapping[int, str] | None = None) -> None:
        self.parts = parts
        self._akas = akas or {}

    @property
    def hits(self) -> int:
        return len(self.parts)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(map(str, self.parts))

    def page(self, start: int, limit: int) -> tuple[str, ...]:
        return tuple(map(str, self.parts[start : start + limit]))

    def intersect(self, parts: Collection[int]) -> "SearchHits":
        inside = frozenset(parts)
        return SearchHits([part for part in self.parts if part in inside], self._akas)

    @property
    def aka(self) -> dict[str, str]:
        """The matched alternate MPN by part id, for the parts that matched by one."""
        return {str(part): self._akas[part] for part in self.parts if part in self._akas}

    def aka_of(self, id_: str) -> str | None:
        """The alternate MPN by which this part matched; None if it matched otherwise."""
        return self._akas.get(int(id_))


class HitCounts:
    """Aggregations over the hits of searches in one catalog.

    Every count is over all hits, not over a page. Most frequent first; among equals the one with the lowest part id
    first.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        reference: reference_data.ReferenceData,
        catalog_filters: filters.CatalogFilters,
    ) -> None:
        self._connection, self._reference, self._filters = connection, reference, catalog_filters
        # Cached for each catalog: a decorator of the methods would keep every catalog in memory.
        self._column = cache(self._read_column)
        self._codes = cache(self._read_codes)
        self._listings = cache(self._read_listings)

    def makers(self, hits: SearchHits) -> LabelCounts:
        """(maker id, parts)."""
        return self._counted("maker", hits)

    def categories(self, hits: SearchHits) -> LabelCounts:
        """(category id, parts) for the categories the parts are in themselves."""
        return self._counted("category", hits)

    def stock(self, hits: SearchHits) -> list[tuple[bool, int]]:
        """Parts by whether any seller has them in stock: (in stock, parts)."""
        return [(bool(stocked), count) for stocked, count in self._counted("stocked", hits)]

    def cad(self, hits: SearchHits) -> LabelCounts:
        """(state of `filters.CAD_STATES`, parts)."""
        return [(_CAD_NAMES[level], count) for level, count in self._counted("cad", hits)]

    def sellers(self, hits: SearchHits) -> LabelCounts:
        """(seller id, parts it lists)."""
        listings = self._listings()
        totals = Counter(seller for part in sorted(hits.parts) for seller in listings.get(part, ()))
        return [(self._reference.sellers[seller].company.id, count) for seller, count in totals.most_common()]

    def values(self, hits: SearchHits, attribute: records.CatalogAttribute) -> records.SpecCounts:
        codes, labels = self._codes(attribute.shortname), self._filters.values(attribute.shortname)
        totals = Counter(codes[part] for part in sorted(hits.parts) if part in codes)
        numbers = [value for code in totals if not isinstance(value := labels[code], str)]
        return records.SpecCounts(
            attribute,
            tuple(_bucket(labels[code], count, attribute) for code, count in totals.most_common()),
            min(numbers, default=None),
            max(numbers, default=None),
        )

    def unlisted(self, hits: SearchHits) -> int:
        offers = self._column("offers")
        return sum(not offers[part] for part in hits.parts)

    def all_in(self, column: str) -> dict[str, int]:
        """The number of parts, of all parts, that have each value of a column."""
        return Counter(self._column(column).values())

    def _counted(self, column: str, hits: SearchHits) -> list[tuple[Any, int]]:
        return Counter(map(self._column(column).__getitem__, sorted(hits.parts))).most_common()

    def _read_column(self, name: str) -> dict[int, Any]:
        return dict(self._connection.execute(f"SELECT id, {name} FROM parts").fetchall())  # noqa: S608 - of this module

    def _read_codes(self, shortname: str) -> dict[int, int]:
        rows = self._connection.execute("SELECT part, code FROM specs WHERE attribute = ?", (shortname,))
        return dict(rows.fetchall())

    def _read_listings(self) -> dict[int, list[int]]:
        sellers: dict[int, list[int]] = {}
        for part, seller in self._connection.execute("SELECT part, seller FROM listings ORDER BY seller"):
            sellers.setdefault(part, []).append(seller)
        return sellers


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
