"""Execution plan of parts/search: a query for the page, and operations without parts for its counts: one for those
under its own filters, and one for each count with other filters (a facet query, or a facet with `exclude_filter`)."""

import html
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from msgspec import structs

from proxy.mapping.tables import Tables, UnlistedError
from proxy.model import Drilldown, EncodedOperation, FacetField, MappingContext, SearchRequest
from proxy.planning import facets, lucene, mpn_search, queries, search_filters, search_support
from proxy.planning.documents import ATTRIBUTES
from proxy.planning.lucene import Condition
from proxy.planning.queries import Page, Query


class CountGroup(NamedTuple):
    """Counts of one operation, and the filters that they are made under."""

    filters: search_filters.SearchFilters
    facets: tuple[FacetField, ...] = ()
    stats: tuple[str, ...] = ()
    drilldown: Drilldown | None = None


class SearchPlan:
    """Execution plan of one request: `counted` are the operations with aggregations, that under the filters of the page
    first."""

    reads_numbers = False

    def __init__(
        self,
        supported: search_support.SupportedRequest,
        tables: Tables,
        features: frozenset[str],
        conditions: list[Condition],
        facet_conditions: dict[str, list[Condition]],
    ) -> None:
        """Plan with conditions that all must hold, and those of facet queries by their text. Raises BadRequest for
        an unsupported filter."""
        request = supported.request
        self._supported = supported
        self.unsupported = supported.names
        self._request = request
        self._tables = tables
        self._sorting = search_filters.sort_variables(tables, request.sortby)
        self._conditions = conditions
        self._limits = search_filters.expanded(tables, conditions)
        # An aggregation of named specs does not mark those that upstream suggests: the drilldown is counted separately.
        counted = [*(facet.field for facet in request.facets if facet.include), *dict(request.stats)]
        self._names_specs = any(search_filters.spec_key(field) is not None for field in counted)
        self.counted = [self._page_counts(), *self._separate_counts()]
        first, *separate = [
            facets.request(tables, each.facets, each.stats, each.drilldown is not None, features)
            for each in self.counted
        ]
        self._filtered = [each.field for each in self._conditions if search_filters.spec_source(tables, each.field)]
        # Descriptions are a gated field, too (contract graphql.md §6): without the feature they would fail the page.
        described = self._filtered if "TECH_SPECS" in features else []
        self.aggregations = [first.with_described(search_filters.shortnames(tables, described)), *separate]
        self._queried = [
            search_filters.translate(tables, [*self._conditions, *facet_conditions[text]])
            for text in request.facet_queries
        ]

    def queries(self) -> list[Query]:
        """Return the one query; none if it is known to find nothing."""
        request, filters = self._request, self.counted[0].filters
        if filters.finds_nothing:
            return []
        arguments = {"q": request.q, **self._sorting, **filters.variables()}
        return [queries.search("supSearch", request.start, request.start + request.limit, arguments)]

    def count_operations(self, count: mpn_search.Count, context: MappingContext) -> dict[int, EncodedOperation]:
        """Return the operations that count, without parts, by their positions: that of the page, if anything is counted
        under its filters, then separate counts, then the hits of facet queries. `count` makes the document for some
        aggregations. An operation that is known to find nothing is omitted."""
        request = self._request
        # limit 0: parts are billed as they are returned (contract graphql.md §6), so that counts are free.
        market = {"q": request.q, "country": context.country, "currency": context.currency, "start": 0, "limit": 0}
        groups = [(each.aggregations, each.variables()) for each in self.aggregations]
        counted = [*zip(groups, (each.filters for each in self.counted), strict=True)]
        counted += [((frozenset(), {}), each) for each in self._queried]
        return {
            position: count(aggregations).operation({**market, **variables, **filters.variables()}, 0)
            for position, ((aggregations, variables), filters) in enumerate(counted)
            if not filters.finds_nothing and (position or aggregations)
        }

    def page(self, found: Sequence[Page]) -> Page:
        """Return the page of what was found."""
        return found[0] if found else Page([], 0)

    def details(self, page: Page, counted: Mapping[int, Any]) -> facets.SearchDetails:
        """Return the details of the page, with all requested counts: of the result sets of the operations at these
        positions."""
        places = range(len(self.counted) + len(self._queried))
        result_sets = [counted.get(place, SimpleNamespace(hits=0 if place else page.hits)) for place in places]
        fields: dict[str, Any] = {}
        stats: dict[str, Any] = {}
        metadata: dict[str, Any] = {}
        drilled: dict[str, Any] = {}
        drilled_stats: dict[str, Any] = {}
        # Not strict: the results of facet queries follow those of the counts.
        for each, requested, result_set in zip(self.counted, self.aggregations, result_sets, strict=False):
            size = requested.size
            if each.drilldown is not None:
                drilled, drilled_stats = facets.drilldown_results(self._tables, result_set, each.drilldown.limit, size)
            fields |= {
                facet.field: facets.facet_result(self._tables, facet, result_set, self._is_limited(facet.field))
                for facet in each.facets
            }
            stats |= {
                field: facets.stats_result(self._tables, field, result_set, size, self._is_limited(field))
                for field in each.stats
            }
            metadata |= facets.metadata(self._tables, result_set, [*self._filtered, *fields, *stats, *drilled])
        counting = zip(self._request.facet_queries, result_sets[len(self.counted) :], strict=True)
        counts = {text: {"count": max(result_set.hits, 0)} for text, result_set in counting}
        facet_results = {"fields": facets.with_drilldown(fields, drilled, drilled), "queries": counts}
        measured = facets.with_drilldown(stats, drilled_stats, drilled)
        # Plain text, as v3's from 2017 on (contract v3-rest.md §3.6): the upstream highlights what matches.
        marked = [each.hit.description for each in page.elements]
        snippets = [each and html.unescape(re.sub("</?strong>", "", each)) for each in marked]
        details = facets.SearchDetails(snippets, facet_results, measured, metadata)
        return details.with_empty(self._supported.facets, self._supported.stats, self._supported.queries)

    def _page_counts(self) -> CountGroup:
        """Return the counts that are made under the request's own filters."""
        request = self._request
        counted = tuple(
            each for each in request.facets if each.include and not self._is_separate(each.field, each.exclude_filter)
        )
        stats = tuple(field for field, excluding in request.stats if not self._is_separate(field, excluding))
        drilldown = None if self._names_specs else _drilldown(request, excluding=False)
        return CountGroup(search_filters.translate(self._tables, self._conditions), counted, stats, drilldown)

    def _separate_counts(self) -> Iterator[CountGroup]:
        """Yield the counts that exclude their own filters (`exclude_filter`), or cannot be made together with the
        others."""
        if self._names_specs and (drilldown := _drilldown(self._request, excluding=False)):
            yield CountGroup(search_filters.translate(self._tables, self._conditions), drilldown=drilldown)
        for facet in self._request.facets:
            if facet.include and self._is_separate(facet.field, facet.exclude_filter):
                yield CountGroup(self._separate_filters(facet.field, facet.exclude_filter), facets=(facet,))
        for name, excluding in self._request.stats:
            if self._is_separate(name, excluding):
                yield CountGroup(self._separate_filters(name, excluding), stats=(name,))
        # Without all filters on specs, because a drilldown is about specs as a whole.
        if drilldown := _drilldown(self._request, excluding=True):
            not_specs = [each for each in self._conditions if search_filters.spec_key(each.field) is None]
            yield CountGroup(search_filters.translate(self._tables, not_specs), drilldown=drilldown)

    def _is_separate(self, field: str, excluding: bool) -> bool:
        """Return whether a field is counted under other filters: without its own, or only among the parts that can
        have it."""
        return excluding or self._is_limited(field)

    def _is_limited(self, field: str) -> bool:
        """Return whether only some of the hits can have a field: those with the quantity of a tolerance."""
        return search_filters.limited(self._tables, self._limits, field) is not self._limits

    def _separate_filters(self, field: str, excluding: bool) -> search_filters.SearchFilters:
        """Return the filters for a field that is counted separately."""
        spelled = search_filters.canonical(self._tables, field)
        conditions = [
            each
            for each in self._conditions
            if not (excluding and search_filters.canonical(self._tables, each.field) == spelled)
        ]
        return search_filters.translate(self._tables, search_filters.limited(self._tables, conditions, field))


