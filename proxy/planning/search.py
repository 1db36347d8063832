"""Execution plan of parts/search: a query for the page, and operations without parts for its counts: one for those
under its own filters, and one for each count with other filters (a facet query, or a facet with `exclude_filter`).

Counts without a source are served empty, sort keys ignored, both named: neither changes which parts are found. A field
that v3 never had is a 400. So is every filter that the upstream cannot apply: without it the result would be wrong.
"""

import html
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

from msgspec import structs

from proxy import errors
from proxy.mapping.rules import SearchField, Tables, UnlistedError
from proxy.mapping.specs import SpecNames
from proxy.model import EncodedOperation, MappingContext, SearchRequest
from proxy.planning import documents, facets, lucene, match, queries, search_filters
from proxy.planning.facets import CountGroup, SupportedRequest
from proxy.planning.lucene import Condition, RequestFilters
from proxy.planning.queries import Page

SCORE = ("score", "desc")  # the upstream's default order


class SearchPlan:
    """Execution plan of one request. Its `queries` are one, or none if it is known to find nothing."""

    reads_numbers = False

    def __init__(
        self,
        supported: SupportedRequest,
        tables: Tables,
        features: frozenset[str],
        conditions: list[Condition],
        facet_conditions: dict[str, list[Condition]],
    ) -> None:
        """Plan with conditions that all must hold, and those of facet queries by their text. Raises BadRequest."""
        request = supported.request
        self.supported = supported
        self.unsupported = supported.names
        self._tables = tables
        sorting = search_filters.sort_variables(tables, request.sortby)
        self._conditions = conditions
        limits = search_filters.expanded(tables, conditions)
        # Fields that only some of the hits can have: those with the quantity of a tolerance.
        named = (*(each.field for each in request.facets), *dict(request.stats))
        self._limited = {field for field in named if search_filters.limited(tables, limits, field) is not limits}
        filtered = [search_filters.field_of(tables, each.field) for each in conditions]
        self._filtered = [each.field for each, field in zip(conditions, filtered, strict=True) if field.source]
        # Descriptions are a gated field, too (contract graphql.md §6): without the feature they would fail the page.
        described = [name for field in filtered for name in field.shortnames] if "TECH_SPECS" in features else []
        self.counted: list[tuple[CountGroup, facets.AggregationRequest]] = []
        for each in self._count_groups(facet_conditions):
            asked = facets.request(tables, each, features, () if self.counted else described)
            self.counted.append((each, asked))
        filters = self.counted[0][0].filters
        arguments = {"q": request.q, **sorting, **filters.variables}
        page = queries.of_list("supSearch", request.start, request.start + request.limit, arguments)
        self.queries = [] if filters.finds_nothing else [page]

    def page(self, found: Sequence[Page]) -> Page:
        return found[0] if found else Page([], 0)

    def details(self, page: Page, counted: Mapping[int, Any]) -> facets.SearchDetails:
        """Return the details of the page, with all counts of the operations, whose result sets are `counted`."""
        fields: dict[str, Any] = {}
        stats: dict[str, Any] = {}
        metadata: dict[str, Any] = {}
        drilled: dict[str, Any] = {}
        drilled_stats: dict[str, Any] = {}
        counts: dict[str, Any] = {}
        for position, (each, asked) in enumerate(self.counted):
            result_set = counted.get(position, SimpleNamespace(hits=0 if position else page.hits))
            if each.query is not None:
                counts[each.query] = {"count": max(result_set.hits, 0)}
                continue
            size = asked.size
            if each.drilldown is not None:
                drilled, drilled_stats = facets.drilldown_results(self._tables, result_set, each.drilldown.limit, size)
            for facet in each.facets:
                limited = facet.field in self._limited
                fields[facet.field] = facets.facet_result(self._tables, facet, result_set, limited)
            for field in each.stats:
                stats[field] = facets.stats_result(facets.specs(self._tables, field, result_set), result_set, size)
                if field in self._limited:
                    stats[field]["missing"] = None
            metadata |= facets.metadata(self._tables, result_set, [*self._filtered, *fields, *stats, *drilled])
        # Those that were requested have their own values, and the rank of a spec that the upstream suggests.
        for requested in (fields, stats):
            for field in requested.keys() & drilled.keys():
                requested[field]["spec_drilldown_rank"] = drilled[field]["spec_drilldown_rank"]
        facet_results = {"fields": {**drilled, **fields}, "queries": counts}
        # Plain text, as v3's from 2017 on (contract v3-rest.md §3.6): the upstream highlights what matches.
        marked = [each.hit.description for each in page.elements]
        snippets = [each and html.unescape(re.sub("</?strong>", "", each)) for each in marked]
        details = facets.SearchDetails(snippets, facet_results, {**drilled_stats, **stats}, metadata)
        return details.with_empty(self.supported)

    def _count_groups(self, facet_conditions: dict[str, list[Condition]]) -> Iterator[CountGroup]:
        """Yield the counts under the request's own filters, then those that exclude theirs (`exclude_filter`), or
        cannot be made together with the others, then facet queries."""
        request, tables = self.supported.request, self._tables
        own_filters = search_filters.translate(tables, self._conditions)
        counted = [each for each in request.facets if each.include]
        separate = [each for each in counted if each.exclude_filter or each.field in self._limited]
        measured = [(name, excluding) for name, excluding in request.stats if excluding or name in self._limited]
        drilldown = request.drilldown if request.drilldown and request.drilldown.include else None
        together = CountGroup(
            own_filters,
            tuple(each for each in counted if each not in separate),
            tuple(name for name, excluding in request.stats if (name, excluding) not in measured),
        )
        if drilldown and not drilldown.exclude_filter:
            named = (*(each.field for each in counted), *dict(request.stats))
            if any(search_filters.field_of(tables, field).key is not None for field in named):
                # An aggregation of named specs does not mark those that upstream suggests.
                yield from (together, CountGroup(own_filters, drilldown=drilldown))
            else:
                yield together._replace(drilldown=drilldown)
        else:
            yield together
        alone = [(each.field, each.exclude_filter, CountGroup(own_filters, facets=(each,))) for each in separate]
        alone += [(name, excluding, CountGroup(own_filters, stats=(name,))) for name, excluding in measured]
        for name, excluding, group in alone:
            # Without the filters of the field, or among the parts that can have it.
            excluded = search_filters.field_of(tables, name).name if excluding else None
            own = ((each, search_filters.field_of(tables, each.field).name) for each in self._conditions)
            others = [each for each, field in own if field != excluded]
            yield group._replace(filters=search_filters.translate(tables, search_filters.limited(tables, others, name)))
        if drilldown and drilldown.exclude_filter:
            # Without all filters on specs, because a drilldown is about specs as a whole.
            fields = ((each, search_filters.field_of(tables, each.field)) for each in self._conditions)
            not_specs = [each for each, field in fields if field.key is None]
            yield CountGroup(search_filters.translate(tables, not_specs), drilldown=drilldown)
        for text in request.facet_queries:
            conditions = [*self._conditions, *facet_conditions[text]]
            yield CountGroup(search_filters.translate(tables, conditions), query=text)


