"""The three ways to find parts: a match, a search by part number, a search by text.

Used by the store only. Which text counts as equal is `matching`'s business, what a filter means `filters`'s;
here they become queries to the database.
"""
# ruff: noqa: S608  the SQL is put together from pieces written here; what users write travels as parameters

import sqlite3
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from proxy.sandbox.catalog import (
    database,
    filters,
    lines,
    listing,
    matching,
    offers,
    records,
    skus,
    vocabulary,
)

# Further words of a query are not looked at.
MOST_WORDS = 32


class Search:
    """Finds ids in a filled database."""

    def __init__(self, connection: sqlite3.Connection, words: vocabulary.Vocabulary, seed: int) -> None:
        self._database = connection
        self._words = words
        self._seed = seed
        self._decoder = msgspec.json.Decoder(lines.PartLine)
        self._names = filters.Companies(
            matching.Names(one for one in words.companies.values() if "manufacturer" in one.roles),
            matching.Names(one for one in words.companies.values() if "seller" in one.roles),
        )
        self._values = lru_cache(maxsize=256)(self._distinct)
        connection.create_function("closeness", 2, matching.closeness, deterministic=True)

    def match(self, query: records.MatchQuery, conditions: records.Conditions) -> records.Ranked:
        """Parts equal to the query after normalising: literally equal first, then those with most offers.

        Raises ValueError where the query names nothing to look for.
        """
        clauses = [self._where(conditions)]
        if query.manufacturer is not None:
            clauses.append(filters.among("p.maker", filters.makers(clean(query.manufacturer), self._names)))
        if query.seller is not None:
            clauses.append(filters.sold_by([clean(query.seller)], self._words, self._names))
        found = self._looked_up(query)
        if found is None:
            if len(clauses) == 1:
                raise ValueError("Missing search filters")
            return self._ranked(filters.joined(" AND ", clauses, "1"), filters.Clause("p.offers DESC, p.id"))
        clauses.append(filters.among("p.id", found))
        clause = filters.joined(" AND ", clauses, "1")
        rows = self._database.execute(f"SELECT p.id, p.offers FROM parts p WHERE {clause.sql}", clause.params)
        ranked = sorted(rows, key=lambda row: (found[row[0]][0], -row[1], row[0]))
        return _ranked([(id_, found[id_][1]) for id_, _ in ranked])

    def by_mpn(
        self, q: str, conditions: records.Conditions, sort: str = "", descending: bool = False
    ) -> records.Ranked:
        """Parts whose number holds `q` anywhere: equal ones first, then beginnings, then the rest."""
        q = clean(q)
        norm = matching.normalise(q)
        where, order = self._where(conditions), filters.order(sort, descending, self._words)
        if not norm:
            return self._everything(q, where, order)
        order = order or filters.Clause("rank, n.aka, p.offers DESC, p.id")
        rows = self._database.execute(
            "SELECT p.id, CASE WHEN n.aka THEN n.mpn END, closeness(?, n.mpn) AS rank"
            " FROM names n JOIN parts p ON p.id = n.part"
            f" WHERE instr(n.norm, ?) > 0 AND {where.sql} ORDER BY {order.sql}, rank, n.aka",
            (q, norm, *where.params, *order.params),
        )
        return _ranked((id_, aka) for id_, aka, _ in rows)

    def by_text(
        self, q: str, conditions: records.Conditions, sort: str = "", descending: bool = False
    ) -> records.Ranked:
        """Parts that have every word of `q` somewhere, the last word may be a beginning; best first."""
        q = clean(q)
        where, order = self._where(conditions), filters.order(sort, descending, self._words)
        asked = phrases(q)
        if not asked:
            return self._everything(q, where, order)
        # Parts whose number is what was typed come first, and among them those with most offers.
        relevance = f"CASE WHEN p.norm = ? THEN -1e9 ELSE bm25(words, {database.WEIGHTS}) END, p.offers DESC, p.id"
        order = order or filters.Clause(relevance, (matching.normalise(q),))
        rows = self._database.execute(
            "SELECT p.id FROM words JOIN parts p ON p.id = words.rowid"
            f" WHERE words MATCH ? AND {where.sql} ORDER BY {order.sql}",
            (asked, *where.params, *order.params),
        )
        return records.Ranked(tuple(str(id_) for (id_,) in rows))

    def _everything(self, q: str, where: filters.Clause, order: filters.Clause | None) -> records.Ranked:
        """Nothing asked for, or only wildcards: all that passes. Only other signs: nothing."""
        if q.strip(" *\t\n"):
            return records.Ranked(())
        return self._ranked(where, order or filters.Clause("p.offers DESC, p.id"))

    def _ranked(self, where: filters.Clause, order: filters.Clause) -> records.Ranked:
        rows = self._database.execute(
            f"SELECT p.id FROM parts p WHERE {where.sql} ORDER BY {order.sql}", (*where.params, *order.params)
        )
        return records.Ranked(tuple(str(id_) for (id_,) in rows))

    def _looked_up(self, query: records.MatchQuery) -> dict[int, tuple[int, str | None]] | None:
        """The parts every given key agrees on, with their closeness and alternate number; None without a
        key."""
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
        return {id_: how for id_, how in first.items() if all(id_ in other for other in others)}

    def _by_number(self, mpn: str) -> dict[int, tuple[int, str | None]]:
        rows = self._database.execute(
            "SELECT part, closeness(?, mpn), CASE WHEN aka THEN mpn END FROM names WHERE norm = ?"
            " ORDER BY 2 DESC, aka DESC",
            (mpn, matching.normalise(mpn) or None),
        )
        return {id_: (close, aka) for id_, close, aka in rows}

    def _by_sku(self, code: str, seller: str | None) -> dict[int, tuple[int, str | None]]:
        norm = matching.normalise(code)
        if not norm:
            return {}
        asked = None if seller is None else filters.sellers(clean(seller), self._names)
        return {
            int(line.id): (matching.EQUAL, None)
            for line in self._candidates(norm)
            if any(asked is None or id_ in asked for id_ in self._sellers_using(norm, line))
        }

    def _candidates(self, norm: str) -> list[lines.PartLine]:
        read = skus.readings(norm)
        ids, mpns = filters.among("id", read.ids), filters.among("norm", read.mpns)
        rows = self._database.execute(
            f"SELECT line FROM parts WHERE {ids.sql}"
            f" OR id IN (SELECT part FROM names WHERE aka = 0 AND {mpns.sql})"
            " OR id IN (SELECT part FROM skus WHERE norm = ?)",
            (*ids.params, *mpns.params, norm),
        )
        return [self._decoder.decode(line) for (line,) in rows]

    def _sellers_using(self, norm: str, line: lines.PartLine) -> Iterable[str]:
        terms, path = database.terms(line), self._words.categories[line.category].path
        for one in listing.listings(int(line.id), path, terms, self._words.sellers, self._seed):
            codes = offers.order_codes(int(line.id), int(line.manufacturer), line.mpn, terms, one)
            if any(matching.normalise(code) == norm for code in codes):
                yield one.seller.company.id

    def _where(self, conditions: records.Conditions) -> filters.Clause:
        return filters.where(conditions, self._words, self._names, self._values)

    def _distinct(self, shortname: str) -> tuple[float | str, ...]:
        path = filters.path(shortname)
        rows = self._database.execute(
            "SELECT DISTINCT json_extract(line, ?1) FROM parts WHERE json_extract(line, ?1) IS NOT NULL",
            (path,),
        )
        return tuple(value for (value,) in rows)


def clean(text: str) -> str:
    """The text without lone surrogates, which the database cannot take."""
    return text.encode("utf-8", "replace").decode()


def phrases(q: str) -> str:
    """The full-text query for what a person typed: each word as a phrase of its own, the last a beginning.

    "SN74-S74N" is looked for in that form and without its signs. Empty where nothing has a letter or digit.
    """
    typed = [word for word in q.split() if matching.normalise(word)][:MOST_WORDS]
    return " AND ".join(_phrase(word, open_end=i == len(typed) - 1) for i, word in enumerate(typed))


def _phrase(word: str, open_end: bool) -> str:
    star = "*" if open_end or word.endswith("*") else ""
    spellings = dict.fromkeys((" ".join(matching.words(word)), matching.normalise(word)))
    return "(" + " OR ".join(f'"{spelling}"{star}' for spelling in spellings) + ")"


def _ranked(rows: Iterable[tuple[int, str | None]]) -> records.Ranked:
    """A part's first row is its best one."""
    best: dict[str, str | None] = {}
    for id_, aka in rows:
        best.setdefault(str(id_), aka)
    return records.Ranked(tuple(best), {id_: aka for id_, aka in best.items() if aka is not None})
