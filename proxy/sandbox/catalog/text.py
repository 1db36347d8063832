"""Full-text search: which parts have all words that were asked for, and how well.

Used by search.py. It keeps for every token where it stands, in one long column that is sorted by token: the tokens that
begin alike lie side by side. Relevance is Okapi BM25 with a weight for each field.
"""

import math
import sqlite3
from typing import NamedTuple

import msgspec
import numpy as np

from proxy.sandbox.catalog import columns, ranked, tokens

# How much a hit in each field weighs: number, maker, category, description, values.
WEIGHTS = (10.0, 4.0, 3.0, 2.0, 1.0)
# A place is the field and how many tokens of the part stand before it; what is further on is found by its token alone.
PLACE_BITS = 13
LAST_PLACE = (1 << PLACE_BITS) - 1
_K1, _B = 1.2, 0.75
_END = "\U0010ffff"
# A phrase in fewer than one of so many parts is kept without the parts that do not have it.
_SPARSE = 64


class _Found(NamedTuple):
    """The parts that have a phrase, ascending, and the weight of all its places in each; of many parts also the
    weights of all parts there are."""

    rows: columns.Array
    weights: columns.Array
    dense: columns.Array | None = None

    def weights_in(self, rows: columns.Array) -> columns.Array:
        """The weight in each of some parts, 0 where the phrase is not there."""
        if self.dense is not None:
            return self.dense[rows]
        if not len(self.rows):
            return np.zeros(len(rows))
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[places] == rows, self.weights[places], 0.0)


class Text:
    """The words of all parts."""

    def __init__(self, connection: sqlite3.Connection, stored: columns.Columns) -> None:
        self._database, self._columns = connection, stored

    def find(self, asked: list[tuple[tokens.Phrase, ...]]) -> tuple[columns.Array, columns.Array]:
        """The parts, ascending, that have one phrase of every group, and their scores, lower is better."""
        phrases = dict.fromkeys(phrase for group in asked for phrase in group)
        found = {phrase: self._phrase(phrase) for phrase in phrases}
        rows = self._having_all([[found[phrase] for phrase in group] for group in asked])
        scores = np.zeros(len(rows))
        length = self._lengths()[rows]
        for group in asked:
            for phrase in group:
                scores += self._score(found[phrase], rows, length)
        return rows, -scores

    def begins(self, word: str) -> tuple[int, int]:
        """From which to before which token, in their order, `word` is the beginning."""
        return self._place(word), self._place(word + _END)

    def frequent(self, start: int, stop: int, count: int) -> list[str]:
        """Of the tokens from `start` to before `stop` those that most parts have, equal ones in their order."""
        documents = -self._columns.whole("term_documents")[start:stop].astype(np.int64)
        places = (ranked.lowest(documents, count) + start).tolist()
        rows = self._database.execute(
            "SELECT position, term FROM terms WHERE position IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(places).decode(),),
        )
        terms = dict(rows.fetchall())
        return [terms[place] for place in places]

    def _having_all(self, groups: list[list[_Found]]) -> columns.Array:
        """The parts that are in every group, looked for in the smallest."""
        first, *others = sorted(groups, key=lambda group: sum(len(each.rows) for each in group))
        rows = first[0].rows if len(first) == 1 else np.unique(np.concatenate([each.rows for each in first]))
        for group in others:
            rows = rows[np.any([each.weights_in(rows) > 0 for each in group], axis=0)]
        return rows

    def _score(self, found: _Found, rows: columns.Array, length: columns.Array) -> columns.Array:
        weights = found.weights_in(rows)
        everything, mean = self._columns.derived("text size", self._size)
        rare = math.log((everything - len(found.rows) + 0.5) / (len(found.rows) + 0.5))
        norm = _K1 * ((1 - _B) + _B * length / mean)
        scores: columns.Array = (rare if rare > 0 else 1e-6) * (weights * (_K1 + 1.0) / (weights + norm))
        return scores

    def _size(self) -> tuple[int, float]:
        lengths = self._lengths()
        return len(lengths), float(lengths.sum()) / max(len(lengths), 1)

    def _lengths(self) -> columns.Array:
        """Tokens of each part."""
        return self._columns.whole("tokens")

    def _phrase(self, phrase: tokens.Phrase) -> _Found:
        *closed, last = phrase.tokens
        rows, places = self._standing(last, phrase.open_end)
        if closed:
            keys = _keys(rows, places)
            for back, token in enumerate(reversed(closed), 1):
                keys = np.intersect1d(keys, _keys(*self._standing(token)) + back)
            rows, places = (keys >> 16).astype(np.int64), keys & 0xFFFF
        weights = np.array(WEIGHTS)[places >> PLACE_BITS]
        if len(rows) < self._columns.length("tokens") // _SPARSE:
            found, which = np.unique(rows, return_inverse=True)
            return _Found(found, np.bincount(which, weights))
        summed = np.bincount(rows, weights, minlength=self._columns.length("tokens"))
        found = np.flatnonzero(summed)
        return _Found(found, summed[found], summed)

    def _standing(self, token: str, open_end: bool = False) -> tuple[columns.Array, columns.Array]:
        """Where a token stands, or everything that it begins: parts and places."""
        if open_end:
            first, stop = self._first(token), self._first(token + _END)
        else:
            row = self._database.execute("SELECT first, stop FROM terms WHERE term = ?", (token,)).fetchone()
            first, stop = row or (0, 0)
        stored = self._columns
        return stored.slice("token_rows", first, stop), stored.slice("token_places", first, stop)

    def _first(self, term: str) -> int:
        """Where the places of this and later tokens begin."""
        row = self._database.execute(
            "SELECT first FROM terms WHERE term >= ? ORDER BY term LIMIT 1", (term,)
        ).fetchone()
        return int(row[0]) if row else self._columns.length("token_rows")

    def _place(self, term: str) -> int:
        row = self._database.execute(
            "SELECT position FROM terms WHERE term >= ? ORDER BY term LIMIT 1", (term,)
        ).fetchone()
        return int(row[0]) if row else self._columns.length("term_documents")


def _keys(rows: columns.Array, places: columns.Array) -> columns.Array:
    """Part and place as one number, so that the next token's is one more."""
    within = (places & LAST_PLACE) < LAST_PLACE
    return (rows[within].astype(np.int64) << 16) | places[within]
