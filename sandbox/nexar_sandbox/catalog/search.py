"""The three ways to find parts: match by identifier, search by part number, full-text search; and completions: the
catalog's own part numbers and names, no dictionary.

matching.py defines which texts are equal, filters.py the filters, full_text.py the expression of a text. Here they
become ordered hits.
"""
# ruff: noqa: S608  the SQL is composed of literals in this package; user input is passed as parameters

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from nexar_sandbox.catalog import (
    database,
    filters,
    full_text,
    listings,
    matching,
    offers,
    records,
    reference_data,
    rules,
    skus,
    source_files,
)
from nexar_sandbox.catalog.filters import BEST, Clause, among

MOST_WORDS = full_text.MOST_WORDS
# How closely a number `n` equals a query, as in matching.py: of equal ones a part's own, then in their order.
_CLOSENESS = """(CASE WHEN n.mpn = ? THEN 0 WHEN n.norm = ? THEN 1 WHEN substr(n.norm, 1, ?) = ? THEN 2 ELSE 3 END
    * 2 + n.aka)"""
_ROWS = 1 << 40  # more than a table has


class CatalogSearch:
    def __init__(self, connection: sqlite3.Connection, reference: reference_data.ReferenceData, seed: int) -> None:
        self._connection, self._reference, self._seed = connection, reference, seed
        self._decoder = msgspec.json.Decoder(source_files.PartLine)
        self.filters = filters.CatalogFilters(connection, reference)

    def match(self, query: records.MatchQuery, conditions: records.SearchConditions) -> records.SearchHits:
        """Parts equal to the query after normalization: literally equal first, then those with most offers.

        Raises ValueError for a query without any identifier, manufacturer or seller.
        """
        passes = self.filters.of(conditions)
        company_filters = self.filters.of_query(query, conditions.search_rules)
        matches = self._by_identifier(query, conditions.search_rules)
        if matches is None:
            if not company_filters:
                raise ValueError("Missing search filters")
            return self._select("parts p", [*passes, *company_filters], Clause(BEST))
        rows = self._rows("p.id, p.maker", "parts p", [among("p.id", matches), *passes, *company_filters], Clause(BEST))
        rows.sort(key=lambda row: matches[row[0]][0])
        found = [part for part, maker in rows if conditions.search_rules.makers_share_numbers or maker == rows[0][1]]
        return records.SearchHits(found, {part: aka for part in found if (aka := matches[part][1]) is not None})

    def by_mpn(
        self, q: str, conditions: records.SearchConditions, sort: str = "", descending: bool = False
    ) -> records.SearchHits:
        """Parts whose number contains `q`: equal ones first, then those with this prefix, then the others."""
        q = clean(q)
        search_rules = conditions.search_rules
        passes, order = self.filters.of(conditions), self.filters.order(sort, descending, search_rules)
        norm = matching.normalize(q)
        if not norm:
            return self._all_or_none(q, passes, order, search_rules)
        direction = "ASC" if search_rules.equal_numbers_first else "DESC"
        # With min(), SQLite takes the other columns from the row that has it.
        # CROSS: names are read once, first. SQLite would read all of them again for each part that a filter passes.
        rows = self._rows(
            f"p.id, min({_CLOSENESS} * {_ROWS} + n.rowid) / {_ROWS} AS close, n.mpn",
            "names n CROSS JOIN parts p ON p.id = n.part",
            [Clause("instr(n.norm, ?)", (norm,)), *passes],
            order or Clause(f"close {direction}, {BEST}"),
            parameters=(q, norm, len(norm), norm),
            grouped="GROUP BY p.id"
            if search_rules.numbers_found_by_piece
            else f"GROUP BY p.id HAVING close < {2 * matching.PREFIX}",
        )
        akas = {part: mpn for part, close, mpn in rows if close % 2}
        return records.SearchHits([part for part, _, _ in rows], akas)

    def by_text(
        self, q: str, conditions: records.SearchConditions, sort: str = "", descending: bool = False
    ) -> records.SearchHits:
        """Parts that have every word of `q`, the last of which may be a prefix; most relevant first."""
        q = clean(q)
        search_rules = conditions.search_rules
        passes, order = self.filters.of(conditions), self.filters.order(sort, descending, search_rules)
        expression = full_text.expression(q, search_rules.last_word_is_prefix, search_rules.every_word_needed)
        if not expression:
            return self._all_or_none(q, passes, order, search_rules)
        # Parts whose number equals the query come first, ordered by their number of offers.
        equal = "-1e9" if search_rules.equal_numbers_first_in_text else "1e9"
        relevance = f"CASE WHEN p.norm = ? THEN {equal} ELSE {full_text.RELEVANCE} END, {BEST}"
        return self._select(
            "words JOIN parts p ON p.id = words.rowid",
            [Clause("words MATCH ?", (expression,)), *passes],
            order or Clause(relevance, (matching.normalize(q),)),
        )

    def with_number(self, piece: str, passes: Callable[[str], bool]) -> list[int]:
        norm = matching.normalize(clean(piece))
        rows = self._connection.execute("SELECT part, mpn FROM names WHERE instr(norm, ?)", (norm,))
        return [part for part, mpn in rows if passes(mpn)]

    def equal(self, norm: str) -> list[tuple[int, str, bool]]:
        """(part, number, whether it is an alternate one) of the numbers that normalize to `norm`."""
        return self._connection.execute(
            "SELECT part, mpn, aka FROM names WHERE norm = ? ORDER BY rowid", (norm,)
        ).fetchall()

    def suggest(
        self, q: str, category_id: str | None, limit: int, part_numbers_only: bool
    ) -> tuple[records.Suggestion, ...]:
        """Completions of `q`, most offered parts first: part numbers in their category, then names of makers and
        categories; inside `category_id` part numbers only."""
        reference, start = self._reference, matching.normalize(clean(q))
        if not start:
            return ()
        suggestions = self._numbers_with_prefix(start, category_id, limit)
        if not part_numbers_only and category_id is None:
            suggestions += [
                records.Suggestion(maker.name, "", "")
                for maker in reference.companies.values()
                if "manufacturer" in maker.roles and matching.normalize(maker.name).startswith(start)
            ]
            suggestions += [
                records.Suggestion(category.name, category.name, category.id)
                for category in reference.categories.values()
                if matching.normalize(category.name).startswith(start)
            ]
        return tuple(dict.fromkeys(suggestions))[:limit]

    def _numbers_with_prefix(self, start: str, category_id: str | None, limit: int) -> list[records.Suggestion]:
        categories = self._reference.categories
        inside = Clause("1")
        if category_id is not None:
            inside = among("p.category", self._reference.descendants(category_id) if category_id in categories else ())
        rows = self._connection.execute(
            "SELECT n.mpn, p.category FROM names n JOIN parts p ON p.id = n.part"
            f" WHERE n.norm >= ? AND n.norm < ? AND {inside.sql} ORDER BY p.offers DESC, n.mpn, n.rowid LIMIT ?",
            (start, start + full_text.END, *inside.parameters, limit),
        )
        return [records.Suggestion(mpn, categories[category].name, category) for mpn, category in rows]

    def _all_or_none(
        self, q: str, passes: list[Clause], order: Clause | None, search_rules: rules.SearchRules
    ) -> records.SearchHits:
        """Hits of a query without letters and digits: all parts for an empty query or wildcards only, otherwise
        none."""
        if q.strip(" *\t\n") or not search_rules.empty_query_finds_all:
            return records.SearchHits(())
        return self._select("parts p", passes, order or Clause(BEST))

    def _select(self, source: str, passes: Sequence[Clause], order: Clause) -> records.SearchHits:
        return records.SearchHits([part for (part,) in self._rows("p.id", source, passes, order)])

    def _rows(
        self,
        selected: str,
        source: str,
        passes: Sequence[Clause],
        order: Clause,
        *,
        parameters: Sequence[str | int] = (),
        grouped: str = "",
    ) -> list[tuple[Any, ...]]:
        """Rows of a query; `parameters` are those of `selected`."""
        where = " AND ".join(clause.sql for clause in passes) or "1"
        values = [*parameters, *(each for clause in passes for each in clause.parameters), *order.parameters]
        return self._connection.execute(
            f"SELECT {selected} FROM {source} WHERE {where} {grouped} ORDER BY {order.sql}", values
        ).fetchall()

    def _by_identifier(
        self, query: records.MatchQuery, search_rules: rules.SearchRules
    ) -> dict[int, tuple[int, str | None]] | None:
        """The parts that match every identifier of the query, with closeness and matched alternate number; None if the
        query has no identifier."""
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
        return {part: how for part, how in first.items() if all(part in other for other in others)}

    def _by_number(self, mpn: str, search_rules: rules.SearchRules) -> dict[int, tuple[int, str | None]]:
        norm = matching.normalize(mpn)
        if not norm:
            return {}
        if not search_rules.whole_numbers_match:
            return dict.fromkeys(self.with_number(mpn, lambda _: True), (matching.EQUAL, None))
        matches = [each for each in self.equal(norm) if matching.is_same(mpn, each[1], search_rules)]
        # Later entries of a dict win: the closest number of a part is last, and its own number after alternate ones.
        ordered = sorted(matches, key=lambda row: (row[1] == mpn, not row[2]))
        return {
            part: (matching.LITERAL if part_number == mpn else matching.EQUAL, part_number if aka else None)
            for part, part_number, aka in ordered
        }

    def _by_sku(self, code: str, seller: str | None) -> dict[int, tuple[int, str | None]]:
        norm = matching.normalize(code)
        if not norm:
            return {}
        among_sellers = None if seller is None else self.filters.sellers(clean(seller))
        return {
            int(line.id): (matching.EQUAL, None)
            for line in self._candidates(norm)
            if any(among_sellers is None or id_ in among_sellers for id_ in self._sellers_using(norm, line))
        }

    def _candidates(self, norm: str) -> list[source_files.PartLine]:
        possible = skus.candidates(norm)
        own = {part for mpn in possible.mpns for part, _, aka in self.equal(mpn) if not aka}
        ids = msgspec.json.encode(sorted({*possible.ids, *own})).decode()
        rows = self._connection.execute(
            "SELECT line FROM parts WHERE id IN (SELECT value FROM json_each(?) UNION SELECT part FROM skus"
            " WHERE norm = ?)",
            (ids, norm),
        )
        return [self._decoder.decode(line) for (line,) in rows]

    def _sellers_using(self, norm: str, line: source_files.PartLine) -> Iterable[str]:
        terms, path = database.offer_terms(line), self._reference.categories[line.category].path
        for listing in listings.listings(int(line.id), path, terms, self._reference.sellers, self._seed):
            codes = offers.order_codes(int(line.id), int(line.manufacturer), line.mpn, terms, listing)
            if any(matching.normalize(code) == norm for code in codes):
                yield listing.seller.id


def clean(text: str) -> str:
    """The text without lone surrogates, which SQLite rejects."""
    return text.encode("utf-8", "replace").decode()