Plan = SearchPlan | match.MpnSearchPlan


def count_operations(plan: Plan, context: MappingContext) -> dict[int, EncodedOperation]:
    """Return the operations that count, without parts, by their positions: that of the page, if anything is counted
    under its filters, then separate counts, then facet queries; none that is known to find nothing."""
    request = plan.supported.request
    # limit 0: parts are billed as they are returned (contract graphql.md §6), so that counts are free.
    market = {"q": request.q, "country": context.country, "currency": context.currency, "start": 0, "limit": 0}
    return {
        position: documents.count(asked.aggregations).operation(
            {**market, **asked.variables, **group.filters.variables}, 0
        )
        for position, (group, asked) in enumerate(plan.counted)
        if not group.filters.finds_nothing and (position or asked.aggregations)
    }


def plan_with_lists(
    request: SearchRequest, filters: RequestFilters, tables: Tables, features: frozenset[str]
) -> Generator[str, Any, Plan]:
    """Plan a search with the shipped tables. Yields the name of each upstream list that they are not enough for, and
    expects that list: a Listing, or the names of all specs for ATTRIBUTES. Raises BadRequest for what is not
    supported."""
    complete = False
    while True:
        try:
            mpns, conditions = match.filtered_mpns(tables, filters.filter_conditions)
            support = _FieldSupport(tables, complete, has_counts=mpns is None, has_specs="TECH_SPECS" in features)
            supported = _supported_part(request, filters, support)
            if mpns is None:
                return SearchPlan(supported, tables, features, conditions, filters.facet_queries)
            return match.MpnSearchPlan(supported, tables, mpns, conditions)
        except search_filters.UnknownSpec:  # not in the shipped tables, which may be older than upstream's list
            if complete:
                raise
            specs: SpecNames = yield documents.ATTRIBUTES
            tables, complete = structs.replace(tables, specs=specs), True
        except UnlistedError as missing:
            [name] = missing.args
            listing = yield name
            tables = structs.replace(tables, listed={**tables.listed, name: listing.ids})


