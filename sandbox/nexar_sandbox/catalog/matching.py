"""Text rules of matching: which part numbers and which company names are equal.

Pure functions and one immutable index of company names.
"""

import re
from collections.abc import Iterable

from nexar_sandbox.catalog import records, rules

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

# How closely a number matches a query, best first: as it is written, after normalization, at its beginning, anywhere.
LITERAL, EQUAL, PREFIX, INSIDE = range(4)


def normalize(text: str) -> str:
    """Letters and digits only, upper case (contract graphql.md §2.3): "1.5SMC68CA" is "15SMC68CA"."""
    return _NOT_ALNUM.sub("", text).upper()


def words(text: str) -> tuple[str, ...]:
    """The runs of letters and digits in upper case: "Lite-On" is LITE, ON."""
    return tuple(_WORD.findall(text.upper()))


def is_same(query: str, mpn: str, search_rules: rules.SearchRules) -> bool:
    """Whether two numbers that are equal after normalization are equal by stricter rules, too."""
    if not search_rules.punctuation_ignored and query.upper() != mpn.upper():
        return False
    return search_rules.case_ignored or _NOT_ALNUM.sub("", query) == _NOT_ALNUM.sub("", mpn)


class CompanyNameIndex:
    """Index of companies by loosely spelled name: case, punctuation, aliases, contained words."""

    def __init__(self, companies: Iterable[records.Company]) -> None:
        self._exact: dict[str, list[str]] = {}
        self._words: list[tuple[frozenset[str], str]] = []
        self._companies: dict[str, records.Company] = {}
        for company in companies:
            self._companies[company.id] = company
            for name in (company.name, *company.aliases):
                self._exact.setdefault(normalize(name), []).append(company.id)
                self._words.append((_significant_words(name), company.id))

    def find(self, text: str, search_rules: rules.SearchRules = rules.CONTRACT) -> frozenset[str]:
        """Ids of the companies that `text` may refer to; empty if there is none.

        A name or alias that is equal after normalization wins alone. Otherwise the significant words decide: all words
        of a name are in the text ("Vishay Lite-On" is Lite-On; the longest name wins), or all words of the text are in
        a name. Last, the text may be the prefix of a name ("STMicro").
        """
        exact = self._exact.get(normalize(text))
        if exact:
            return frozenset(id_ for id_ in exact if _is_named(self._companies[id_], text, search_rules))
        words = _significant_words(text)
        if not words:
            return frozenset()
        inside = self._names_inside(words) if search_rules.further_words_allowed else None
        return inside or self._names_containing(words) or self._names_with_prefix(normalize(text))

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


def _is_named(company: records.Company, text: str, search_rules: rules.SearchRules) -> bool:
    """Whether `text`, equal to a name of the company after normalization, names it by stricter rules, too."""
    names = (company.name, *company.aliases) if search_rules.aliases_known else (company.name,)
    return any(
        normalize(text) == normalize(name) if search_rules.company_case_ignored else text == name for name in names
    )


def _significant_words(name: str) -> frozenset[str]:
    return frozenset(words(name)) - _COMMON_WORDS
