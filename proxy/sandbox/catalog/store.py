"""The catalog as the rest of the sandbox sees it: parts, their sellers, searches and counts.

`open_catalog` loads it; nothing in it changes afterwards. It knows no GraphQL, no HTTP and no plans; paging
is the caller's. One thread at a time may use it.
"""
# ruff: noqa: S608  the SQL is put together from pieces written here; what users write travels as parameters

import sqlite3
from functools import lru_cache
from pathlib import Path

import msgspec

from proxy.sandbox.catalog import (
    completion,
    counts,
    database,
    lines,
    loader,
    matching,
    offers,
    parts,
    records,
    search,
    several,
    vocabulary,
)

_SIMILAR = 5
_KEPT_PARTS = 4096
# A list of hits may be as long as the catalog.
_KEPT_SEARCHES = 32


def open_catalog(
    parts: int | None = None, extra: Path | None = None, seed: int = 1, data: Path = loader.SHIPPED
) -> "Catalog":
    """The shipped catalog in memory; `parts` fills it up with generated parts to that number in all, `extra`
    adds a parts file of one's own. Offers are the same for the same `seed`. `data` is the folder of the
    shipped files.

    Raises lines.CatalogError for a file that cannot be used, ValueError for more parts than can be made.
    """
    connection, words = loader.load(parts, extra, seed, data)
    return Catalog(connection, words, seed)


