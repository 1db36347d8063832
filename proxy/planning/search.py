"""parts/search as GraphQL: one supSearch for the page and its counts, one more without parts for each count that has
another set of filters (a facet query, or a facet that leaves its own filter out of account).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import eq
from types import SimpleNamespace
from typing import Any, NamedTuple

from proxy.mapping import tables
from proxy.model import Context, Drilldown, FacetField, SearchRequest
from proxy.planning import criteria, facets, lucene
from proxy.planning.operations import Ask, Document, Found, Outcome

NOTHING = Found([], 0, whole=SimpleNamespace(hits=0))  # what stands for the answer to what need not be asked


class Searched(NamedTuple):
    """What a search's reply says beside the parts: their snippets, and v3's counts."""

    snippets: list[str]
    hits: int
    facet_results: dict[str, dict[str, Any]]
    stats_results: dict[str, Any]
    spec_metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Counted:
    """What one operation counts, under which criteria."""

    criteria: criteria.Criteria
    facets: tuple[FacetField, ...] = ()
    stats: tuple[str, ...] = ()
    drilldown: Drilldown | None = None


class SearchPlan:
    """One request's way: `counted` are the operations with aggregations, the one with the page first."""

    def __init__(self, request: SearchRequest, book: tables.Tables, features: frozenset[str]) -> None:
        """Raises BadRequest for what the service cannot filter, sort or count by."""
        self._request = request
        self._book = book
        self._sorting = criteria.sorting(book, request.sortby)
        self._conditions = [
            *(condition for field, values in request.filters for condition in lucene.field_conditions(field, values)),
            *(condition for text in request.filter_queries for condition in lucene.conditions(text)),
        ]
        # Of specs that are counted by name the service does not tell those that it suggests: these go apart then.
        counted = [*(facet.field for facet in request.facets if facet.include), *dict(request.stats)]
        self._names_specs = any(criteria.spec_key(field) is not None for field in counted)
        self.counted = [self._together(), *self._apart()]
        self.wanted = [
            facets.wanted(book, each.facets, each.stats, each.drilldown is not None, features) for each in self.counted
        ]
        self._queried = [
            criteria.criteria(book, [*self._conditions, *lucene.conditions(text)]) for text in request.facet_queries
        ]

    def asks(self, page: Document, counting: list[Document], hits: Document, context: Context) -> list[Ask]:
        """The page first, then what is counted apart, then the hits of facet queries; only the page returns parts.
        What surely finds nothing is not asked."""
        request = self._request
        market = {"q": request.q, "country": context.country, "currency": context.currency}
        first = {**market, "start": request.start, "limit": request.limit, **self._sorting}
        rest = {**market, "start": 0, "limit": 0}
        asked = [
            (document, {**shown, **wanted.variables()}, each.criteria)
            for document, shown, wanted, each in zip(
                [page, *counting], [first, *[rest] * len(counting)], self.wanted, self.counted, strict=True
            )
        ]
        asked += [(hits, rest, each) for each in self._queried]
        return [
            Ask(document, {**variables, **each.variables()}, int(variables["limit"]), read, (position,))
            for position, (document, variables, each) in enumerate(asked)
            if not each.finds_nothing
        ]

    def outcome(self, found: dict[int, Found]) -> Outcome:
        """The page's parts, and beside them everything else that v3's reply says, of what was asked."""
        failure = next((each.failure for each in found.values() if each.failure is not None), None)
        if failure is not None:
            return Outcome([], 0, failure.message, failure)
        every = [found.get(position, NOTHING) for position in range(len(self.counted) + len(self._queried))]
        return Outcome(every[0].parts, every[0].hits, beside=self._searched(every))

    def _searched(self, found: list[Found]) -> Searched:
        fields: dict[str, Any] = {}
        stats: dict[str, Any] = {}
        metadata: dict[str, Any] = {}
        drilled: dict[str, Any] = {}
        for each, answer in zip(self.counted, (one.whole for one in found), strict=False):
            if each.drilldown is not None:
                drilled = facets.drilldown_results(self._book, answer, each.drilldown.limit)
            fields |= {facet.field: facets.facet_result(self._book, facet, answer) for facet in each.facets}
            stats |= {field: facets.stats_result(self._book, field, answer) for field in each.stats}
            metadata |= facets.metadata(self._book, answer, [*fields, *stats, *drilled])
        queries = zip(self._request.facet_queries, found[len(self.counted) :], strict=True)
        counts = {text: {"count": one.hits} for text, one in queries}
        snippets = [result.description for result in getattr(found[0].whole, "results", None) or []]
        results = {"fields": facets.ranked(fields, drilled), "queries": counts}
        return Searched(snippets, found[0].hits, results, stats, metadata)

    def _together(self) -> Counted:
        """What is counted under the request's own criteria."""
        request = self._request
        counted = tuple(facet for facet in request.facets if facet.include and not facet.exclude_filter)
        stats = tuple(field for field, excluding in request.stats if not excluding)
        drilldown = None if self._names_specs else _drilldown(request, excluding=False)
        return Counted(criteria.criteria(self._book, self._conditions), counted, stats, drilldown)

    def _apart(self) -> Iterator[Counted]:
        """What leaves its own filters out of account (`exclude_filter`), or cannot be counted beside the others."""
        if self._names_specs and (drilldown := _drilldown(self._request, excluding=False)):
            yield Counted(criteria.criteria(self._book, self._conditions), drilldown=drilldown)
        for facet in self._request.facets:
            if facet.include and facet.exclude_filter:
                yield Counted(self._without(partial(eq, facet.field)), facets=(facet,))
        for name, excluding in self._request.stats:
            if excluding:
                yield Counted(self._without(partial(eq, name)), stats=(name,))
        if drilldown := _drilldown(self._request, excluding=True):
            yield Counted(self._without(lambda field: criteria.spec_key(field) is not None), drilldown=drilldown)

    def _without(self, excluded: Callable[[str], bool]) -> criteria.Criteria:
        return criteria.criteria(self._book, [each for each in self._conditions if not excluded(each.field)])


def _drilldown(request: SearchRequest, excluding: bool) -> Drilldown | None:
    drilldown = request.drilldown
    return drilldown if drilldown and drilldown.include and drilldown.exclude_filter is excluding else None


def read(data: Any) -> list[Found]:
    """A result set as what was found; counts read it whole."""
    answer = data.supSearch
    parts = [result.part for result in getattr(answer, "results", None) or []]
    return [Found(parts, answer.hits, whole=answer)]