Plan = SearchPlan | mpn_search.MpnSearchPlan


def plan_with_lists(
    request: SearchRequest, filters: lucene.RequestFilters, tables: Tables, features: frozenset[str]
) -> Generator[str, Any, Plan]:
    """Plan a search with the shipped tables. Yields the name of each upstream list that they are not enough for, and
    expects that list: a Listing, or the Tables of all specs for ATTRIBUTES. Raises BadRequest."""
    complete = False
    while True:
        try:
            return plan(request, filters, tables, features, complete=complete)
        except search_filters.UnknownSpec:  # not in the shipped tables, which may be older than upstream's list
            if complete:
                raise
            specs: Tables = yield ATTRIBUTES
            tables, complete = structs.replace(tables, specs=specs.specs), True
        except UnlistedError as missing:
            listing = yield missing.name
            tables = tables.with_list(missing.name, listing.ids)


def plan(
    request: SearchRequest,
    filters: lucene.RequestFilters,
    tables: Tables,
    features: frozenset[str],
    complete: bool = True,
) -> Plan:
    """Plan a search with these filters. `complete`: the tables have all specs of the upstream.

    Raises BadRequest for what upstream does not support; UnknownSpec and UnlistedError if the tables are incomplete.
    """
    mpns = mpn_search.filtered_mpns(tables, filters.filter_conditions)
    supported = search_support.supported_part(request, filters, tables, features, complete)
    conditions = [
        each.condition for each in filters.filter_conditions if not mpn_search.is_mpn_filter(tables, each.condition)
    ]
    if mpns is None:
        return SearchPlan(supported, tables, features, conditions, filters.facet_queries)
    return mpn_search.MpnSearchPlan(supported, tables, mpns, conditions)


def _drilldown(request: SearchRequest, excluding: bool) -> Drilldown | None:
    drilldown = request.drilldown
    return drilldown if drilldown and drilldown.include and drilldown.exclude_filter is excluding else None
