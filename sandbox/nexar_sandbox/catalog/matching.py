"""Text rules of matching: which part numbers and which company names are equal.

Pure functions and one immutable index of company names.
"""

import re
from collections.abc import Iterable

from nexar_sandbox.catalog import records

_NOT_ALNUM = re.compile(r"[\W_]+")
_WORD = re.compile(r"[^\W_]+")

# Words that many company names share; alone they identify no company.
_COMMON_WORDS = frozenset(
    """
    AND CO COMPANY COMPONENT COMPONENTS CORP CORPORATION ELECTRIC ELECTRONIC ELECTRONICS GMBH GROUP
    INC INCORPORATED INDUSTRIES INDUSTRY INTERNATIONAL LIMITED LLC LTD SEMI SEMICONDUCTOR
    SEMICONDUCTORS TECHNOLOGIES TECHNOLOGY THE
    """.split()  # noqa: SIM905  a list of words, not of quotes
)


def normalize(text: str) -> str:
    """Letters and digits only, upper case (contract graphql.md §2.3): "1.5SMC68CA" is "15SMC68CA"."""
    return _NOT_ALNUM.sub("", text).upper()


def words(text: str) -> tuple[str, ...]:
    """The runs of letters and digits in upper case: "Lite-On" is LITE, ON."""
    return tuple(_WORD.findall(text.upper()))


class CompanyNameIndex:
    """Index of companies by loosely spelled name: case, punctuation, aliases, contained words."""

    def __init__(self, companies: Iterable[records.Company]) -> None:
        self._exact: dict[str, list[str]] = {}
        self._words: list[tuple[frozenset[str], str]] = []
        for company in companies:
            for name in (company.name, *company.aliases):
                self._exact.setdefault(normalize(name), []).append(company.id)
                self._words.append((_significant_words(name), company.id))

    def find(self, text: str) -> frozenset[str]:
        """Ids of the companies that `text` may refer to; empty if there is none.

        A name or alias that is equal after normalization wins alone. Otherwise the significant words decide: all words
        of a name are in the text ("Vishay Lite-On" is Lite-On; the longest name wins), or all words of the text are in
        a name. Last, the text may be the prefix of a name ("STMicro").
        """
        exact = self._exact.get(normalize(text))
        if exact:
            return frozenset(exact)
        words = _significant_words(text)
        if not words:
            return frozenset()
        return self._names_inside(words) or self._names_containing(words) or self._names_with_prefix(normalize(text))

    def _names_containing(self, words: frozenset[str]) -> frozenset[str]:
        if all(len(word) < 3 for word in words):
            return frozenset()
        return frozenset(id_ for name_words, id_ in self._words if words <= name_words)

    def _names_with_prefix(self, start: str) -> frozenset[str]:
        if len(start) < 4:
            return frozenset()
        return frozenset(id_ for name, ids in self._exact.items() if name.startswith(start) for id_ in ids)

    def _names_inside(self, words: frozenset[str]) -> frozenset[str]:
        inside = [
            (len(name_words), id_)
            for name_words, id_ in self._words
            if name_words <= words and max(map(len, name_words), default=0) > 2
        ]
        most = max((size for size, _ in inside), default=0)
        return frozenset(id_ for size, id_ in inside if size == most)


def _significant_words(name: str) -> frozenset[str]:
    return frozenset(words(name)) - _COMMON_WORDS
