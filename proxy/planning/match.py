"""Queries of parts/match: which lists of the core they need, and what v3 shows of these lists (contract v3-rest.md §4).

A number with wildcards goes to supSearchMpn, and so does the only query of a request if a setting says so; `q` goes to
supSearch, also beside an MPN, everything else to supMultiMatch.

v3 never matched a substring of an MPN, but supSearchMpn does: such results are filtered out here. Punctuation and case
are ignored, unless exact_only; `*` stands for anything. Upstream ranks exact matches first: the first part that is not
exact ends them, so `hits` needs no further request. Where it does not, they are filtered from candidates. Pure.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from proxy.model import EncodedOperation, MappingContext, PartsMatchQuery, PartsMatchRequest
from proxy.planning import documents, queries
from proxy.planning.lucene import ANY, matcher
from proxy.planning.queries import Element, Query

CANDIDATES = 20  # parts to request if upstream does not rank matches first; matches are filtered from them
LITERALS_MIN = 3  # characters beside wildcards: contract v3-rest.md §4
NUMBERS = ("mpn", "akaMpns")  # of a part, which it matches by
SKUS = "sellers(includeBrokers: true).offers.sku"  # brokers' SKUs count, too: upstream finds them

SingleQuery = Literal["supSearchMpn", "supMultiMatch"]
MatchTest = Callable[[Any, str | None], bool]

_COUNT = documents.multi_match()


class FilteredMatches(NamedTuple):
    """Matches of one query. `certain`: `hits` is exact, not an upper bound."""

    elements: Sequence[Element]
    hits: int
    certain: bool


def of_request(request: PartsMatchRequest, single_query: SingleQuery) -> list[tuple[PartsMatchQuery, Query]]:
    """Return the valid queries of a request, each with that of the core. `single_query` is where a number goes that is
    asked for alone: not with exact_only, for which supMultiMatch returns, and bills, fewer candidates."""
    valid = [query for query in request.queries if query.error is None]
    is_single = len(valid) == 1 and not request.exact_only and single_query == "supSearchMpn"
    return [(query, of_match(query, request.exact_only, is_single=is_single)) for query in valid]


def of_match(query: PartsMatchQuery, exact_only: bool, *, is_single: bool = False) -> Query:
    """Return the query of the core for one of parts/match. `is_single`: by supSearchMpn if it has but a number."""
    number = query.mpn or query.mpn_or_sku or ""
    # Matches are filtered from candidates where they may not come first, whichever page is asked for.
    is_page = _is_ranged(query, exact_only)
    start = query.start if is_page else 0
    end = query.start + query.limit if is_page else max(CANDIDATES, query.start + query.limit)
    is_single = is_single and bool(query.mpn) and not (query.sku or query.brand or query.seller or query.mpn_or_sku)
    beside = _text_beside(query)
    if beside or (query.q and not (number or query.sku)) or ANY in number or is_single:
        # The upstream accepts names in its id filters (contract graphql.md §2.4).
        named = {"manufacturer_id": query.brand, "distributor_id": query.seller}
        filters = {name: [value] for name, value in named.items() if value}
        q = f"{beside} {number}" if beside else literal(number) if ANY in number else number or query.q
        root: queries.SearchRoot = "supSearchMpn" if number and not beside else "supSearch"
        return queries.search(root, start, end, {"q": q, "filters": filters or None})
    return _matching(query, start, end)


def shown(query: PartsMatchQuery, exact_only: bool, hits: int, elements: Sequence[Element]) -> FilteredMatches:
    """Return what v3 shows of the elements that a query has asked for, of so many hits."""
    keep, first = _test(query, exact_only), query.start
    matches = elements if keep is None else [each for each in elements if keep(each.part, each.hit.aka_mpn)]
    if not _is_ranged(query, exact_only):  # among candidates: there may be more
        return FilteredMatches(matches[first : first + query.limit], len(matches), certain=True)
    if keep is None:
        return FilteredMatches(matches, hits, certain=True)
    # The page holds a part that does not match: behind it there are no further matches.
    if len(matches) < len(elements):
        return FilteredMatches(matches, first + len(matches), certain=bool(matches) or first == 0)
    return FilteredMatches(matches, hits, certain=first + len(matches) >= hits and (bool(matches) or not hits))


def needs_count(query: PartsMatchQuery, asked: Query, matches: FilteredMatches) -> bool:
    """Return whether the page leaves open how many parts match: a search has partial matches among its hits, too. No
    operation counts the matches of a pattern."""
    number = query.mpn or query.mpn_or_sku or ""
    return asked.root == "supSearchMpn" and ANY not in number and not matches.certain


def count(query: PartsMatchQuery, market: MappingContext) -> EncodedOperation:
    """Return the operation that counts the parts that match, without parts."""
    counted = _matching(query, query.start, query.start).criteria | {"start": query.start, "limit": 0}
    return _COUNT.operation({"queries": [counted], "country": market.country, "currency": market.currency}, 0)


def normalize(number: str) -> str:
    """Return letters and digits in upper case: the form for comparisons that ignore punctuation."""
    return "".join(filter(str.isalnum, number)).upper()


def literal(pattern: str) -> str:
    """Return the longest piece of a number with wildcards: the search text of a partial search."""
    return max(pattern.split(ANY), key=lambda piece: len(normalize(piece)))


def _text_beside(query: PartsMatchQuery) -> str:
    """Return the `q` that narrows the matches of an MPN; "" where it is absent, or the number itself."""
    if not (query.q and query.mpn) or normalize(query.q) in ("", normalize(query.mpn)):
        return ""
    return query.q


def _is_ranged(query: PartsMatchQuery, exact_only: bool) -> bool:
    """Return whether the upstream returns any page of a query's matches: not where they may not come first in its
    result: where punctuation counts, which it ignores, beside a `q`, and if a pattern has a wildcard elsewhere than at
    its end. A query without a number has nothing to compare."""
    number = query.mpn or query.mpn_or_sku or ""
    if not (number or query.sku):
        return True
    return not exact_only and ANY not in number.rstrip(ANY) and not _text_beside(query)


def _matching(query: PartsMatchQuery, start: int, end: int) -> Query:
    return queries.matching(
        start,
        end,
        mpn=query.mpn,
        mpn_or_sku=query.mpn_or_sku,
        sku=query.sku,
        manufacturer=query.brand,
        seller=query.seller,
    )


def _test(query: PartsMatchQuery, exact_only: bool) -> MatchTest | None:
    """Return the test that a part of a result must pass; None if all pass: a SKU is left to the upstream."""
    mpn, number = query.mpn, query.mpn or query.mpn_or_sku or ""
    if ANY in number:
        prepare = str if exact_only else normalize
        is_like = matcher(ANY.join(map(prepare, number.split(ANY))))
        return lambda part, aka: is_like(prepare(part.mpn)) or bool(aka and is_like(prepare(aka)))
    if exact_only:
        return _equal(query)
    if not mpn:
        return None
    # Most requests name the number as upstream spells it: equal texts need not be normalized.
    return lambda part, aka: part.mpn == mpn or normalize(mpn) in map(normalize, (part.mpn, aka or "", *part.akaMpns))


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
