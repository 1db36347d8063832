"""The catalog: parts, their sellers, searches and aggregations. The interface of this package.

`open_catalog` loads a catalog, which is immutable afterwards. Paging is up to the caller. One thread at a time may use
a catalog.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from nexar_sandbox.catalog import (
    database,
    filters,
    loader,
    matching,
    offers,
    parts,
    pricing,
    records,
    reference_data,
    search,
    units,
)

_SIMILAR = 5
_CAD_NAMES = {level: name for name, level in filters.CAD_STATES.items()}
# A list of hits may be as long as the catalog.
_CACHED_SEARCHES = 32


def open_catalog(extra: Path | None = None, data: Path = loader.SHIPPED) -> "Catalog":
    """The shipped catalog in memory; `extra` adds a parts file of one's own. `data` is the folder of the shipped files.

    Raises records.CatalogError for a file that cannot be used, and for more parts than `loader.MOST_PARTS`.
    """
    return Catalog(*loader.load(extra, data))


class Catalog:
    """Parts with everything about them, by the service's numeric strings. `reference` has companies, categories and
    attributes."""

    def __init__(self, lines: Mapping[int, records.PartLine], reference: reference_data.ReferenceData) -> None:
        connection = self._connection = database.create(lines, reference)
        self._lines, self.reference = lines, reference
        self._by_id = {line.id: line for line in lines.values()}
        self._by_uid = {uid: line.id for line in lines.values() for uid in (line.v3uid, *line.redirected)}
        connection.create_function("median_price", 1, lambda part: pricing.median(self._prices(part)))
        connection.create_function("mean_price", 1, lambda part: pricing.mean(self._prices(part)))
        self._search = search.CatalogSearch(connection, lines, reference)
        self.suggest = self._search.suggest
        # Cached for each catalog: a decorator of the methods would keep every catalog in memory.
        self._parts = lru_cache(maxsize=loader.MOST_PARTS)(self._part)
        self._sellers = lru_cache(maxsize=loader.MOST_PARTS)(self._seller_offers)
        self._by_mpn = lru_cache(maxsize=_CACHED_SEARCHES)(self._search.by_mpn)
        self._by_text = lru_cache(maxsize=_CACHED_SEARCHES)(self._search.by_text)
        # The columns are named by this module.
        self._column = cache(lambda name: dict(connection.execute(f"SELECT id, {name} FROM parts")))  # noqa: S608
        self._listings = cache(self._read_listings)
        self._parts_by_category = cache(lambda: Counter(self._column("category").values()))

    def close(self) -> None:
        self._connection.close()

    def part(self, id: str) -> records.Part | None:
        return self._parts(id)

    def part_by_uid(self, v3uid: str) -> records.Part | None:
        """The part with this v3 uid; for a redirected uid its target; None for an unknown one."""
        id_ = self._by_uid.get(v3uid.lower())
        return None if id_ is None else self._parts(id_)

    def match(self, query: records.MatchQuery, conditions: records.SearchConditions) -> records.SearchHits:
        """SupMultiMatch (contract graphql.md §2.3). Raises ValueError for an empty query and for invalid conditions."""
        return self._search.match(query, conditions)

    def search_mpn(
        self, q: str, conditions: records.SearchConditions, sort: str = "", descending: bool = False
    ) -> records.SearchHits:
        """supSearchMpn: partial part numbers, equal ones first. ValueError for an unknown filter or sort key."""
        return self._by_mpn(q, conditions, sort, descending)

    def search(
        self, q: str, conditions: records.SearchConditions, sort: str = "", descending: bool = False
    ) -> records.SearchHits:
        """supSearch: free text, most relevant first. ValueError for an unknown filter or sort key."""
        return self._by_text(q, conditions, sort, descending)

    def parts(self) -> list[records.Part]:
        """All parts, those with most offers first."""
        return self.parts_of(self.search("", records.SearchConditions()))

    def parts_of(self, hits: records.SearchHits) -> list[records.Part]:
        return [part for part in map(self.part, hits.ids) if part is not None]

    def sellers_of(self, part: records.Part, country: str = "US") -> tuple[records.SellerOffers, ...]:
        """The offers of all sellers, including brokers, for the part in `country` (ISO 3166 alpha-2)."""
        return self._sellers(part.id, country)

    def num_parts(self, category_id: str) -> int:
        """The number of parts in the category and its descendants. KeyError for an unknown id."""
        counts = self._parts_by_category()
        return sum(counts[below] for below in self.reference.descendants(category_id))

    def spelling(self, q: str) -> tuple[records.SpellingCorrection, ...]:
        """Corrected queries with hits; empty if every word of `q` occurs."""
        query = search.clean(q)
        corrected = self._search.correct(query)
        hits = 0 if corrected == query else self._by_text(corrected, records.SearchConditions(), "", False).hits
        return (records.SpellingCorrection(corrected, hits),) if hits else ()

    # Counts are over all hits, not over a page: most frequent first, of equal ones that of the lowest part id first.

    def manufacturer_counts(self, hits: records.SearchHits) -> tuple[tuple[records.Company, int], ...]:
        return tuple((self.reference.companies[id_], count) for id_, count in self._counted("maker", hits))

    def distributor_counts(self, hits: records.SearchHits) -> tuple[tuple[records.Company, int], ...]:
        """Hits by seller; a part counts for each seller that lists it."""
        listings = self._listings()
        totals = Counter(seller for part in sorted(hits.parts) for seller in listings.get(part, ()))
        return tuple((self.reference.sellers[seller], count) for seller, count in totals.most_common())

    def category_counts(self, hits: records.SearchHits) -> tuple[tuple[records.Category, int], ...]:
        """Hits by category, without those of its descendants."""
        return tuple((self.reference.categories[id_], count) for id_, count in self._counted("category", hits))

    def in_stock_counts(self, hits: records.SearchHits) -> tuple[tuple[bool, int], ...]:
        """Hits with and without stock; brokers do not count."""
        return tuple((bool(stocked), count) for stocked, count in self._counted("stocked", hits))

    def cad_counts(self, hits: records.SearchHits) -> tuple[tuple[str, int], ...]:
        """Hits by CAD state: "symbol_footprint_3d", "symbol_footprint" or "none"."""
        return tuple((_CAD_NAMES[level], count) for level, count in self._counted("cad", hits))

    def spec_counts(self, hits: records.SearchHits, shortname: str) -> records.SpecCounts:
        """Hits by value of one attribute; a hit with several values, such as "I2C, SPI", counts for each. ValueError
        for an unknown shortname."""
        attribute = self.reference.attributes.get(shortname)
        if attribute is None:
            raise ValueError(f"there is no attribute {shortname!r}")
        specs = (self._lines[part].specs for part in sorted(hits.parts))
        values = Counter(each[shortname] for each in specs if shortname in each)
        totals: Counter[tuple[str, float | None]] = Counter()
        for value, count in values.most_common():
            totals.update(dict.fromkeys(_labels(value, attribute), count))
        numbers = [value for value in values if not isinstance(value, str)]
        buckets = tuple((*label, count) for label, count in totals.most_common())
        return records.SpecCounts(attribute, buckets, min(numbers, default=None), max(numbers, default=None))

    def _counted(self, column: str, hits: records.SearchHits) -> list[tuple[Any, int]]:
        return Counter(map(self._column(column).__getitem__, sorted(hits.parts))).most_common()

    def _read_listings(self) -> dict[int, list[int]]:
        """The positions of the sellers of each part."""
        sellers: dict[int, list[int]] = {}
        for part, seller in self._connection.execute("SELECT part, seller FROM listings ORDER BY seller"):
            sellers.setdefault(part, []).append(seller)
        return sellers

    def _part(self, id_: str) -> records.Part | None:
        line = self._by_id.get(id_)
        return None if line is None else parts.build(line, self.reference, self._similar(line))

    def _seller_offers(self, id_: str, country: str) -> tuple[records.SellerOffers, ...]:
        line, part = self._by_id.get(id_), self._parts(id_)
        if line is None or part is None:
            return ()
        return offers.seller_offers(part, database.offer_terms(line), self.reference.sellers, country)

    def _prices(self, part: int) -> list[float]:
        """Prices in USD of the sellers in the US."""
        return pricing.prices(self._sellers(str(part), "US"))

    def _similar(self, line: records.PartLine) -> tuple[str, ...]:
        """Parts of the same number from other makers, then the most offered ones of the category."""
        same = [part for part, _, aka in self._search.equal(matching.normalize(line.mpn)) if not aka]
        rows = self._connection.execute(
            "SELECT id FROM parts WHERE category = ? ORDER BY offers DESC, id LIMIT ?", (line.category, _SIMILAR + 1)
        )
        ids = dict.fromkeys([*sorted(same), *(part for (part,) in rows)])
        return tuple(str(id_) for id_ in ids if id_ != int(line.id))[:_SIMILAR]


def _labels(value: float | str, attribute: records.CatalogAttribute) -> list[tuple[str, float | None]]:
    """What a value counts for: as it is displayed, and the number."""
    if isinstance(value, str):
        return [(text.strip(), None) for text in value.split(",")]
    return [(units.displayed(value, attribute.units_symbol).display, value)]
