"""Words of a text as the full-text search has them, and what a person typed as phrases of such words.

Used where parts are described (describing.py) and searched (text.py). Letters and digits make a token; case and accents
do not count.
"""

import re
import unicodedata
from typing import NamedTuple

from proxy.sandbox.catalog import matching

# Further words of a query are not looked at.
MOST_WORDS = 32
_TOKEN = re.compile(r"[^\W_]+")
_ACCENTS = re.compile("[\u0300-\u036f]")


class Phrase(NamedTuple):
    """Tokens side by side; with `open_end` the last one may go on."""

    tokens: tuple[str, ...]
    open_end: bool


def tokens(text: str) -> list[str]:
    """The tokens in their order: "Würth SN74-S74N" is wurth, sn74, s74n."""
    if text.isascii():
        return _TOKEN.findall(text.lower())
    return _TOKEN.findall(_ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold())))


def asked(q: str) -> list[tuple[Phrase, ...]]:
    """The spellings of each word that a person typed; the last word may be a beginning.

    "SN74-S74N" is looked for in that form and without its signs. Empty where nothing has a letter or digit.
    """
    typed = [word for word in q.split() if matching.normalise(word)][:MOST_WORDS]
    return [_spellings(word, open_end=i == len(typed) - 1) for i, word in enumerate(typed)]


def _spellings(word: str, open_end: bool) -> tuple[Phrase, ...]:
    forms = dict.fromkeys((tuple(tokens(word)), tuple(tokens(matching.normalise(word)))))
    return tuple(Phrase(form, open_end or word.endswith("*")) for form in forms)
