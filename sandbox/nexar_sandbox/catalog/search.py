"""The three ways to find parts: match by identifier, search by part number, full-text search; completions from the
catalog's own part numbers and names, no dictionary; and corrections of misspelt words.

matching.py defines which texts are equal, filters.py the filters. Here they become ordered hits. Of texts, letters and
digits make a token; case and accents do not count.
"""
# ruff: noqa: S608  the SQL is composed of literals in this package; user input is passed as parameters

import difflib
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from nexar_sandbox.catalog import filters, matching, records, reference_data
from nexar_sandbox.catalog.filters import BEST, Clause, among

# Further words of a query are ignored.
MOST_WORDS = 32
# How closely a number `n` equals a query: as it is written, after normalization, at its beginning, anywhere; of equal
# ones a part's own, then in their order.
_CLOSENESS = """(CASE WHEN n.mpn = ? THEN 0 WHEN n.norm = ? THEN 1 WHEN substr(n.norm, 1, ?) = ? THEN 2 ELSE 3 END
    * 2 + n.aka)"""
_ROWS = 1 << 40  # more than a table has
# Lower is better: part number, maker, category, description and values weigh differently. Parts whose number equals the
# query come first.
_RELEVANCE = f"CASE WHEN p.norm = ? THEN -1e9 ELSE bm25(words, 10.0, 4.0, 3.0, 2.0, 1.0) END, {BEST}"
_END = "\U0010ffff"
# The least similarity (0 to 1, difflib) of a correction, and how many words are compared.
_SIMILARITY, _MOST_CANDIDATES = 0.7, 3000

# By part: whether it matches literally (0) or after normalization (1), and the matched alternate number.
Matches = dict[int, tuple[int, str | None]]