def _supported_part(request: SearchRequest, filters: RequestFilters, support: "_FieldSupport") -> SupportedRequest:
    tables = support.tables
    facets = tuple(each for each in request.facets if each.include and not support.counts(each.field))
    stats = tuple(field for field, _ in request.stats if not support.counts(field, numbers=True))
    queries: list[str] = []
    for text in request.facet_queries:
        named = [each.field for each in filters.facet_queries[text] if not search_filters.is_always_true(tables, each)]
        entries = [support.of(field, "filter") for field in named]
        if not (support.has_counts and all(entry and (entry.filter or entry.stock) for entry in entries)):
            queries.append(text)
    orders = [lucene.order(text) for text in request.sortby.split(",") if text.strip()]
    # All are looked up, even those behind the first: a field that v3 never had is a 400 wherever it stands.
    sorts = [None if name == "score" else support.of(name, "sort") for name, _ in orders]
    sorted_by = (each for each, entry in zip(orders, sorts, strict=True) if each == SCORE or (entry and entry.sort))
    first = next(sorted_by, SCORE)
    ignored = [name for name, _ in dict.fromkeys(each for each in orders if each not in (first, SCORE))]
    names = [
        *(f"facet[fields][{each.field}]" for each in facets),
        *(f"stats[{field}]" for field in stats),
        *(f"facet[queries]={text}" for text in queries),
        *(f"sortby={name}" for name in ignored),
        *(  # values that should be uids or names of objects, but match none; a pattern is no misspelt name
            f"{each.prefix}{value}"
            for each in filters.filter_conditions
            if (field := tables.search.get(each.condition.field)) and (field.uid or field.name)
            for value in each.condition.values
            if lucene.ANY not in value and not search_filters.ids(tables, field, value)
        ),
    ]
    # Specs are gated by the plan (contract graphql.md §6): the counts stay empty, and the header says so.
    if request.drilldown and request.drilldown.include and not (support.has_counts and support.has_specs):
        names.append("spec_drilldown")
    remaining = structs.replace(
        request,
        sortby=" ".join(first),
        facets=tuple(each for each in request.facets if each not in facets),
        stats=tuple((field, exclude_filter) for field, exclude_filter in request.stats if field not in stats),
        facet_queries=tuple(text for text in request.facet_queries if text not in queries),
    )
    return SupportedRequest(remaining, facets, stats, tuple(queries), tuple(dict.fromkeys(names)))


class _FieldSupport(NamedTuple):
    """Upstream support by field; `complete`: the tables have all specs of the upstream. Each method raises BadRequest
    for a field that v3 never had."""

    tables: Tables
    complete: bool
    has_counts: bool  # not a supMultiMatch
    has_specs: bool  # of the plan

    def counts(self, field: str, *, numbers: bool = False) -> bool:
        """Return whether facets of the field are supported, or statistics of its `numbers`, which upstream has of specs
        only. Both need a plan with TECH_SPECS for specs."""
        is_spec = search_filters.field_of(self.tables, field).key is not None
        if numbers and not is_spec and field not in self.tables.v3_fields:
            raise errors.BadRequest(
                f"the service has no statistics of {field[:60]!r}; it has them of specs.<key>.value"
            )
        entry = self.of(field, "facet")
        if entry is None or not (self.has_counts and entry.facet) or (numbers and not is_spec):
            return False
        return self.has_specs or entry.facet != "specAggs"

    def of(self, field: str, use: Literal["filter", "facet", "sort"]) -> SearchField | None:
        """Return the upstream's support for a use of the field; None if it has nothing similar."""
        try:
            entry = search_filters.field_support(self.tables, field)
        except search_filters.UnknownSpec as unknown:
            # Incomplete tables: the upstream may have the spec, so the caller fetches the list and plans again.
            if self.complete and field in self.tables.v3_fields:
                return None
            if use == "sort":
                fields = search_filters.supported_fields(self.tables, "sort")
                raise search_filters.UnknownSpec(f"{unknown.message}; it can sort by {fields}") from None
            raise
        if entry is None and field not in self.tables.v3_fields:
            raise search_filters.unsupported_field(self.tables, field, use)
        return entry
