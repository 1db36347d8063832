"""The text rules of the matching: what counts as the same part number, what counts as the same company name.

Pure functions and one immutable look-up. The store turns them into rows; no part is looked up here.
"""

import re
from collections.abc import Iterable

from proxy.sandbox.catalog import records

_NOT_ALNUM = re.compile(r"[\W_]+")
_WORD = re.compile(r"[^\W_]+")

# Words that many companies share; alone they name nobody.
_COMMON = frozenset(
    """
    AND CO COMPANY COMPONENT COMPONENTS CORP CORPORATION ELECTRIC ELECTRONIC ELECTRONICS GMBH GROUP
    INC INCORPORATED INDUSTRIES INDUSTRY INTERNATIONAL LIMITED LLC LTD SEMI SEMICONDUCTOR
    SEMICONDUCTORS TECHNOLOGIES TECHNOLOGY THE
    """.split()  # noqa: SIM905  a list of words, not of quotes
)

LITERAL, EQUAL, PREFIX, INSIDE = range(4)


def normalise(text: str) -> str:
    """Letters and digits only, upper case (contract graphql.md §2.3): "1.5SMC68CA" is "15SMC68CA"."""
    return _NOT_ALNUM.sub("", text).upper()


def words(text: str) -> tuple[str, ...]:
    """The runs of letters and digits in upper case: "Lite-On" is LITE, ON."""
    return tuple(_WORD.findall(text.upper()))


def closeness(query: str, mpn: str) -> int | None:
    """How `mpn` answers `query`: LITERAL, EQUAL (once normalised), PREFIX, INSIDE, or None; lower is
    better."""
    if query == mpn:
        return LITERAL
    wanted, held = normalise(query), normalise(mpn)
    if wanted == held:
        return EQUAL
    if held.startswith(wanted):
        return PREFIX
    return INSIDE if wanted in held else None


class Names:
    """Finds companies by loose spelling: case, punctuation, aliases, contained words."""

    def __init__(self, companies: Iterable[records.Company]) -> None:
        self._exact: dict[str, list[str]] = {}
        self._words: list[tuple[frozenset[str], str]] = []
        for company in companies:
            for name in (company.name, *company.aliases):
                self._exact.setdefault(normalise(name), []).append(company.id)
                self._words.append((_telling(name), company.id))

    def find(self, text: str) -> frozenset[str]:
        """Ids of the companies `text` may mean; empty for a spelling nobody has.

        A name or alias that is equal once normalised wins alone. Else the words decide: all telling words of
        a name are in the text ("Vishay Lite-On" is Lite-On, the longer name wins), or all of the text's are
        in a name. Last, the text may be the start of a name ("STMicro").
        """
        exact = self._exact.get(normalise(text))
        if exact:
            return frozenset(exact)
        asked = _telling(text)
        if not asked:
            return frozenset()
        return self._holding(asked) or self._held_by(asked) or self._begun_by(normalise(text))

    def _held_by(self, asked: frozenset[str]) -> frozenset[str]:
        if all(len(word) < 3 for word in asked):
            return frozenset()
        return frozenset(id_ for held, id_ in self._words if asked <= held)

    def _begun_by(self, start: str) -> frozenset[str]:
        if len(start) < 4:
            return frozenset()
        return frozenset(id_ for name, ids in self._exact.items() if name.startswith(start) for id_ in ids)

    def _holding(self, asked: frozenset[str]) -> frozenset[str]:
        inside = [(len(held), id_) for held, id_ in self._words if held <= asked and max(map(len, held), default=0) > 2]
        most = max((size for size, _ in inside), default=0)
        return frozenset(id_ for size, id_ in inside if size == most)


def _telling(name: str) -> frozenset[str]:
    return frozenset(words(name)) - _COMMON
