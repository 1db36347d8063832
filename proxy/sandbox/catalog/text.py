"""Full-text search: which parts have all words that were asked for, and how well.

Used by search.py. It keeps for every token where it stands, in one long column that is sorted by token: the tokens that
begin alike lie side by side. Relevance is Okapi BM25 with a weight for each field.
"""

import math
import sqlite3

import msgspec
import numpy as np

from proxy.sandbox.catalog import columns, ranked, tokens

# How much a hit in each field weighs: number, maker, category, description, values.
WEIGHTS = (10.0, 4.0, 3.0, 2.0, 1.0)
# A place is the field and how many tokens of the part stand before it; what is further on is found by its token alone.
PLACE_BITS = 13
LAST_PLACE = (1 << PLACE_BITS) - 1
_PART = PLACE_BITS + 3
_K1, _B = 1.2, 0.75
_END = "\U0010ffff"


class _Found:
    """Where a phrase stands: parts, as often as it is in them, and places; `every` is how many parts there are."""

    def __init__(self, rows: columns.Array, places: columns.Array, every: int) -> None:
        self._rows, self._places = rows, places
        self.there = np.zeros(every, bool)
        self.there[rows] = True
        self.count = int(np.count_nonzero(self.there))

    def weights_in(self, rows: columns.Array) -> columns.Array:
        """The weight of all its places in each of some parts, 0 where it is not there."""
        wanted = np.zeros(len(self.there), bool)
        wanted[rows] = True
        near = wanted[self._rows]
        weights = np.array(WEIGHTS)[self._places[near] >> PLACE_BITS]
        found: columns.Array = np.bincount(self._rows[near], weights, minlength=len(wanted))[rows]
        return found


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
        first, *others = sorted(groups, key=lambda group: sum(each.count for each in group))
        rows = np.flatnonzero(np.any([each.there for each in first], axis=0))
        for group in others:
            rows = rows[np.any([each.there[rows] for each in group], axis=0)]
        return rows

    def _score(self, found: _Found, rows: columns.Array, length: columns.Array) -> columns.Array:
        weights = found.weights_in(rows)
        everything, mean = self._columns.derived("text size", self._size)
        rare = math.log((everything - found.count + 0.5) / (found.count + 0.5))
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
        alone = len(phrase.tokens) == 1
        rows, places = self._standing(phrase.tokens[0], phrase.open_end) if alone else self._side_by_side(phrase)
        return _Found(rows, places, self._columns.length("tokens"))

    def _side_by_side(self, phrase: tokens.Phrase) -> tuple[columns.Array, columns.Array]:
        """Where the last of several tokens stands that come one after the other."""
        first, *others = phrase.tokens
        keys = _keys(*self._standing(first))
        for number, token in enumerate(others, 1):
            rows, places = self._standing(token, phrase.open_end and number == len(others))
            having = np.zeros(self._columns.length("tokens"), bool)
            having[keys >> _PART] = True
            near = having[rows]
            after = _keys(rows[near], places[near])
            keys = np.sort(after[_is_in(after - 1, keys)])
        return keys >> _PART, keys & ((1 << _PART) - 1)

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
    return (rows[within].astype(np.int64) << _PART) | places[within]


def _is_in(wanted: columns.Array, among: columns.Array) -> columns.Array:
    """Which of some numbers are among others, which are in order."""
    if not len(among):
        return np.zeros(len(wanted), bool)
    there: columns.Array = among[np.minimum(np.searchsorted(among, wanted), len(among) - 1)] == wanted
    return there
