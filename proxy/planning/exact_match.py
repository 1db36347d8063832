"""Match rules of v3. v3 never matched a substring of an MPN, but supSearchMpn does: such results are filtered out
here.

Rules of contract v3-rest.md §4: punctuation and case are ignored, unless exact_only; `*` stands for anything.
Upstream ranks exact matches first: the first part that is not exact ends them, so `hits` needs no further request.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from proxy.model import PartsMatchQuery
from proxy.planning import wildcards
from proxy.planning.queries import Element

WILDCARD = wildcards.ANY
LITERALS_MIN = 3  # characters beside wildcards: contract v3-rest.md §4
NUMBERS = ("mpn", "akaMpns")  # of a part, which it matches by
SKUS = "sellers(includeBrokers: true).offers.sku"  # brokers' SKUs count, too: upstream finds them

MatchTest = Callable[[Any, str | None], bool]


class FilteredMatches(NamedTuple):
    """Matches of one query. `certain`: `hits` is exact, not an upper bound."""

    elements: Sequence[Element]
    hits: int
    certain: bool


def normalize(number: str) -> str:
    """Return letters and digits in upper case: the form for comparisons that ignore punctuation."""
    return "".join(filter(str.isalnum, number)).upper()


def literal(pattern: str) -> str:
    """Return the longest piece of a number with wildcards: the search text of a partial search."""
    if WILDCARD not in pattern:
        return pattern
    return max(pattern.split(WILDCARD), key=lambda piece: len(normalize(piece)))


def text_beside(query: PartsMatchQuery) -> str:
    """Return the `q` that narrows the matches of an MPN; "" where it is absent, or the number itself."""
    return query.q if query.mpn and normalize(query.q) not in ("", normalize(query.mpn)) else ""


def match_test(query: PartsMatchQuery, exact_only: bool) -> MatchTest | None:
    """Return the test that a part of a result must pass; None if all pass: a SKU is left to the upstream."""
    number = query.mpn or query.mpn_or_sku
    if exact_only and WILDCARD not in (number or ""):
        return _equal(query)
    if number and WILDCARD in number:
        return _like(number, exact_only)
    if not query.mpn:
        return None
    mpn = query.mpn
    # Most requests name the number as upstream spells it: equal texts need not be normalized.
    return lambda part, aka: part.mpn == mpn or normalize(mpn) in map(normalize, (part.mpn, aka or "", *part.akaMpns))


def is_ranked(number: str, exact_only: bool) -> bool:
    """Return whether matches come first in a result: not if punctuation counts, which upstream ignores, nor if a
    pattern has a wildcard elsewhere than at its end."""
    return not exact_only and WILDCARD not in number.rstrip(WILDCARD)


def filter_ranked(
    query: PartsMatchQuery, elements: Sequence[Element], hits: int, keep: MatchTest | None
) -> FilteredMatches:
    """Return the matches in a ranked result, where they come first, and their total number."""
    if keep is None:
        return FilteredMatches(elements, hits, certain=True)
    matches = [each for each in elements if keep(each.part, each.hit.aka_mpn)]
    # The page holds a part that does not match: behind it there are no further matches.
    if len(matches) < len(elements):
        return FilteredMatches(matches, query.start + len(matches), certain=bool(matches) or query.start == 0)
    whole = query.start + len(matches) >= hits and (bool(matches) or not hits)
    return FilteredMatches(matches, hits, certain=whole)


def filter_candidates(query: PartsMatchQuery, elements: Sequence[Element], keep: MatchTest | None) -> FilteredMatches:
    """Return the requested page of the matches among candidates; `hits` is a lower bound."""
    matches = [each for each in elements if keep is None or keep(each.part, each.hit.aka_mpn)]
    return FilteredMatches(matches[query.start : query.start + query.limit], len(matches), certain=True)


def _equal(query: PartsMatchQuery) -> MatchTest | None:
    """Return a test that compares each given number exactly."""
    mpn, sku, mpn_or_sku = query.mpn, query.sku, query.mpn_or_sku
    tests: list[MatchTest] = []
    if mpn:
        tests.append(lambda part, aka: mpn in (part.mpn, aka, *part.akaMpns))
    if sku:
        tests.append(lambda part, _: _has_sku(part, sku))
    if mpn_or_sku:
        tests.append(lambda part, aka: mpn_or_sku in (part.mpn, aka, *part.akaMpns) or _has_sku(part, mpn_or_sku))
    return (lambda part, aka: all(test(part, aka) for test in tests)) if tests else None


def _has_sku(part: Any, sku: str) -> bool:
    return any(offer.sku == sku for seller in part.sellers for offer in seller.offers)


def _like(pattern: str, exact_only: bool) -> MatchTest:
    prepare = str if exact_only else normalize
    matches = wildcards.matcher(WILDCARD.join(map(prepare, pattern.split(WILDCARD))))
    return lambda part, aka: matches(prepare(part.mpn)) or bool(aka and matches(prepare(aka)))
