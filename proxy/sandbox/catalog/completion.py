"""What a person may have meant: completions of a beginning and other spellings of a query that finds nothing.

Used by the store only. The words come from the parts themselves, there is no dictionary.
"""
# ruff: noqa: S608  the SQL is put together from pieces written here; what users write travels as parameters

import difflib
import sqlite3
from collections.abc import Callable

from proxy.sandbox.catalog import filters, matching, records, vocabulary

_LIKENESS = 0.7
_MOST_CANDIDATES = 3000
_END = "\U0010ffff"


def suggest(
    database: sqlite3.Connection,
    words: vocabulary.Vocabulary,
    q: str,
    *,
    category_id: str | None,
    limit: int,
    part_numbers_only: bool,
) -> tuple[records.Suggestion, ...]:
    """Completions of `q`, most offered parts first: part numbers in their category, then names of makers and
    categories; inside `category_id` part numbers only."""
    start = matching.normalise(q)
    if not start:
        return ()
    found = _numbers(database, words, start, category_id, limit)
    if not part_numbers_only and category_id is None:
        found += _makers(words, start)
        found += [
            records.Suggestion(one.name, one.name, one.id)
            for one in words.categories.values()
            if matching.normalise(one.name).startswith(start)
        ]
    return tuple(dict.fromkeys(found))[:limit]


def correct(database: sqlite3.Connection, q: str, hits: Callable[[str], int]) -> tuple[records.Correction, ...]:
    """`q` with each word that no part has replaced by the likest one that occurs, if that finds anything;
    empty where every word occurs or nothing is like it."""
    typed = [word.lower() for word in matching.words(q)]
    better = [_likest(database, word) for word in typed]
    if better == typed:
        return ()
    text = " ".join(better)
    count = hits(text)
    return (records.Correction(text, count),) if count else ()


def _numbers(
    database: sqlite3.Connection,
    words: vocabulary.Vocabulary,
    start: str,
    category_id: str | None,
    limit: int,
) -> list[records.Suggestion]:
    inside = filters.Clause("1")
    if category_id is not None:
        inside = filters.among("p.category", words.descendants(category_id) if category_id in words.categories else ())
    rows = database.execute(
        "SELECT n.mpn, p.category FROM names n JOIN parts p ON p.id = n.part"
        f" WHERE n.norm >= ? AND n.norm < ? AND {inside.sql} ORDER BY p.offers DESC, n.mpn LIMIT ?",
        (start, start + _END, *inside.params, limit),
    )
    return [records.Suggestion(mpn, words.categories[category].name, category) for mpn, category in rows]


def _makers(words: vocabulary.Vocabulary, start: str) -> list[records.Suggestion]:
    return [
        records.Suggestion(one.name, "", "")
        for one in words.companies.values()
        if "manufacturer" in one.roles and matching.normalise(one.name).startswith(start)
    ]


def _likest(database: sqlite3.Connection, word: str) -> str:
    """The word itself where it or a longer word that it begins occurs; else the likest one, if any."""
    if _terms(database, word, 1):
        return word
    # People rarely get the first letters wrong; words with digits are many, so more of them must fit.
    stem = word[: 3 if any(char.isdecimal() for char in word) else 1]
    near = [term for term in _terms(database, stem, _MOST_CANDIDATES) if abs(len(term) - len(word)) <= 2]
    return next(iter(difflib.get_close_matches(word, near, n=1, cutoff=_LIKENESS)), word)


def _terms(database: sqlite3.Connection, start: str, limit: int) -> list[str]:
    rows = database.execute(
        "SELECT term FROM terms WHERE term >= ? AND term < ? ORDER BY doc DESC LIMIT ?",
        (start, start + _END, limit),
    )
    return [term for (term,) in rows]
