"""The three ways to find parts: match by identifier, search by part number, full-text search.

matching.py defines which texts are equal, filters.py the filters; part_numbers.py and full_text.py are the indexes.
Their results become ordered hits here.
"""
# ruff: noqa: S608  the SQL is composed of literals in this module; user input is passed as parameters

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from nexar_sandbox.catalog import (
    columns,
    filters,
    full_text,
    indexing,
    listings,
    matching,
    offers,
    part_numbers,
    records,
    reference_data,
    rules,
    search_hits,
    skus,
    source_files,
)

MOST_WORDS = full_text.MOST_WORDS


class CatalogSearch:
    """Searches in a filled database."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        column_store: columns.Columns,
        reference: reference_data.ReferenceData,
        seed: int,
    ) -> None:
        self._connection, self._columns = connection, column_store
        self._reference = reference
        self._seed = seed
        self._decoder = msgspec.json.Decoder(source_files.PartLine)
        self._filters = filters.CatalogFilters(
            column_store,
            reference,
            filters.CompanyNames(
                matching.CompanyNameIndex(
                    company for company in reference.companies.values() if "manufacturer" in company.roles
                ),
                matching.CompanyNameIndex(
                    company for company in reference.companies.values() if "seller" in company.roles
                ),
            ),
        )
        self.numbers = part_numbers.PartNumberIndex(connection, column_store)
        self.text = full_text.FullTextIndex(connection, column_store)

    def match(self, query: records.MatchQuery, conditions: records.SearchConditions) -> search_hits.SearchHits:
        """Parts equal to the query after normalization: literally equal first, then those with most offers.

        Raises ValueError for a query without any identifier, manufacturer or seller.
        """
        passes, company_filters = self._filters.of(conditions), self._filters.of_query(query, conditions.search_rules)
        matches = self._by_identifier(query, conditions.search_rules)
        if matches is None:
            if not company_filters:
                raise ValueError("Missing search filters")
            return self._filtered([*passes, *company_filters], None)
        rows = np.array(sorted(matches), np.int64)
        for each in (*passes, *company_filters):
            rows = rows[each(rows)]
        close = np.array([matches[row][0] for row in rows.tolist()], np.int64)
        if not conditions.search_rules.makers_share_numbers:
            rows, close = _of_best_maker(rows, close, self._columns.column("maker")[rows])
        ids = self._columns.column("ids")
        aka = {str(ids[row]): matched_aka for row in rows.tolist() if (matched_aka := matches[row][1]) is not None}
        akas = np.array([row for row in rows.tolist() if matches[row][1] is not None], np.int64)
        return search_hits.SearchHits(rows, ids, close, akas, aka.__getitem__)

    def by_mpn(
        self, q: str, conditions: records.SearchConditions, sort: str = "", descending: bool = False
    ) -> search_hits.SearchHits:
        """Parts whose number contains `q`: equal ones first, then those with this prefix, then the others."""
        q = clean(q)
        norm = matching.normalize(q)
        passes, order = self._filters.of(conditions), self._filters.order(sort, descending, conditions.search_rules)
        if not norm:
            return self._all_or_none(q, passes, order, conditions.search_rules)
        rows, close = self.numbers.closest(q, norm)
        if not conditions.search_rules.numbers_found_by_piece:
            rows, close = rows[close < 2 * matching.PREFIX], close[close < 2 * matching.PREFIX]
        for each in passes:
            passing = each(rows)
            rows, close = rows[passing], close[passing]
        relevance = close if conditions.search_rules.equal_numbers_first else -close
        keys, akas = relevance if order is None else order(rows), rows[close % 2 == 1]
        return search_hits.SearchHits(rows, self._columns.column("ids"), keys, akas, lambda id_: self._aka(q, id_))

    def by_text(
        self, q: str, conditions: records.SearchConditions, sort: str = "", descending: bool = False
    ) -> search_hits.SearchHits:
        """Parts that have every word of `q`, the last of which may be a prefix; most relevant first."""
        q = clean(q)
        passes, order = self._filters.of(conditions), self._filters.order(sort, descending, conditions.search_rules)
        query = full_text.parse_query(q, conditions.search_rules.last_word_is_prefix)
        if not query:
            return self._all_or_none(q, passes, order, conditions.search_rules)
        rows, scores = self.text.find(query, conditions.search_rules.every_word_needed)
        # Parts whose number equals the query come first, ordered by their number of offers.
        own = [place for place, _, aka in self.numbers.equal(matching.normalize(q)) if not aka]
        scores[np.isin(rows, self.numbers.parts(np.array(own, np.int64)))] = (
            -1e9 if conditions.search_rules.equal_numbers_first_in_text else 1e9
        )
        for each in passes:
            passing = each(rows)
            rows, scores = rows[passing], scores[passing]
        return search_hits.SearchHits(rows, self._columns.column("ids"), scores if order is None else order(rows))

    def hits_for(self, ids: Sequence[str]) -> search_hits.SearchHits:
        """The given parts, each once, as hits in this order. All ids must be in the catalog."""
        rows = self._rows(np.array([int(id_) for id_ in ids], np.int64))
        order = np.argsort(rows)
        return search_hits.SearchHits(rows[order], self._columns.column("ids"), order)

    def _all_or_none(
        self,
        q: str,
        passes: list[filters.RowFilter],
        order: filters.SortKeys | None,
        search_rules: rules.SearchRules,
    ) -> search_hits.SearchHits:
        """Hits of a query without letters and digits: all parts for an empty query or wildcards only, otherwise
        none."""
        if q.strip(" *\t\n") or not search_rules.empty_query_finds_all:
            return search_hits.SearchHits(np.empty(0, np.int64), self._columns.column("ids"))
        return self._filtered(passes, order)

    def _filtered(self, passes: list[filters.RowFilter], order: filters.SortKeys | None) -> search_hits.SearchHits:
        rows: columns.Array = np.arange(self._columns.length("ids"))
        for each in passes:
            rows = rows[each(rows)]
        return search_hits.SearchHits(rows, self._columns.column("ids"), None if order is None else order(rows))

    def _aka(self, q: str, id_: str) -> str:
        """The alternate number of the part that is closest to the query."""
        (line,) = self._lines("id = ?", (int(id_),))
        close = {aka: how for aka in line.aka if (how := matching.closeness(q, aka)) is not None}
        return min(close, key=close.__getitem__)

    def _by_identifier(
        self, query: records.MatchQuery, search_rules: rules.SearchRules
    ) -> dict[int, tuple[int, str | None]] | None:
        """The parts (rows) that match every identifier of the query, with closeness and matched alternate number; None
        if the query has no identifier."""
        keys = []
        if query.mpn is not None:
            keys.append(self._by_number(clean(query.mpn), search_rules))
        seller = query.seller if search_rules.seller_limits_sku else None
        if query.sku is not None:
            keys.append(self._by_sku(clean(query.sku), seller))
        if query.mpn_or_sku is not None:
            either = clean(query.mpn_or_sku)
            by_sku = self._by_sku(either, seller) if search_rules.mpn_or_sku_takes_skus else {}
            keys.append({**by_sku, **self._by_number(either, search_rules)})
        if not keys:
            return None
        first, *others = keys
        return {row: how for row, how in first.items() if all(row in other for other in others)}

    def _by_number(self, mpn: str, search_rules: rules.SearchRules) -> dict[int, tuple[int, str | None]]:
        norm = matching.normalize(mpn)
        if not search_rules.whole_numbers_match and norm:
            return {row: (matching.EQUAL, None) for row in self.numbers.closest(mpn, norm)[0].tolist()}
        matches = [
            each for each in (self.numbers.equal(norm) if norm else ()) if matching.is_same(mpn, each[1], search_rules)
        ]
        # Later entries of a dict win: the closest number of a part is last, and its own number after alternate ones.
        ordered = sorted(matches, key=lambda row: (row[1] == mpn, not row[2]))
        rows = self.numbers.parts(np.array([place for place, _, _ in ordered], np.int64)).tolist()
        return {
            row: (matching.LITERAL if part_number == mpn else matching.EQUAL, part_number if aka else None)
            for row, (_, part_number, aka) in zip(rows, ordered, strict=True)
        }

    def _by_sku(self, code: str, seller: str | None) -> dict[int, tuple[int, str | None]]:
        norm = matching.normalize(code)
        if not norm:
            return {}
        seller_positions = None if seller is None else self._filters.sellers(clean(seller))
        ids = [
            int(line.id)
            for line in self._candidates(norm)
            if any(seller_positions is None or id_ in seller_positions for id_ in self._sellers_using(norm, line))
        ]
        return {row: (matching.EQUAL, None) for row in self._rows(np.array(ids, np.int64)).tolist()}

    def _candidates(self, norm: str) -> list[source_files.PartLine]:
        possible = skus.candidates(norm)
        own = [place for mpn in possible.mpns for place, _, aka in self.numbers.equal(mpn) if not aka]
        positions = self.numbers.parts(np.array(own, np.int64))
        ids = {*possible.ids, *self._columns.column("ids")[positions].tolist()}
        among = msgspec.json.encode(sorted(ids)).decode()
        return self._lines(
            "id IN (SELECT value FROM json_each(?) UNION SELECT part FROM skus WHERE norm = ?)", (among, norm)
        )

    def _lines(self, where: str, params: tuple[str | int, ...]) -> list[source_files.PartLine]:
        rows = self._connection.execute(f"SELECT line FROM parts WHERE {where}", params)
        return [self._decoder.decode(line) for (line,) in rows]

    def _rows(self, ids: columns.Array) -> columns.Array:
        """The rows of the parts with these ids."""
        order, every = self._columns.column("by_id"), self._columns.column("ids")
        sorted_ids = self._columns.derived("sorted ids", lambda: every[order])
        return order[np.searchsorted(sorted_ids, ids)].astype(np.int64)

    def _sellers_using(self, norm: str, line: source_files.PartLine) -> Iterable[str]:
        terms, path = indexing.offer_terms(line), self._reference.categories[line.category].path
        for listing in listings.listings(int(line.id), path, terms, self._reference.sellers, self._seed):
            codes = offers.order_codes(int(line.id), int(line.manufacturer), line.mpn, terms, listing)
            if any(matching.normalize(code) == norm for code in codes):
                yield listing.seller.company.id


def _of_best_maker(
    rows: columns.Array, close: columns.Array, makers: columns.Array
) -> tuple[columns.Array, columns.Array]:
    """The rows, with their closeness, of the maker of the best one."""
    same = makers == makers[np.argmin(close)] if len(rows) else np.empty(0, bool)
    return rows[same], close[same]


def clean(text: str) -> str:
    """The text without lone surrogates, which SQLite rejects."""
    return text.encode("utf-8", "replace").decode()
