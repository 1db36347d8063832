"""Queries of parts/search: the lists that a page needs, and the page that is made of them (contract v3-rest.md §3.6).
Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from proxy.model import SearchRequest
from proxy.next import queries
from proxy.next.queries import Element, Query
from proxy.planning.facets import SearchDetails
from proxy.planning.mpn_search import MpnSearchPlan
from proxy.planning.search import Plan


class Page(NamedTuple):
    """Elements on a page, and all hits."""

    elements: list[Element]
    hits: int


def of_plan(plan: Plan, request: SearchRequest) -> list[Query]:
    """Return the queries of a plan: one for each number, or the one search; none if nothing can be found."""
    if isinstance(plan, MpnSearchPlan):
        return [queries.matching(0, plan.limit, mpn=number, options=plan.options) for number in plan.numbers]
    if plan.arguments is None:
        return []
    return [queries.search("supSearch", request.start, request.start + request.limit, plan.arguments)]


def page(plan: Plan, request: SearchRequest, found: Sequence[tuple[int, Sequence[Element]]]) -> Page:
    """Return the page of what was found for each query of a plan: all its hits, and elements."""
    if not isinstance(plan, MpnSearchPlan):
        return Page([*found[0][1]], found[0][0]) if found else Page([], 0)
    by_number = zip(plan.numbers, found, strict=True)
    matches = plan.matches((number, element) for number, (_, elements) in by_number for element in elements)
    # Candidates that were not returned may differ in punctuation, but count as hits.
    hits = len(matches) + sum(max(0, hits - len(elements)) for hits, elements in found)
    return Page(matches[request.start : request.start + request.limit], hits)


def details(plan: Plan, page: Page, counted: Mapping[int, Any]) -> SearchDetails:
    """Return what a response says beside the parts of a page: with the result sets of the operations that count."""
    if isinstance(plan, MpnSearchPlan):
        return plan.details(page.hits, [each.part.shortDescription for each in page.elements])
    return plan.details(page.hits, [each.hit.description for each in page.elements], counted)
