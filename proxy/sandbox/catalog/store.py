"""The catalog as the rest of the sandbox sees it: parts, their sellers, searches and counts.

`open_catalog` loads it; nothing in it changes afterwards. It knows no GraphQL, no HTTP and no plans; paging
is the caller's. One thread at a time may use it.
"""

import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import cast

import msgspec
import numpy as np

from proxy.sandbox.catalog import (
    columns,
    completion,
    counts,
    describing,
    lines,
    loader,
    matching,
    offers,
    parts,
    ranked,
    records,
    search,
    several,
    vocabulary,
)
from proxy.sandbox.catalog import prepared as prepared_files

_SIMILAR = 5
_KEPT_PARTS = 4096
# A list of hits may be as long as the catalog.
_KEPT_SEARCHES = 32


def open_catalog(
    parts: int | None = None,
    extra: Path | None = None,
    seed: int = 1,
    data: Path = loader.SHIPPED,
    *,
    prepared: Path | None = None,
) -> "Catalog":
    """The shipped catalog in memory; `parts` fills it up with generated parts to that number in all, `extra`
    adds a parts file of one's own. Offers are the same for the same `seed`. `data` is the folder of the
    shipped files. `prepared` is a file to keep the catalog in: it is made where it is missing, see `prepare`.

    Raises lines.CatalogError for a file that cannot be used, ValueError for more parts than can be made.
    """
    if prepared is None:
        connection, words = loader.load(parts, extra, seed, data)
        return Catalog(connection, words, seed)
    source = prepared_files.Source(parts, extra, seed, data)
    if not prepared.exists():
        prepared_files.make(prepared, source)
    connection, words = prepared_files.read(prepared, source)
    return Catalog(connection, words, seed)


def prepare(
    path: Path,
    parts: int | None = None,
    extra: Path | None = None,
    seed: int = 1,
    *,
    processes: int = 1,
    progress: loader.Progress | None = None,
) -> None:
    """Make the file of a catalog that `open_catalog` then opens, in so many processes. The program that calls this
    with more than one must let itself be imported (`if __name__ == "__main__"`). `progress` hears how many parts there
    are and will be. Nothing is left behind if it fails. Raises what `open_catalog` raises."""
    prepared_files.make(path, prepared_files.Source(parts, extra, seed, loader.SHIPPED), processes, progress)


