"""The three ways to find parts: a match, a search by part number, a search by text.

Used by the store only. Which text counts as equal is `matching`'s business, what a filter means `filters`'s; where
numbers and words stand `numbers` and `text` know. Here they become hits in an order.
"""
# ruff: noqa: S608  the SQL is put together from pieces written here; what users write travels as parameters

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from proxy.sandbox.catalog import (
    columns,
    describing,
    filters,
    lines,
    listing,
    matching,
    numbers,
    offers,
    ranked,
    records,
    skus,
    text,
    tokens,
    vocabulary,
)

MOST_WORDS = tokens.MOST_WORDS


class Search:
    """Finds parts in a filled database."""

    def __init__(
        self, connection: sqlite3.Connection, stored: columns.Columns, words: vocabulary.Vocabulary, seed: int
    ) -> None:
        self._database, self._columns = connection, stored
        self._words = words
        self._seed = seed
        self._decoder = msgspec.json.Decoder(lines.PartLine)
        self._filters = filters.Filters(
            stored,
            words,
            filters.Companies(
                matching.Names(one for one in words.companies.values() if "manufacturer" in one.roles),
                matching.Names(one for one in words.companies.values() if "seller" in one.roles),
            ),
        )
        self.numbers = numbers.Numbers(connection, stored)
        self.text = text.Text(connection, stored)

    def match(self, query: records.MatchQuery, conditions: records.Conditions) -> ranked.Ranked:
        """Parts equal to the query after normalising: literally equal first, then those with most offers.

        Raises ValueError where the query names nothing to look for.
        """
        passes = self._filters.of(conditions)
        named = [] if query.manufacturer is None else [self._filters.made_by([clean(query.manufacturer)])]
        if query.seller is not None:
            named.append(self._filters.sold_by([clean(query.seller)]))
        found = self._looked_up(query)
        if found is None:
            if not named:
                raise ValueError("Missing search filters")
            return self._listed([*passes, *named], None)
        rows = np.array(sorted(found), np.int64)
        for each in (*passes, *named):
            rows = rows[each(rows)]
        close = np.array([found[row][0] for row in rows.tolist()], np.int64)
        ids = self._columns.whole("ids")
        aka = {str(ids[row]): held for row in rows.tolist() if (held := found[row][1]) is not None}
        akas = np.array([row for row in rows.tolist() if found[row][1] is not None], np.int64)
        return ranked.Ranked(rows, ids, close, akas, aka.__getitem__)

    def by_mpn(self, q: str, conditions: records.Conditions, sort: str = "", descending: bool = False) -> ranked.Ranked:
        """Parts whose number holds `q` anywhere: equal ones first, then beginnings, then the rest."""
        q = clean(q)
        norm = matching.normalise(q)
        passes, order = self._filters.of(conditions), self._filters.order(sort, descending)
        if not norm:
            return self._everything(q, passes, order)
        rows, close = self.numbers.closest(q, norm)
        for each in passes:
            passing = each(rows)
            rows, close = rows[passing], close[passing]
        keys, akas = close if order is None else order(rows), rows[close % 2 == 1]
        return ranked.Ranked(rows, self._columns.whole("ids"), keys, akas, lambda id_: self._aka(q, id_))

    def by_text(
        self, q: str, conditions: records.Conditions, sort: str = "", descending: bool = False
    ) -> ranked.Ranked:
        """Parts that have every word of `q` somewhere, the last word may be a beginning; best first."""
        q = clean(q)
        passes, order = self._filters.of(conditions), self._filters.order(sort, descending)
        asked = tokens.asked(q)
        if not asked:
            return self._everything(q, passes, order)
        rows, scores = self.text.find(asked)
        # Parts whose number is what was typed come first, and among them those with most offers.
        own = [place for place, _, aka in self.numbers.equal(matching.normalise(q)) if not aka]
        scores[np.isin(rows, self.numbers.parts(np.array(own, np.int64)))] = -1e9
        for each in passes:
            passing = each(rows)
            rows, scores = rows[passing], scores[passing]
        return ranked.Ranked(rows, self._columns.whole("ids"), scores if order is None else order(rows))

    def among(self, ids: Sequence[str]) -> ranked.Ranked:
        """These parts, each once, as hits in this order; they must be the catalog's."""
        rows = self._rows(np.array([int(id_) for id_ in ids], np.int64))
        order = np.argsort(rows)
        return ranked.Ranked(rows[order], self._columns.whole("ids"), order)

    def _everything(self, q: str, passes: list[filters.Passes], order: filters.Keys | None) -> ranked.Ranked:
        """Nothing asked for, or only wildcards: all that passes. Only other signs: nothing."""
        if q.strip(" *\t\n"):
            return ranked.Ranked(np.empty(0, np.int64), self._columns.whole("ids"))
        return self._listed(passes, order)

    def _listed(self, passes: list[filters.Passes], order: filters.Keys | None) -> ranked.Ranked:
        rows: columns.Array = np.arange(self._columns.length("ids"))
        for each in passes:
            rows = rows[each(rows)]
        return ranked.Ranked(rows, self._columns.whole("ids"), None if order is None else order(rows))

    def _aka(self, q: str, id_: str) -> str:
        """The alternate number of the part that is closest to what was asked for."""
        (line,) = self._lines("id = ?", (int(id_),))
        close = {aka: how for aka in line.aka if (how := matching.closeness(q, aka)) is not None}
        return min(close, key=close.__getitem__)

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
        return {row: how for row, how in first.items() if all(row in other for other in others)}

    def _by_number(self, mpn: str) -> dict[int, tuple[int, str | None]]:
        norm = matching.normalise(mpn)
        found = self.numbers.equal(norm) if norm else []
        # The closest number of a part comes last, and its own one after the others.
        ordered = sorted(found, key=lambda one: (one[1] == mpn, not one[2]))
        rows = self.numbers.parts(np.array([place for place, _, _ in ordered], np.int64)).tolist()
        return {
            row: (matching.LITERAL if held == mpn else matching.EQUAL, held if aka else None)
            for row, (_, held, aka) in zip(rows, ordered, strict=True)
        }

    def _by_sku(self, code: str, seller: str | None) -> dict[int, tuple[int, str | None]]:
        norm = matching.normalise(code)
        if not norm:
            return {}
        asked = None if seller is None else self._filters.sellers(clean(seller))
        ids = [
            int(line.id)
            for line in self._candidates(norm)
            if any(asked is None or id_ in asked for id_ in self._sellers_using(norm, line))
        ]
        return {row: (matching.EQUAL, None) for row in self._rows(np.array(ids, np.int64)).tolist()}

    def _candidates(self, norm: str) -> list[lines.PartLine]:
        read = skus.readings(norm)
        own = [place for mpn in read.mpns for place, _, aka in self.numbers.equal(mpn) if not aka]
        places = self.numbers.parts(np.array(own, np.int64))
        ids = {*read.ids, *self._columns.whole("ids")[places].tolist()}
        among = msgspec.json.encode(sorted(ids)).decode()
        return self._lines(
            "id IN (SELECT value FROM json_each(?) UNION SELECT part FROM skus WHERE norm = ?)", (among, norm)
        )

    def _lines(self, where: str, params: tuple[str | int, ...]) -> list[lines.PartLine]:
        rows = self._database.execute(f"SELECT line FROM parts WHERE {where}", params)
        return [self._decoder.decode(line) for (line,) in rows]

    def _rows(self, ids: columns.Array) -> columns.Array:
        """The numbers of the parts with these ids."""
        order, every = self._columns.whole("by_id"), self._columns.whole("ids")
        sorted_ids = self._columns.derived("sorted ids", lambda: every[order])
        return order[np.searchsorted(sorted_ids, ids)].astype(np.int64)

    def _sellers_using(self, norm: str, line: lines.PartLine) -> Iterable[str]:
        terms, path = describing.terms(line), self._words.categories[line.category].path
        for one in listing.listings(int(line.id), path, terms, self._words.sellers, self._seed):
            codes = offers.order_codes(int(line.id), int(line.manufacturer), line.mpn, terms, one)
            if any(matching.normalise(code) == norm for code in codes):
                yield one.seller.company.id


def clean(text: str) -> str:
    """The text without lone surrogates, which the database cannot take."""
    return text.encode("utf-8", "replace").decode()
