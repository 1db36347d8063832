"""Match rules of v3. It never matched a part of an MPN, supSearchMpn does: such results are filtered out here.

Rules of contract v3-rest.md §4: punctuation and case are ignored, unless exact_only; `*` stands for anything.
The service ranks exact matches first, so the first part that is none ends the exact ones: that keeps `hits` honest.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from proxy.mapping import paths
from proxy.model import PartsMatchQuery
from proxy.planning import wildcards
from proxy.planning.operations import OperationResult

WILDCARD = wildcards.ANY
LITERALS_MIN = 3  # characters beside wildcards: contract v3-rest.md §4
SKUS = "sellers(includeBrokers: true).offers.sku"  # a SKU is one whoever sells it, and the service finds brokers' too

MatchTest = Callable[[Any, str | None], bool]

_all_sellers = attrgetter(paths.parse(SKUS).steps[0].alias)


class FilteredMatches(NamedTuple):
    """The matches of one query. `certain`: whether `hits` is a count, not only the most there can be."""

    parts: list[Any]
    hits: int
    certain: bool


def normalise(number: str) -> str:
    """Letters and digits in upper case: what is compared when punctuation does not count."""
    return "".join(filter(str.isalnum, number)).upper()


def literal(pattern: str) -> str:
    """The longest piece of a number with wildcards: what a partial search is asked for."""
    return max(pattern.split(WILDCARD), key=lambda piece: len(normalise(piece)))


def match_test(query: PartsMatchQuery, exact_only: bool, partial: bool) -> MatchTest | None:
    """The test that a part of a result must pass; None where all pass. `partial`: the result may hold partial
    matches."""
    number = query.mpn or query.mpn_or_sku
    if exact_only and WILDCARD not in (number or ""):
        return _equal(query)
    if not number:
        return None
    if WILDCARD in number:
        return _like(number, exact_only)
    if not partial:
        return None
    wanted = normalise(number)
    return lambda part, aka: normalise(part.mpn) == wanted or (aka is not None and normalise(aka) == wanted)


def is_ranked(number: str, exact_only: bool) -> bool:
    """Whether matches come first in an answer: not where punctuation counts, which the service never looks at, nor
    where a pattern begins or goes on after its wildcard."""
    return not exact_only and WILDCARD not in number.rstrip(WILDCARD)


def filter_ranked(query: PartsMatchQuery, found: OperationResult, keep: MatchTest | None) -> FilteredMatches:
    """The matches among what was found, which come first in it, and how many there are in all."""
    if keep is None:
        return FilteredMatches(found.parts, found.hits, certain=True)
    kept = [part for part, aka in found.with_alternate_mpns() if keep(part, aka)]
    if len(kept) < len(found.parts):
        return FilteredMatches(kept, query.start + len(kept), certain=bool(kept) or query.start == 0)
    whole = query.start + len(kept) >= found.hits and (bool(kept) or not found.hits)
    return FilteredMatches(kept, found.hits, certain=whole)


def filter_candidates(query: PartsMatchQuery, found: OperationResult, keep: MatchTest | None) -> FilteredMatches:
    """The requested page of the matches among candidates; `hits` is the least that there are."""
    kept = [part for part, aka in found.with_alternate_mpns() if keep is None or keep(part, aka)]
    return FilteredMatches(kept[query.start : query.start + query.limit], len(kept), certain=True)


def _equal(query: PartsMatchQuery) -> MatchTest | None:
    """Each number that is asked for, to the letter."""
    mpn, sku, either = query.mpn, query.sku, query.mpn_or_sku
    tests: list[MatchTest] = []
    if mpn:
        tests.append(lambda part, aka: mpn in (part.mpn, aka))
    if sku:
        tests.append(lambda part, _: _has_sku(part, sku))
    if either:
        tests.append(lambda part, aka: either in (part.mpn, aka) or _has_sku(part, either))
    return (lambda part, aka: all(test(part, aka) for test in tests)) if tests else None


def _has_sku(part: Any, sku: str) -> bool:
    return any(offer.sku == sku for seller in _all_sellers(part) for offer in seller.offers)


def _like(pattern: str, exact_only: bool) -> MatchTest:
    prepare = str if exact_only else normalise
    matches = wildcards.matcher(WILDCARD.join(map(prepare, pattern.split(WILDCARD))))
    return lambda part, aka: matches(prepare(part.mpn)) or bool(aka and matches(prepare(aka)))
