"""Completions of a prefix, and spelling corrections of a query that finds nothing.

The suggested words come from the parts themselves; there is no dictionary.
"""

import difflib
from collections.abc import Callable

import numpy as np

from proxy.sandbox.catalog import columns, full_text, matching, part_numbers, records, reference_data, search_hits

# The least similarity (0 to 1, difflib) of a correction.
_SIMILARITY = 0.7
_MOST_CANDIDATES = 3000


class QueryCompletion:
    """Completions and corrections from one catalog."""

    def __init__(
        self,
        column_store: columns.Columns,
        reference: reference_data.ReferenceData,
        indexes: tuple[part_numbers.PartNumberIndex, full_text.FullTextIndex],
    ) -> None:
        self._columns, self._reference = column_store, reference
        self._numbers, self._text = indexes

    def suggest(
        self, q: str, *, category_id: str | None, limit: int, part_numbers_only: bool
    ) -> tuple[records.Suggestion, ...]:
        """Completions of `q`, most offered parts first: part numbers in their category, then names of makers and
        categories; inside `category_id` part numbers only."""
        start = matching.normalise(q)
        if not start:
            return ()
        suggestions = self._part_numbers(start, category_id, limit)
        if not part_numbers_only and category_id is None:
            suggestions += _makers(self._reference, start)
            suggestions += [
                records.Suggestion(one.name, one.name, one.id)
                for one in self._reference.categories.values()
                if matching.normalise(one.name).startswith(start)
            ]
        return tuple(dict.fromkeys(suggestions))[:limit]

    def correct(self, q: str, hits: Callable[[str], int]) -> tuple[records.SpellingCorrection, ...]:
        """`q` with each word that no part has replaced by the most similar one that occurs, if that finds anything;
        empty if every word occurs or none is similar."""
        typed = [word.lower() for word in matching.words(q)]
        corrections = [self._most_similar(word) for word in typed]
        if corrections == typed:
            return ()
        corrected = " ".join(corrections)
        count = hits(corrected)
        return (records.SpellingCorrection(corrected, count),) if count else ()

    def _part_numbers(self, start: str, category_id: str | None, limit: int) -> list[records.Suggestion]:
        matches = self._numbers.with_prefix(start)
        positions = np.arange(matches.start, matches.stop)
        if category_id is not None:
            positions = positions[self._inside(category_id)[self._category(positions)]]
        offered = self._columns.column("offers")[self._numbers.parts(positions)].astype(np.int64)
        # Most offers first, then by the number as it is written.
        keys = (-offered << 32) + self._columns.column("name_order")[positions]
        best = positions[search_hits.lowest(keys, limit)]
        labels = self._columns.labels("categories")
        categories = (self._reference.categories[labels[code]] for code in self._category(best).tolist())
        mpns = self._numbers.written(best.tolist())
        return [records.Suggestion(mpn, one.name, one.id) for mpn, one in zip(mpns, categories, strict=True)]

    def _category(self, positions: columns.Array) -> columns.Array:
        return self._columns.column("category")[self._numbers.parts(positions)]

    def _inside(self, category_id: str) -> columns.Array:
        """Which category codes are those of the category and its descendants."""
        below = self._reference.descendants(category_id) if category_id in self._reference.categories else ()
        return np.isin(np.array(self._columns.labels("categories"), str), np.array(below, str))

    def _most_similar(self, word: str) -> str:
        """The word itself if it or a word with this prefix occurs; else the most similar one, if any."""
        start, stop = self._text.tokens_with_prefix(word)
        if start < stop:
            return word
        # The first letters are rarely wrong. There are many words with digits, so more of their letters must be equal.
        stem = word[: 3 if any(char.isdecimal() for char in word) else 1]
        frequent = self._text.most_frequent(*self._text.tokens_with_prefix(stem), _MOST_CANDIDATES)
        candidates = [term for term in frequent if abs(len(term) - len(word)) <= 2]
        return next(iter(difflib.get_close_matches(word, candidates, n=1, cutoff=_SIMILARITY)), word)


def _makers(reference: reference_data.ReferenceData, start: str) -> list[records.Suggestion]:
    return [
        records.Suggestion(one.name, "", "")
        for one in reference.companies.values()
        if "manufacturer" in one.roles and matching.normalise(one.name).startswith(start)
    ]
