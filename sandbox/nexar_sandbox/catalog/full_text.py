"""Full-text search: the expression of a query for SQLite's FTS5, and corrections of misspelt words.

Letters and digits make a token; case and accents do not count.
"""

import difflib
import sqlite3

from nexar_sandbox.catalog import matching

# Further words of a query are ignored.
MOST_WORDS = 32
# Lower is better: part number, maker, category, description and values weigh differently.
RELEVANCE = "bm25(words, 10.0, 4.0, 3.0, 2.0, 1.0)"
END = "\U0010ffff"
# The least similarity (0 to 1, difflib) of a correction, and how many words are compared.
_SIMILARITY = 0.7
_MOST_CANDIDATES = 3000


def expression(q: str, last_is_prefix: bool = True, every_word: bool = True) -> str:
    """The FTS5 expression for parts that have every word of a query, or any; "" without a letter or digit.

    "SN74-S74N" is searched in that form and without punctuation. With `last_is_prefix` the last word may be the
    beginning of a token, like each that ends with "*".
    """
    typed = [word for word in q.split() if matching.normalize(word)][:MOST_WORDS]
    words = [_spellings(word, last_is_prefix and place == len(typed)) for place, word in enumerate(typed, 1)]
    return (" AND " if every_word else " OR ").join(words)


def _spellings(word: str, open_end: bool) -> str:
    star = "*" if open_end or word.endswith("*") else ""
    spellings = dict.fromkeys((" ".join(matching.words(word)), matching.normalize(word)))
    return "(" + " OR ".join(f'"{spelling}"{star}' for spelling in spellings) + ")"


def correct(connection: sqlite3.Connection, q: str) -> str:
    """`q` with each word that no part has replaced by the most similar one that occurs; unchanged without one."""
    typed = [word.lower() for word in matching.words(q)]
    corrected = [_most_similar(connection, word) for word in typed]
    return q if corrected == typed else " ".join(corrected)


def _most_similar(connection: sqlite3.Connection, word: str) -> str:
    """The word itself if it or a word with this prefix occurs; else the most similar one, if any."""
    if _with_prefix(connection, word, 1):
        return word
    # The first letters are rarely wrong. There are many words with digits, so more of their letters must be equal.
    stem = word[: 3 if any(char.isdecimal() for char in word) else 1]
    frequent = _with_prefix(connection, stem, _MOST_CANDIDATES)
    candidates = [term for term in frequent if abs(len(term) - len(word)) <= 2]
    return next(iter(difflib.get_close_matches(word, candidates, n=1, cutoff=_SIMILARITY)), word)


def _with_prefix(connection: sqlite3.Connection, start: str, limit: int) -> list[str]:
    """The tokens with this prefix that most parts have, most frequent first, equal ones in sorted order."""
    rows = connection.execute(
        "SELECT term FROM terms WHERE term >= ? AND term < ? ORDER BY doc DESC, term LIMIT ?",
        (start, start + END, limit),
    )
    return [term for (term,) in rows]
