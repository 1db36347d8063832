"""Support of a parts search by the upstream: counts without a source are served empty, sort keys ignored, both named.

A field that v3 never had is a 400. So is every filter that the upstream cannot apply: without it the result would be
wrong. A count or an order does not change which parts are found, so a v3 field without a source is no error there.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec import structs

from proxy import errors
from proxy.mapping.tables import SearchField, Tables
from proxy.model import FacetField, SearchRequest
from proxy.planning import lucene, search_filters
from proxy.planning.lucene import Condition, FilterCondition, RequestFilters

SCORE = ("score", "desc")  # the upstream's default order


class SupportedRequest(NamedTuple):
    """Part of a request that upstream supports. `facets`, `stats` and `queries` are served empty; `names` are the
    parameters that are ignored, or whose values no object has."""

    request: SearchRequest
    facets: tuple[FacetField, ...] = ()
    stats: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def without_counts(self) -> "SupportedRequest":
        """Return a copy in which no counts at all are supported."""
        request = self.request
        facets = tuple(each for each in request.facets if each.include)
        stats = tuple(field for field, _ in request.stats)
        names = [*self.names, *_names(facets, stats, request.facet_queries)]
        if request.drilldown and request.drilldown.include:
            names.append("spec_drilldown")
        return SupportedRequest(
            structs.replace(request, facets=(), stats=(), facet_queries=(), drilldown=None),
            (*self.facets, *facets),
            (*self.stats, *stats),
            (*self.queries, *request.facet_queries),
            tuple(dict.fromkeys(names)),
        )


def supported_part(
    request: SearchRequest, filters: RequestFilters, tables: Tables, features: frozenset[str], complete: bool
) -> SupportedRequest:
    """Return the part of a request that upstream supports. `complete`: the tables have all specs of the upstream.

    Raises BadRequest for a field that v3 never had; UnknownSpec and UnlistedError if the tables are incomplete.
    """
    support = _FieldSupport(tables, features, complete)
    facets = tuple(each for each in request.facets if each.include and not support.counts(each.field))
    stats = tuple(field for field, _ in request.stats if not support.measures(field))
    queries = tuple(text for text in request.facet_queries if not support.filters(filters.facet_queries[text]))
    sortby, ignored = support.order(request.sortby)
    names = [*_names(facets, stats, queries), *ignored, *_unmatched_values(tables, filters.filter_conditions)]
    # Specs are gated by the plan (contract graphql.md §6): the counts stay empty, and the header says so.
    if request.drilldown and request.drilldown.include and "TECH_SPECS" not in features:
        names.append("spec_drilldown")
    remaining = structs.replace(
        request,
        sortby=sortby,
        facets=tuple(each for each in request.facets if each not in facets),
        stats=tuple((field, exclude_filter) for field, exclude_filter in request.stats if field not in stats),
        facet_queries=tuple(text for text in request.facet_queries if text not in queries),
    )
    return SupportedRequest(remaining, facets, stats, queries, tuple(dict.fromkeys(names)))


class _FieldSupport:
    """Upstream support by field. Each method raises BadRequest for a field that v3 never had."""

    def __init__(self, tables: Tables, features: frozenset[str], complete: bool) -> None:
        self._tables = tables
        self._features = features
        self._complete = complete

    def counts(self, field: str) -> bool:
        """Return whether facets of the field are supported; those of specs need a plan with TECH_SPECS."""
        entry = self._support(field, "facet")
        return bool(entry and entry.facet) and not (
            entry and entry.facet == "specAggs" and "TECH_SPECS" not in self._features
        )

    def measures(self, field: str) -> bool:
        """Return whether statistics of the field are supported; upstream has them of specs only."""
        if search_filters.spec_key(field) is None and not self._tables.is_v3(field):
            raise errors.BadRequest(
                f"the service has no statistics of {field[:60]!r}; it has them of specs.<key>.value"
            )
        return self.counts(field) and search_filters.spec_key(field) is not None

    def filters(self, conditions: list[Condition]) -> bool:
        """Return whether all of these conditions are supported as filters."""
        fields = [each.field for each in conditions if not search_filters.is_always_true(self._tables, each)]
        entries = [self._support(field, "filter") for field in fields]
        return all(entry is not None and bool(entry.filter or entry.stock) for entry in entries)

    def order(self, sortby: str) -> tuple[str, list[str]]:
        """Return the first supported sort key, and the ignored ones. `score desc` after a key is redundant, so it is
        not reported."""
        orders = [lucene.order(text) for text in sortby.split(",") if text.strip()]
        # All are looked up, even those behind the first: a field that v3 never had is a 400 wherever it stands.
        supported = [order for order in orders if self._sorts(order)]
        first = supported[0] if supported else SCORE
        ignored = [name for name, _ in dict.fromkeys(each for each in orders if each not in (first, SCORE))]
        return " ".join(first), [f"sortby={name}" for name in ignored]

    def _sorts(self, order: tuple[str, str]) -> bool:
        if order[0] == "score":
            return order == SCORE
        try:
            entry = self._support(order[0], "sort")
        except search_filters.UnknownSpec as unknown:
            fields = search_filters.supported_fields(self._tables, "sort")
            raise search_filters.UnknownSpec(f"{unknown.message}; it can sort by {fields}") from None
        return entry is not None and entry.sort is not None

    def _support(self, field: str, use: Literal["filter", "facet", "sort"]) -> SearchField | None:
        try:
            entry = search_filters.field_support(self._tables, field)
        except search_filters.UnknownSpec:
            # Incomplete tables: the upstream may have the spec, so the caller fetches the list and plans again.
            if self._complete and self._tables.is_v3(field):
                return None
            raise
        if entry is None and not self._tables.is_v3(field):
            raise search_filters.unsupported_field(self._tables, field, use)
        return entry


def _unmatched_values(tables: Tables, filters: list[FilterCondition]) -> Iterator[str]:
    """Yield values that should be uids or names of objects, but match none. Raises UnlistedError."""
    for each in filters:
        field = tables.search.get(each.condition.field)
        if field is not None and (field.uid or field.name):
            # Whole values only: a pattern that matches no name is no misspelt name.
            values = (value for value in each.condition.values if "*" not in value)
            yield from (each.named(value) for value in values if not search_filters.ids(tables, field, value))


def _names(facets: Iterable[FacetField], stats: Iterable[str], queries: Iterable[str]) -> list[str]:
    """Return counts as the parameters of a request."""
    return [
        *(f"facet[fields][{each.field}]" for each in facets),
        *(f"stats[{field}]" for field in stats),
        *(f"facet[queries]={text}" for text in queries),
    ]
