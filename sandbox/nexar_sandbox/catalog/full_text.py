"""Full-text search: which parts have all words of a query, how well they match, and corrections of misspelt words.

For every token the index has its occurrences in one long column that is sorted by token, so that tokens with the same
prefix are adjacent. Relevance is Okapi BM25 with a weight for each field. Letters and digits make a token; case and
accents do not count.
"""

import difflib
import math
import re
import sqlite3
import unicodedata
from typing import NamedTuple

import msgspec
import numpy as np

from nexar_sandbox.catalog import columns, matching, search_hits

# Further words of a query are ignored.
MOST_WORDS = 32
_TOKEN = re.compile(r"[^\W_]+")
_ACCENTS = re.compile("[\u0300-\u036f]")


class Phrase(NamedTuple):
    """Tokens in a row; with `open_end` the last one may be the beginning of a token."""

    tokens: tuple[str, ...]
    open_end: bool


def tokens(text: str) -> list[str]:
    """The tokens in their order: "Würth SN74-S74N" is wurth, sn74, s74n."""
    if text.isascii():
        return _TOKEN.findall(text.lower())
    return _TOKEN.findall(_ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold())))


def parse_query(q: str, last_is_prefix: bool = True) -> list[tuple[Phrase, ...]]:
    """The spellings of each word of a query; with `last_is_prefix` the last word may be a prefix.

    "SN74-S74N" is searched in that form and without punctuation. Empty without a letter or digit.
    """
    typed = [word for word in q.split() if matching.normalize(word)][:MOST_WORDS]
    return [_spellings(word, open_end=last_is_prefix and i == len(typed) - 1) for i, word in enumerate(typed)]


def _spellings(word: str, open_end: bool) -> tuple[Phrase, ...]:
    forms = dict.fromkeys((tuple(tokens(word)), tuple(tokens(matching.normalize(word)))))
    return tuple(Phrase(form, open_end or word.endswith("*")) for form in forms)


# Weight of a hit in each field: part number, maker, category, description, spec values.
WEIGHTS = (10.0, 4.0, 3.0, 2.0, 1.0)
# A position has the field in its high bits and the index of the token in the field in the others. Tokens beyond
# LAST_POSITION are found alone but never as part of a phrase.
POSITION_BITS = 13
LAST_POSITION = (1 << POSITION_BITS) - 1
_PART_SHIFT = POSITION_BITS + 3
_K1, _B = 1.2, 0.75
_END = "\U0010ffff"
# The least similarity (0 to 1, difflib) of a correction, and how many words are compared.
_SIMILARITY = 0.7
_MOST_CANDIDATES = 3000


class _Occurrences:
    """Occurrences of a phrase: part and position of each. `part_count` is the number of all parts."""

    def __init__(self, rows: columns.Array, positions: columns.Array, part_count: int) -> None:
        self._rows, self._places = rows, positions
        self.in_part = np.zeros(part_count, bool)
        self.in_part[rows] = True
        self.count = int(np.count_nonzero(self.in_part))

    def weights_in(self, rows: columns.Array) -> columns.Array:
        """The summed weight of the occurrences in each of `rows`; 0 without occurrences."""
        in_rows = np.zeros(len(self.in_part), bool)
        in_rows[rows] = True
        near = in_rows[self._rows]
        weights = np.array(WEIGHTS)[self._places[near] >> POSITION_BITS]
        totals: columns.Array = np.bincount(self._rows[near], weights, minlength=len(in_rows))[rows]
        return totals


