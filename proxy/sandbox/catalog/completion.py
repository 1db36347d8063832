"""What a person may have meant: completions of a beginning and other spellings of a query that finds nothing.

Used by the store only. The words come from the parts themselves, there is no dictionary.
"""

import difflib
from collections.abc import Callable

import numpy as np

from proxy.sandbox.catalog import columns, matching, numbers, ranked, records, text, vocabulary

_LIKENESS = 0.7
_MOST_CANDIDATES = 3000


class Completion:
    """Completes and corrects in one catalog."""

    def __init__(
        self,
        stored: columns.Columns,
        words: vocabulary.Vocabulary,
        known: tuple[numbers.Numbers, text.Text],
    ) -> None:
        self._columns, self._words = stored, words
        self._numbers, self._text = known

    def suggest(
        self, q: str, *, category_id: str | None, limit: int, part_numbers_only: bool
    ) -> tuple[records.Suggestion, ...]:
        """Completions of `q`, most offered parts first: part numbers in their category, then names of makers and
        categories; inside `category_id` part numbers only."""
        start = matching.normalise(q)
        if not start:
            return ()
        found = self._part_numbers(start, category_id, limit)
        if not part_numbers_only and category_id is None:
            found += _makers(self._words, start)
            found += [
                records.Suggestion(one.name, one.name, one.id)
                for one in self._words.categories.values()
                if matching.normalise(one.name).startswith(start)
            ]
        return tuple(dict.fromkeys(found))[:limit]

    def correct(self, q: str, hits: Callable[[str], int]) -> tuple[records.Correction, ...]:
        """`q` with each word that no part has replaced by the likest one that occurs, if that finds anything;
        empty where every word occurs or nothing is like it."""
        typed = [word.lower() for word in matching.words(q)]
        better = [self._likest(word) for word in typed]
        if better == typed:
            return ()
        corrected = " ".join(better)
        count = hits(corrected)
        return (records.Correction(corrected, count),) if count else ()

    def _part_numbers(self, start: str, category_id: str | None, limit: int) -> list[records.Suggestion]:
        begun = self._numbers.beginning(start)
        places = np.arange(begun.start, begun.stop)
        if category_id is not None:
            places = places[self._inside(category_id)[self._category(places)]]
        offered = self._columns.whole("offers")[self._numbers.parts(places)].astype(np.int64)
        # Most offers first, then by the number as it is written.
        keys = (-offered << 32) + self._columns.whole("name_order")[places]
        best = places[ranked.lowest(keys, limit)]
        labels = self._columns.labels("categories")
        found = (self._words.categories[labels[code]] for code in self._category(best).tolist())
        mpns = self._numbers.written(best.tolist())
        return [records.Suggestion(mpn, one.name, one.id) for mpn, one in zip(mpns, found, strict=True)]

    def _category(self, places: columns.Array) -> columns.Array:
        return self._columns.whole("category")[self._numbers.parts(places)]

    def _inside(self, category_id: str) -> columns.Array:
        """Which codes of categories are those of the category and of what is under it."""
        below = self._words.descendants(category_id) if category_id in self._words.categories else ()
        return np.isin(np.array(self._columns.labels("categories"), str), np.array(below, str))

    def _likest(self, word: str) -> str:
        """The word itself where it or a longer word that it begins occurs; else the likest one, if any."""
        start, stop = self._text.begins(word)
        if start < stop:
            return word
        # People rarely get the first letters wrong; words with digits are many, so more of them must fit.
        stem = word[: 3 if any(char.isdecimal() for char in word) else 1]
        found = self._text.frequent(*self._text.begins(stem), _MOST_CANDIDATES)
        near = [term for term in found if abs(len(term) - len(word)) <= 2]
        return next(iter(difflib.get_close_matches(word, near, n=1, cutoff=_LIKENESS)), word)


def _makers(words: vocabulary.Vocabulary, start: str) -> list[records.Suggestion]:
    return [
        records.Suggestion(one.name, "", "")
        for one in words.companies.values()
        if "manufacturer" in one.roles and matching.normalise(one.name).startswith(start)
    ]