class Catalog:
    """Parts with everything about them. Ids are the service's numeric strings."""

    def __init__(self, connection: sqlite3.Connection, words: vocabulary.Vocabulary, seed: int) -> None:
        self._database = connection
        self._words = words
        self._seed = seed
        self._decoder = msgspec.json.Decoder(lines.PartLine)
        self._search = search.Search(connection, words, seed)
        self._parts = lru_cache(maxsize=_KEPT_PARTS)(self._part)
        self._sellers = lru_cache(maxsize=_KEPT_PARTS)(self._seller_offers)
        self._by_mpn = lru_cache(maxsize=_KEPT_SEARCHES)(self._search.by_mpn)
        self._by_text = lru_cache(maxsize=_KEPT_SEARCHES)(self._search.by_text)
        self._num_parts = lru_cache(maxsize=None)(self._count_parts)

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def part(self, id: str) -> records.Part | None:
        """The part with this id, or None."""
        return self._parts(id)

    def part_by_uid(self, v3uid: str) -> records.Part | None:
        """The part with this v3 uid; for a redirected one the part that survived; None for an unknown one."""
        uid = search.clean(v3uid.lower())
        row = self._database.execute(
            "SELECT id FROM parts WHERE uid = ?1 UNION ALL SELECT part FROM uids WHERE uid = ?1", (uid,)
        ).fetchone()
        return self._parts(str(row[0])) if row else None

    def match(self, query: records.MatchQuery, conditions: records.Conditions) -> records.Ranked:
        """supMultiMatch (contract graphql.md §2.3). Raises ValueError for a query that names nothing and for
        conditions that cannot be read."""
        return self._search.match(query, conditions)

    def search_mpn(
        self, q: str, conditions: records.Conditions, sort: str = "", descending: bool = False
    ) -> records.Ranked:
        """supSearchMpn: partial part numbers, equal ones first. ValueError for an unknown filter or sort
        key."""
        return self._by_mpn(q, conditions, sort, descending)

    def search(
        self, q: str, conditions: records.Conditions, sort: str = "", descending: bool = False
    ) -> records.Ranked:
        """supSearch: free text, most relevant first. ValueError for an unknown filter or sort key."""
        return self._by_text(q, conditions, sort, descending)

    def sellers_of(self, part: records.Part, country: str = "US") -> tuple[records.SellerOffers, ...]:
        """What all sellers, brokers too, list of the part, as seen from `country` (ISO 3166 alpha-2)."""
        return self._sellers(part.id, country)

    def manufacturers(self) -> tuple[records.Company, ...]:
        """Every maker."""
        return tuple(one for one in self._words.companies.values() if "manufacturer" in one.roles)

    def sellers(self) -> tuple[records.Company, ...]:
        """Every seller."""
        return tuple(one for one in self._words.companies.values() if "seller" in one.roles)

    def categories(self) -> tuple[records.Category, ...]:
        """Every category."""
        return tuple(self._words.categories.values())

    def attributes(self) -> tuple[records.Attribute, ...]:
        """Every kind of property."""
        return tuple(self._words.attributes.values())

    def company(self, id: str) -> records.Company | None:
        """The maker or seller with this id, or None."""
        return self._words.companies.get(id)

    def category(self, id: str) -> records.Category | None:
        """The category with this id, or None."""
        return self._words.categories.get(id)

    def ancestors(self, id: str) -> tuple[records.Category, ...]:
        """From the root down to the parent. KeyError for an unknown id."""
        return self._words.ancestors(id)

    def children(self, id: str) -> tuple[records.Category, ...]:
        """The direct children; empty for a leaf."""
        return self._words.children(id)

    def num_parts(self, category_id: str) -> int:
        """Parts in the category and everything under it. KeyError for an unknown id."""
        return sum(self._num_parts("category", below) for below in self._words.descendants(category_id))

    def num_parts_made(self, company_id: str) -> int:
        """Parts of one maker; 0 for others."""
        return self._num_parts("maker", company_id)

    def suggest(
        self, q: str, category_id: str | None = None, limit: int = 10, part_numbers_only: bool = False
    ) -> tuple[records.Suggestion, ...]:
        """Completions of a beginning."""
        return completion.suggest(
            self._database,
            self._words,
            search.clean(q),
            category_id=category_id,
            limit=limit,
            part_numbers_only=part_numbers_only,
        )

    def spelling(self, q: str) -> tuple[records.Correction, ...]:
        """Another spelling that finds something; empty where every word of `q` occurs."""
        return completion.correct(self._database, search.clean(q), self._hits)

    def manufacturer_counts(self, hits: records.Ranked) -> tuple[tuple[records.Company, int], ...]:
        """How many of the hits each maker makes, most first; so are all the counts."""
        return tuple((self._words.companies[id_], count) for id_, count in counts.makers(self._database, hits))

    def distributor_counts(self, hits: records.Ranked) -> tuple[tuple[records.Company, int], ...]:
        """How many of the hits each seller lists."""
        found = counts.sellers(self._database, hits, self._words)
        return tuple((self._words.companies[id_], count) for id_, count in found)

    def category_counts(self, hits: records.Ranked) -> tuple[tuple[records.Category, int], ...]:
        """How many of the hits are directly in each category."""
        found = counts.categories(self._database, hits)
        return tuple((self._words.categories[id_], count) for id_, count in found)

    def in_stock_counts(self, hits: records.Ranked) -> tuple[tuple[bool, int], ...]:
        """How many of the hits somebody (no broker) has in stock, and how many nobody."""
        return tuple(counts.stock(self._database, hits))

    def cad_counts(self, hits: records.Ranked) -> tuple[tuple[str, int], ...]:
        """How many of the hits have "symbol_footprint_3d", "symbol_footprint" and "none"."""
        return tuple(counts.cad(self._database, hits))

    def spec_counts(self, hits: records.Ranked, shortname: str) -> records.SpecCounts:
        """How the values of one property spread over the hits; a hit with several counts for each. ValueError for an
        unknown shortname."""
        return several.each(self._texts(hits, shortname))

    def with_value(self, hits: records.Ranked, shortname: str) -> int:
        """How many of the hits have a value of the property. ValueError for an unknown shortname."""
        return sum(count for _, _, count in self._texts(hits, shortname).buckets)

    def _texts(self, hits: records.Ranked, shortname: str) -> records.SpecCounts:
        if shortname not in self._words.attributes:
            raise ValueError(f"there is no attribute {shortname!r}")
        return counts.values(self._database, hits, self._words.attributes[shortname])

    def _line(self, id_: str) -> lines.PartLine | None:
        if not (id_.isascii() and id_.isdecimal() and len(id_) < 16):
            return None
        row = self._database.execute("SELECT line FROM parts WHERE id = ?", (int(id_),)).fetchone()
        return self._decoder.decode(row[0]) if row else None

    def _part(self, id_: str) -> records.Part | None:
        line = self._line(id_)
        return None if line is None else parts.build(line, self._words, self._similar(line))

    def _seller_offers(self, id_: str, country: str) -> tuple[records.SellerOffers, ...]:
        line, part = self._line(id_), self._parts(id_)
        if line is None or part is None:
            return ()
        return offers.seller_offers(part, database.terms(line), self._words.sellers, self._seed, country)

    def _similar(self, line: lines.PartLine) -> tuple[str, ...]:
        """Parts of the same number from other makers, then the most offered ones of the category."""
        rows = self._database.execute(
            "SELECT DISTINCT id FROM (SELECT part AS id FROM names WHERE aka = 0 AND norm = ?1 UNION ALL"
            " SELECT * FROM (SELECT id FROM parts WHERE category = ?2 ORDER BY offers DESC LIMIT ?4 + 1))"
            " WHERE id <> ?3 LIMIT ?4",
            (matching.normalise(line.mpn), line.category, int(line.id), _SIMILAR),
        )
        return tuple(str(id_) for (id_,) in rows)

    def _count_parts(self, column: str, value: str) -> int:
        row = self._database.execute(f"SELECT count(*) FROM parts WHERE {column} = ?", (value,)).fetchone()
        return int(row[0])

    def _hits(self, q: str) -> int:
        return len(self._by_text(q, records.Conditions(), "", False).ids)