class FullTextIndex:
    """Full-text index of all parts."""

    def __init__(self, connection: sqlite3.Connection, stored: columns.Columns) -> None:
        self._connection, self._columns = connection, stored

    def find(self, query: list[tuple[Phrase, ...]], every_word: bool = True) -> tuple[columns.Array, columns.Array]:
        """The parts, ascending, that have one phrase of every group, or of any, and their scores, lower is better."""
        phrases = dict.fromkeys(phrase for group in query for phrase in group)
        occurrences = {phrase: self._phrase(phrase) for phrase in phrases}
        # Of any group: as if all phrases were spellings of one word.
        groups = query if every_word else [tuple(phrases)]
        rows = self._in_all_groups([[occurrences[phrase] for phrase in group] for group in groups])
        scores = np.zeros(len(rows))
        length = self._lengths()[rows]
        for group in query:
            for phrase in group:
                scores += self._score(occurrences[phrase], rows, length)
        return rows, -scores

    def correct(self, q: str) -> str:
        """`q` with each word that no part has replaced by the most similar one that occurs; unchanged without one."""
        typed = [word.lower() for word in matching.words(q)]
        corrected = [self._most_similar(word) for word in typed]
        return q if corrected == typed else " ".join(corrected)

    def _in_all_groups(self, groups: list[list[_Occurrences]]) -> columns.Array:
        """The parts that are in every group; starts with the smallest group."""
        first, *others = sorted(groups, key=lambda group: sum(each.count for each in group))
        rows = np.flatnonzero(np.any([each.in_part for each in first], axis=0))
        for group in others:
            rows = rows[np.any([each.in_part[rows] for each in group], axis=0)]
        return rows

    def _score(self, occurrences: _Occurrences, rows: columns.Array, length: columns.Array) -> columns.Array:
        weights = occurrences.weights_in(rows)
        everything, mean = self._columns.derived("text size", self._size)
        rare = math.log((everything - occurrences.count + 0.5) / (occurrences.count + 0.5))
        norm = _K1 * ((1 - _B) + _B * length / mean)
        scores: columns.Array = (rare if rare > 0 else 1e-6) * (weights * (_K1 + 1.0) / (weights + norm))
        return scores

    def _size(self) -> tuple[int, float]:
        lengths = self._lengths()
        return len(lengths), float(lengths.sum()) / max(len(lengths), 1)

    def _lengths(self) -> columns.Array:
        """Tokens of each part."""
        return self._columns.column("tokens")

    def _phrase(self, phrase: Phrase) -> _Occurrences:
        alone = len(phrase.tokens) == 1
        rows, positions = self._occurrences(phrase.tokens[0], phrase.open_end) if alone else self._adjacent(phrase)
        return _Occurrences(rows, positions, self._columns.length("tokens"))

    def _adjacent(self, phrase: Phrase) -> tuple[columns.Array, columns.Array]:
        """The occurrences of several tokens in a row, by the position of the last one."""
        first, *others = phrase.tokens
        keys = _keys(*self._occurrences(first))
        for number, token in enumerate(others, 1):
            rows, positions = self._occurrences(token, phrase.open_end and number == len(others))
            having = np.zeros(self._columns.length("tokens"), bool)
            having[keys >> _PART_SHIFT] = True
            near = having[rows]
            after = _keys(rows[near], positions[near])
            keys = np.sort(after[_is_in(after - 1, keys)])
        return keys >> _PART_SHIFT, keys & ((1 << _PART_SHIFT) - 1)

    def _occurrences(self, token: str, open_end: bool = False) -> tuple[columns.Array, columns.Array]:
        """Parts and positions of a token, or of all tokens that begin with it."""
        if open_end:
            first, stop = self._first_occurrence(token), self._first_occurrence(token + _END)
        else:
            row = self._connection.execute("SELECT first, stop FROM terms WHERE term = ?", (token,)).fetchone()
            first, stop = row or (0, 0)
        stored = self._columns
        return stored.slice("token_rows", first, stop), stored.slice("token_places", first, stop)

    def _first_occurrence(self, term: str) -> int:
        """The start of the occurrences of this and later tokens in the token columns."""
        row = self._connection.execute(
            "SELECT first FROM terms WHERE term >= ? ORDER BY term LIMIT 1", (term,)
        ).fetchone()
        return int(row[0]) if row else self._columns.length("token_rows")

    def _term_position(self, term: str) -> int:
        row = self._connection.execute(
            "SELECT position FROM terms WHERE term >= ? ORDER BY term LIMIT 1", (term,)
        ).fetchone()
        return int(row[0]) if row else self._columns.length("term_documents")

    def _most_similar(self, word: str) -> str:
        """The word itself if it or a word with this prefix occurs; else the most similar one, if any."""
        start, stop = self._tokens_with_prefix(word)
        if start < stop:
            return word
        # The first letters are rarely wrong. There are many words with digits, so more of their letters must be equal.
        stem = word[: 3 if any(char.isdecimal() for char in word) else 1]
        frequent = self._most_frequent(*self._tokens_with_prefix(stem), _MOST_CANDIDATES)
        candidates = [term for term in frequent if abs(len(term) - len(word)) <= 2]
        return next(iter(difflib.get_close_matches(word, candidates, n=1, cutoff=_SIMILARITY)), word)

    def _tokens_with_prefix(self, word: str) -> tuple[int, int]:
        """The range (start, stop) of tokens, in sorted order, that begin with `word`."""
        return self._term_position(word), self._term_position(word + _END)

    def _most_frequent(self, start: int, stop: int, count: int) -> list[str]:
        """The `count` tokens of the range that most parts have, most frequent first, equal ones in sorted order."""
        documents = -self._columns.column("term_documents")[start:stop].astype(np.int64)
        positions = (search_hits.lowest(documents, count) + start).tolist()
        rows = self._connection.execute(
            "SELECT position, term FROM terms WHERE position IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(positions).decode(),),
        )
        terms = dict(rows.fetchall())
        return [terms[place] for place in positions]


def _keys(rows: columns.Array, positions: columns.Array) -> columns.Array:
    """Part and position as one number, so that the key of the next token is one more."""
    within = (positions & LAST_POSITION) < LAST_POSITION
    return (rows[within].astype(np.int64) << _PART_SHIFT) | positions[within]


def _is_in(values: columns.Array, among: columns.Array) -> columns.Array:
    """Mask of the `values` that are in `among`, which is sorted."""
    if not len(among):
        return np.zeros(len(values), bool)
    is_member: columns.Array = among[np.minimum(np.searchsorted(among, values), len(among) - 1)] == values
    return is_member