class Catalog:
    """Parts with everything about them. Ids are the service's numeric strings."""

    def __init__(self, connection: sqlite3.Connection, words: vocabulary.Vocabulary, seed: int) -> None:
        self._database = connection
        self._words = words
        self._seed = seed
        self._decoder = msgspec.json.Decoder(lines.PartLine)
        self._columns = stored = columns.Columns(connection)
        self._search = search.Search(connection, stored, words, seed)
        self._completion = completion.Completion(stored, words, (self._search.numbers, self._search.text))
        self._counts = counts.Counts(stored, [seller.company.id for seller in words.sellers])
        self._parts = lru_cache(maxsize=_KEPT_PARTS)(self._part)
        self._sellers = lru_cache(maxsize=_KEPT_PARTS)(self._seller_offers)
        self._by_mpn = lru_cache(maxsize=_KEPT_SEARCHES)(self._search.by_mpn)
        self._by_text = lru_cache(maxsize=_KEPT_SEARCHES)(self._search.by_text)

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

    def match(self, query: records.MatchQuery, conditions: records.Conditions) -> ranked.Ranked:
        """supMultiMatch (contract graphql.md §2.3). Raises ValueError for a query that names nothing and for
        conditions that cannot be read."""
        return self._search.match(query, conditions)

    def search_mpn(
        self, q: str, conditions: records.Conditions, sort: str = "", descending: bool = False
    ) -> ranked.Ranked:
        """supSearchMpn: partial part numbers, equal ones first. ValueError for an unknown filter or sort
        key."""
        return self._by_mpn(q, conditions, sort, descending)

    def search(self, q: str, conditions: records.Conditions, sort: str = "", descending: bool = False) -> ranked.Ranked:
        """supSearch: free text, most relevant first. ValueError for an unknown filter or sort key."""
        return self._by_text(q, conditions, sort, descending)

    def search_like(self, piece: str, passes: Callable[[str], bool], conditions: records.Conditions) -> ranked.Ranked:
        """Parts that have `piece` in a number which passes, in the order of `search_mpn` for the piece."""
        hits = self.search_mpn(piece, conditions)
        places = self._search.numbers.holding(matching.normalise(search.clean(piece)))
        written = self._search.numbers.written(places.tolist())
        chosen = np.array([passes(number) for number in written], bool)
        return hits.within(self._search.numbers.parts(places[chosen]))

    def unlisted(self, hits: ranked.Ranked) -> int:
        """How many of the hits no seller lists."""
        return self._counts.unlisted(hits)

    def among(self, ids: Sequence[str]) -> ranked.Ranked:
        """These parts, each once, as hits in this order. They must be the catalog's."""
        return self._search.among(ids)

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
        held = self._parts_in("category", "categories")
        return sum(held.get(below, 0) for below in self._words.descendants(category_id))

    def num_parts_made(self, company_id: str) -> int:
        """Parts of one maker; 0 for others."""
        return self._parts_in("maker", "makers").get(company_id, 0)

    def suggest(
        self, q: str, category_id: str | None = None, limit: int = 10, part_numbers_only: bool = False
    ) -> tuple[records.Suggestion, ...]:
        """Completions of a beginning."""
        return self._completion.suggest(
            search.clean(q),
            category_id=category_id,
            limit=limit,
            part_numbers_only=part_numbers_only,
        )

    def spelling(self, q: str) -> tuple[records.Correction, ...]:
        """Another spelling that finds something; empty where every word of `q` occurs."""
        return self._completion.correct(search.clean(q), self._hits)

    def manufacturer_counts(self, hits: ranked.Ranked) -> tuple[tuple[records.Company, int], ...]:
        """How many of the hits each maker makes, most first; so are all the counts."""
        return tuple((self._words.companies[id_], count) for id_, count in self._counts.makers(hits))

    def distributor_counts(self, hits: ranked.Ranked) -> tuple[tuple[records.Company, int], ...]:
        """How many of the hits each seller lists."""
        found = self._counts.sellers(hits)
        return tuple((self._words.companies[id_], count) for id_, count in found)

    def category_counts(self, hits: ranked.Ranked) -> tuple[tuple[records.Category, int], ...]:
        """How many of the hits are directly in each category."""
        found = self._counts.categories(hits)
        return tuple((self._words.categories[id_], count) for id_, count in found)

    def in_stock_counts(self, hits: ranked.Ranked) -> tuple[tuple[bool, int], ...]:
        """How many of the hits somebody (no broker) has in stock, and how many nobody."""
        return tuple(self._counts.stock(hits))

    def cad_counts(self, hits: ranked.Ranked) -> tuple[tuple[str, int], ...]:
        """How many of the hits have "symbol_footprint_3d", "symbol_footprint" and "none"."""
        return tuple(self._counts.cad(hits))

    def spec_counts(self, hits: ranked.Ranked, shortname: str) -> records.SpecCounts:
        """How the values of one property spread over the hits; a hit with several counts for each. ValueError for an
        unknown shortname."""
        return several.each(self._texts(hits, shortname))

    def with_value(self, hits: ranked.Ranked, shortname: str) -> int:
        """How many of the hits have a value of the property. ValueError for an unknown shortname."""
        return sum(count for _, _, count in self._texts(hits, shortname).buckets)

    def _texts(self, hits: ranked.Ranked, shortname: str) -> records.SpecCounts:
        if shortname not in self._words.attributes:
            raise ValueError(f"there is no attribute {shortname!r}")
        return self._counts.values(hits, self._words.attributes[shortname])

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
        return offers.seller_offers(part, describing.terms(line), self._words.sellers, self._seed, country)

    def _similar(self, line: lines.PartLine) -> tuple[str, ...]:
        """Parts of the same number from other makers, then the most offered ones of the category."""
        places = [place for place, _, aka in self._search.numbers.equal(matching.normalise(line.mpn)) if not aka]
        rows = [*self._search.numbers.parts(np.array(places, np.int64)).tolist(), *self._most_offered(line.category)]
        ids = dict.fromkeys(self._columns.whole("ids")[rows].tolist())
        return tuple(str(id_) for id_ in ids if id_ != int(line.id))[:_SIMILAR]

    def _most_offered(self, category: str) -> list[int]:
        def found() -> list[int]:
            inside = self._columns.whole("category") == self._columns.labels("categories").index(category)
            rows: list[int] = np.flatnonzero(inside)[: _SIMILAR + 1].tolist()
            return rows

        return cast(list[int], self._columns.derived(f"most offered in {category}", found))

    def _parts_in(self, column: str, labels: str) -> dict[str, int]:
        found = self._columns.derived(f"parts by {column}", lambda: self._counts.all_in(column, labels))
        return cast(dict[str, int], found)

    def _hits(self, q: str) -> int:
        return self._by_text(q, records.Conditions(), "", False).hits
