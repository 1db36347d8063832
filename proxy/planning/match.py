"""Queries of parts/match: which lists of the core they need, and what v3 shows of these lists (contract v3-rest.md §4).

A number with wildcards goes to supSearchMpn, and so does the only query of a request if a setting says so; `q` goes to
supSearch, also beside an MPN, everything else to supMultiMatch. Where the upstream does not rank matches first, they
are filtered from candidates. Pure.
"""

from collections.abc import Sequence
from typing import Literal

from proxy.model import MappingContext, PartsMatchQuery, PartsMatchRequest
from proxy.planning import documents, exact_match, queries
from proxy.planning.operations import EncodedOperation
from proxy.planning.queries import Element, Query

CANDIDATES = 20  # parts to request if upstream does not rank matches first; matches are filtered from them

SingleQuery = Literal["supSearchMpn", "supMultiMatch"]

_COUNT = documents.match_count()


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
    is_page = is_ranged(query, exact_only)
    start = query.start if is_page else 0
    end = query.start + query.limit if is_page else max(CANDIDATES, query.start + query.limit)
    is_single = is_single and bool(query.mpn) and not (query.sku or query.brand or query.seller or query.mpn_or_sku)
    beside = exact_match.text_beside(query)
    if beside or (query.q and not (number or query.sku)) or exact_match.WILDCARD in number or is_single:
        # The upstream accepts names in its id filters (contract graphql.md §2.4).
        named = {"manufacturer_id": query.brand, "distributor_id": query.seller}
        filters = {name: [value] for name, value in named.items() if value}
        q = f"{beside} {number}" if beside else exact_match.literal(number) if number else query.q
        root: queries.SearchRoot = "supSearchMpn" if number and not beside else "supSearch"
        return queries.search(root, start, end, {"q": q, "filters": filters or None})
    return _matching(query, start, end)


def shown(
    query: PartsMatchQuery, exact_only: bool, hits: int, elements: Sequence[Element]
) -> exact_match.FilteredMatches:
    """Return what v3 shows of the elements that a query has asked for, of so many hits."""
    keep = exact_match.match_test(query, exact_only)
    if is_ranged(query, exact_only):
        return exact_match.filter_ranked(query, elements, hits, keep)
    return exact_match.filter_candidates(query, elements, keep)


def needs_count(query: PartsMatchQuery, asked: Query, matches: exact_match.FilteredMatches) -> bool:
    """Return whether the page leaves open how many parts match: a search has partial matches among its hits, too. No
    operation counts the matches of a pattern."""
    number = query.mpn or query.mpn_or_sku or ""
    return asked.root == "supSearchMpn" and exact_match.WILDCARD not in number and not matches.certain


def count(query: PartsMatchQuery, market: MappingContext) -> EncodedOperation:
    """Return the operation that counts the parts that match, without parts."""
    counted = _matching(query, query.start, query.start).criteria | {"start": query.start, "limit": 0}
    return _COUNT.operation({"queries": [counted], "country": market.country, "currency": market.currency}, 0)


def is_ranged(query: PartsMatchQuery, exact_only: bool) -> bool:
    """Return whether the upstream returns any page of a query's matches: not where they may not come first in its
    result. A query without a number has nothing to compare."""
    number = query.mpn or query.mpn_or_sku or ""
    is_ranked = exact_match.is_ranked(number, exact_only) and not exact_match.text_beside(query)
    return is_ranked or not (number or query.sku)


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