class CatalogSearch:
    def __init__(
        self,
        connection: sqlite3.Connection,
        lines: Mapping[int, records.PartLine],
        reference: reference_data.ReferenceData,
    ) -> None:
        self._connection, self._reference = connection, reference
        self.filters = filters.CatalogFilters(lines, reference)

    def match(self, query: records.MatchQuery, conditions: records.SearchConditions) -> records.SearchHits:
        """Parts equal to the query after normalization: literally equal first, then those with most offers.

        Raises ValueError for a query without any identifier, manufacturer or seller.
        """
        passes = self.filters.of(conditions)
        company_filters = self.filters.of_query(query)
        matches = self._by_identifier(query)
        if matches is None:
            if not company_filters:
                raise ValueError("Missing search filters")
            return self._select("parts p", [*passes, *company_filters], Clause(BEST))
        found = self._select("parts p", [among("p.id", matches), *passes, *company_filters], Clause(BEST)).parts
        found = sorted(found, key=lambda part: matches[part][0])
        return records.SearchHits(found, {part: aka for part in found if (aka := matches[part][1]) is not None})

    def by_mpn(
        self, q: str, conditions: records.SearchConditions, sort: str = "", descending: bool = False
    ) -> records.SearchHits:
        """Parts whose number contains `q`: equal ones first, then those with this prefix, then the others."""
        q = clean(q)
        passes, order = self.filters.of(conditions), self.filters.order(sort, descending)
        norm = matching.normalize(q)
        if not norm:
            return self._all_or_none(q, passes, order)
        # With min(), SQLite takes the other columns from the row that has it.
        # CROSS: names are read once, first. SQLite would read all of them again for each part that a filter passes.
        rows = self._rows(
            f"p.id, min({_CLOSENESS} * {_ROWS} + n.rowid) / {_ROWS} AS close, n.mpn",
            "names n CROSS JOIN parts p ON p.id = n.part",
            [Clause("instr(n.norm, ?)", (norm,)), *passes],
            order or Clause(f"close, {BEST}"),
            parameters=(q, norm, len(norm), norm),
            grouped="GROUP BY p.id",
        )
        akas = {part: mpn for part, close, mpn in rows if close % 2}
        return records.SearchHits([part for part, _, _ in rows], akas)

    def by_text(
        self, q: str, conditions: records.SearchConditions, sort: str = "", descending: bool = False
    ) -> records.SearchHits:
        """Parts that have every word of `q`, the last of which may be a prefix; most relevant first."""
        q = clean(q)
        passes, order = self.filters.of(conditions), self.filters.order(sort, descending)
        expression = _full_text(q)
        if not expression:
            return self._all_or_none(q, passes, order)
        return self._select(
            "words JOIN parts p ON p.id = words.rowid",
            [Clause("words MATCH ?", (expression,)), *passes],
            order or Clause(_RELEVANCE, (matching.normalize(q),)),
        )

    def equal(self, norm: str) -> list[tuple[int, str, bool]]:
        """(part, number, whether it is an alternate one) of the numbers that normalize to `norm`."""
        return self._connection.execute(
            "SELECT part, mpn, aka FROM names WHERE norm = ? ORDER BY rowid", (norm,)
        ).fetchall()

    def suggest(
        self, q: str, category_id: str | None = None, limit: int = 10, part_numbers_only: bool = False
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

    def correct(self, q: str) -> str:
        """`q` with each word that no part has replaced by the most similar one that occurs; unchanged without one."""
        typed = [word.lower() for word in matching.words(q)]
        corrected = [self._most_similar(word) for word in typed]
        return q if corrected == typed else " ".join(corrected)

    def _most_similar(self, word: str) -> str:
        """The word itself if it or a word with this prefix occurs; else the most similar one, if any."""
        if self._with_prefix(word, 1):
            return word
        # The first letters are rarely wrong. There are many words with digits, so more of their letters must be equal.
        stem = word[: 3 if any(char.isdecimal() for char in word) else 1]
        frequent = self._with_prefix(stem, _MOST_CANDIDATES)
        candidates = [term for term in frequent if abs(len(term) - len(word)) <= 2]
        return next(iter(difflib.get_close_matches(word, candidates, n=1, cutoff=_SIMILARITY)), word)

    def _with_prefix(self, start: str, limit: int) -> list[str]:
        """The tokens with this prefix that most parts have, most frequent first, equal ones in sorted order."""
        rows = self._connection.execute(
            "SELECT term FROM terms WHERE term >= ? AND term < ? ORDER BY doc DESC, term LIMIT ?",
            (start, start + _END, limit),
        )
        return [term for (term,) in rows]

    def _numbers_with_prefix(self, start: str, category_id: str | None, limit: int) -> list[records.Suggestion]:
        categories = self._reference.categories
        inside = Clause("1")
        if category_id is not None:
            inside = among("p.category", self._reference.descendants(category_id) if category_id in categories else ())
        rows = self._connection.execute(
            "SELECT n.mpn, p.category FROM names n JOIN parts p ON p.id = n.part"
            f" WHERE n.norm >= ? AND n.norm < ? AND {inside.sql} ORDER BY p.offers DESC, n.mpn, n.rowid LIMIT ?",
            (start, start + _END, *inside.parameters, limit),
        )
        return [records.Suggestion(mpn, categories[category].name, category) for mpn, category in rows]

    def _all_or_none(self, q: str, passes: list[Clause], order: Clause | None) -> records.SearchHits:
        """Hits of a query without letters and digits: all parts for an empty query or wildcards only, otherwise
        none."""
        if q.strip(" *\t\n"):
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

    def _by_identifier(self, query: records.MatchQuery) -> Matches | None:
        """The parts that match every identifier of the query; None if the query has no identifier."""
        keys = []
        if query.mpn is not None:
            keys.append(self._by_number(clean(query.mpn)))
        if query.sku is not None:
            keys.append(self._by_sku(clean(query.sku), query.seller))
        if query.mpn_or_sku is not None:
            either = clean(query.mpn_or_sku)
            keys.append({**self._by_sku(either, query.seller), **self._by_number(either)})
        if not keys:
            return None
        first, *others = keys
        return {part: how for part, how in first.items() if all(part in other for other in others)}

    def _by_number(self, mpn: str) -> Matches:
        norm = matching.normalize(mpn)
        # Later entries of a dict win: the closest number of a part is last, and its own number after alternate ones.
        ordered = sorted(self.equal(norm) if norm else (), key=lambda row: (row[1] == mpn, not row[2]))
        return {part: (int(number != mpn), number if aka else None) for part, number, aka in ordered}

    def _by_sku(self, code: str, seller: str | None) -> Matches:
        norm = matching.normalize(code)
        sold = Clause("1") if seller is None else among("seller", self.filters.sellers(clean(seller)))
        rows = self._connection.execute(
            f"SELECT part FROM skus WHERE norm = ? AND norm <> '' AND {sold.sql}", (norm, *sold.parameters)
        )
        return {part: (1, None) for (part,) in rows}


def clean(text: str) -> str:
    """The text without lone surrogates, which SQLite rejects."""
    return text.encode("utf-8", "replace").decode()


def _full_text(q: str) -> str:
    """The FTS5 expression for parts that have every word of a query; "" without a letter or digit.

    "SN74-S74N" is searched in that form and without punctuation. The last word may be the beginning of a token, like
    each that ends with "*".
    """
    typed = [word for word in q.split() if matching.normalize(word)][:MOST_WORDS]
    return " AND ".join(_spellings(word, place == len(typed)) for place, word in enumerate(typed, 1))


def _spellings(word: str, open_end: bool) -> str:
    star = "*" if open_end or word.endswith("*") else ""
    spellings = dict.fromkeys((" ".join(matching.words(word)), matching.normalize(word)))
    return "(" + " OR ".join(f'"{spelling}"{star}' for spelling in spellings) + ")"
