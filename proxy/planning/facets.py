"""v3's facets, stats and spec_drilldown, made from upstream aggregations (v3-rest.md §3.6, graphql.md §1.2).

Counts are the upstream's; what it does not tell (missing, mean, stddev) is null (docs/v3-today.md). Those that it
does not support are served empty, and named.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from proxy.mapping.rules import SearchField, Tables
from proxy.model import SEARCH_LIMIT_DEFAULT, Drilldown, FacetField, SearchRequest
from proxy.planning import search_filters

SIZE_MAX = 1000  # most buckets that are requested of one aggregation; v3 paged facets up to start 1000
SUGGESTED_SIZE = 100  # of each spec of a drilldown: a range is added up from those of both ends
NO_STATS: dict[str, Any] = {  # of a field of which nothing is known
    "__class__": "SearchStatsResult",
    **dict.fromkeys(("min", "max", "mean", "stddev", "count", "missing", "spec_drilldown_rank")),
}
_SIZE = "$size: Int!"


# gc=False: decoded records have no reference cycles, and the collector need not visit them.
class NamedRecord(msgspec.Struct, gc=False):
    """Company or category."""

    id: str
    name: str


class Bucket(msgspec.Struct, gc=False):
    """Hits of one value of an aggregation, which is a company, a category, a flag, or a value of a spec."""

    company: NamedRecord | None = None
    category: NamedRecord | None = None
    isInStock: bool | None = None  # noqa: N815 - the service's name
    displayValue: str = ""  # noqa: N815 - the service's name
    floatValue: float | None = None  # noqa: N815 - the service's name
    count: int | None = None


class SpecAttribute(msgspec.Struct, gc=False):
    """SupAttribute: the attribute that a spec is a value of."""

    name: str
    shortname: str


class SpecAgg(msgspec.Struct, gc=False):
    """SupSpecAgg: counts and statistics of one spec; without its buckets a description."""

    attribute: SpecAttribute
    valueType: str  # noqa: N815 - the service's name
    unitsName: str | None = None  # noqa: N815 - the service's name
    unitsSymbol: str | None = None  # noqa: N815 - the service's name
    buckets: list[Bucket] = []
    siMin: str | None = None  # noqa: N815 - the service's name
    siMax: str | None = None  # noqa: N815 - the service's name


class Aggregation(NamedTuple):
    """Aggregation field of SupPartResultSet: its GraphQL text, its variables, and the type of its items."""

    text: str
    variables: tuple[str, ...] = (_SIZE,)
    record: type = Bucket


AGGREGATIONS = {
    "manufacturerAgg": Aggregation("manufacturerAgg(size: $size) { company { id name } count }"),
    "distributorAgg": Aggregation("distributorAgg(size: $size) { company { id name } count }"),
    "categoryAgg": Aggregation("categoryAgg(size: $size) { category { id name } count }"),
    "inStockAgg": Aggregation("inStockAgg { isInStock count }", ()),
    "specAggs": Aggregation(
        "specAggs(attributeNames: $attributes, attributeSelection: $selection, size: $size)"
        " { attribute { name shortname } valueType buckets { displayValue floatValue count }"
        " siMin siMax unitsName unitsSymbol }",
        (_SIZE, "$attributes: [String!]!", "$selection: SupSpecAggsSelection!"),
        SpecAgg,
    ),
    # An alias of specAggs: the descriptions of filtered specs without their counts.
    "specKinds": Aggregation(
        "specKinds: specAggs(attributeNames: $filtered, attributeSelection: EXPLICIT, size: 1)"
        " { attribute { name shortname } valueType unitsName unitsSymbol }",
        ("$filtered: [String!]!",),
        SpecAgg,
    ),
}


class SupportedRequest(NamedTuple):
    """Part of a request that upstream supports. `facets`, `stats` and `queries` are served empty; `names` are the
    parameters that are ignored, or whose values no object has."""

    request: SearchRequest
    facets: tuple[FacetField, ...] = ()
    stats: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class SearchDetails(NamedTuple):
    """Details of a search beside its parts: their snippets, and v3's facets, stats and spec metadata."""

    snippets: list[str | None]
    facet_results: dict[str, dict[str, Any]]
    stats_results: dict[str, Any]
    spec_metadata: dict[str, Any]

    def with_empty(self, supported: SupportedRequest) -> "SearchDetails":
        """Return a copy with empty entries for counts that upstream does not support; that of a facet query is null."""
        fields = {each.field: facet_entry([], None) for each in supported.facets}
        counts = {text: {"count": None} for text in supported.queries}
        stats = dict.fromkeys(supported.stats, NO_STATS)
        results = self.facet_results
        return self._replace(
            facet_results={"fields": {**results["fields"], **fields}, "queries": {**results["queries"], **counts}},
            stats_results={**self.stats_results, **stats},
        )


class AggregationRequest(NamedTuple):
    """Aggregations that one operation requests, by name, the most buckets of each, and their variables."""

    aggregations: frozenset[str]
    size: int
    variables: dict[str, Any]


class CountGroup(NamedTuple):
    """Counts of one operation, and the filters that they are made under; those of a facet query are all hits."""

    filters: search_filters.SearchFilters
    facets: tuple[FacetField, ...] = ()
    stats: tuple[str, ...] = ()
    drilldown: Drilldown | None = None
    query: str | None = None


def request(
    tables: Tables, group: CountGroup, features: frozenset[str], described: Iterable[str] = ()
) -> AggregationRequest:
    """Return the aggregations for counts that upstream supports, and for the specs that are to be `described`."""
    names: set[str] = {"specAggs"} if group.drilldown and "TECH_SPECS" in features else set()
    shortnames: list[str] = []
    # The upstream's default (contract graphql.md §1.2).
    size = SUGGESTED_SIZE if names else 10
    counted = [(each.field, each.start + each.limit) for each in group.facets]
    counted += [(field, SIZE_MAX) for field in group.stats]  # the number of values is known if all are counted
    for field, wanted in counted:
        entry = search_filters.field_support(tables, field)
        if entry is None or entry.facet is None:
            raise search_filters.unsupported_field(tables, field, "facet")
        names.add(entry.facet)
        attributes = search_filters.field_of(tables, field).shortnames
        # A range is added up from the counts of several attributes: what is rare at one may be frequent at another.
        size = max(size, SIZE_MAX if len(attributes) > 1 else min(SIZE_MAX, wanted))
        shortnames += attributes
    variables: dict[str, Any] = {"size": size} if names - {"inStockAgg"} else {}
    if "specAggs" in names:
        selection = "WITH_SUGGESTED" if group.drilldown else "EXPLICIT"
        variables |= {"attributes": list(dict.fromkeys(shortnames)), "selection": selection}
    # The counts of a spec include its description.
    if filtered := [each for each in dict.fromkeys(described) if each not in shortnames]:
        names.add("specKinds")
        variables["filtered"] = filtered
    return AggregationRequest(frozenset(names), size, variables)


def facet_result(tables: Tables, facet: FacetField, result_set: Any, limited: bool = False) -> dict[str, Any]:
    """Return one entry of facet_results.fields. `limited`: counted only among the hits that can have the field."""
    entry = search_filters.field_support(tables, facet.field) or SearchField()
    found = getattr(result_set, entry.facet or "", [])
    buckets: list[tuple[Any, int]]
    if entry.facet == "specAggs":
        buckets = _spec_buckets(tables, specs(tables, facet.field, result_set))
    elif entry.facet == "inStockAgg":
        buckets = [("[1 TO *]" if bucket.isInStock else "0", bucket.count or 0) for bucket in found]
    else:
        part = "category" if entry.facet == "categoryAgg" else "company"
        uids = tables.uids.get(entry.uid or entry.name or "")
        shown = uids and (uids.uid if entry.uid else uids.name)
        counts = [(named, bucket.count or 0) for bucket in found if (named := getattr(bucket, part))]
        buckets = [(shown(named.id, named.name) if shown else named.id, count) for named, count in counts]
    missing = 0 if not limited and getattr(result_set, "hits", None) == 0 else None
    return facet_entry(buckets[facet.start : facet.start + facet.limit], missing)


def drilldown_results(tables: Tables, result_set: Any, limit: int, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facets and the stats of the specs that upstream suggests, best first: their order is the rank. Each
    has as many values as a facet with the default limit, however many are counted for other facets. Only specs that
    v3 had as numbers have stats. `size` is the number of buckets that were requested."""
    fields: dict[str, Any] = {}
    stats: dict[str, Any] = {}
    missing = 0 if getattr(result_set, "hits", None) == 0 else None
    aggregated = getattr(result_set, "specAggs", [])
    suggested: dict[str, list[Any]] = {}
    for each in aggregated:
        shortname, name = each.attribute.shortname, each.attribute.name
        key = tables.specs.key(shortname, name)
        # A tolerance is named after a quantity if that is the only one suggested: of several it is unknown which a part
        # with the tolerance has.
        beside = {tables.specs.key(shortname, name, [other]) for other in aggregated} - {key}
        if len(beside) == 1:
            [named] = beside
            source = tables.specs.sources.get(named)
            key = named if source and source.value == shortname else key
        suggested.setdefault(f"specs.{key}.value", []).append(each)
    for rank, (field, own) in enumerate(list(suggested.items())[:limit], 1):
        counted = specs(tables, field, result_set) or own  # a spec that the tables do not have has its own
        fields[field] = facet_entry(_spec_buckets(tables, counted)[:SEARCH_LIMIT_DEFAULT], missing, rank)
        if tables.specs.datatype(counted[0].attribute.shortname, counted[0].valueType) != "string":
            stats[field] = stats_result(counted, result_set, size, rank)
    return fields, stats


def metadata(tables: Tables, result_set: Any, fields: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return spec_metadata: v3's SpecMetadata of the specs among some fields, by the key that was requested."""
    found: dict[str, dict[str, Any]] = {}
    for field in fields:
        named = search_filters.field_of(tables, field)
        requested_key, key = named.key, named.shown_as
        if requested_key is None or not (described := specs(tables, field, result_set)):
            continue
        attribute = described[0].attribute
        units = {"name": described[0].unitsName, "symbol": described[0].unitsSymbol}
        has_unit = tables.specs.has_unit(attribute.shortname, described[0].unitsName)
        found[requested_key] = {
            "__class__": "SpecMetadata",
            "key": key,
            "name": tables.specs.name(attribute.shortname, attribute.name, key=key),
            "datatype": tables.specs.datatype(attribute.shortname, described[0].valueType),
            "unit": {"__class__": "UnitOfMeasurement", **units} if has_unit else None,
        }
    return found


def facet_entry(buckets: Iterable[tuple[Any, int]], missing: int | None, rank: int | None = None) -> dict[str, Any]:
    """Return an entry of facet_results.fields. Of a search upstream reports neither how many hits have a value nor how
    many lack one: `missing` is None, and 0 for a search without hits."""
    return {
        "__class__": "SearchFacetResult",
        "facets": [{"value": value, "count": count} for value, count in buckets],
        "missing": missing,
        "spec_drilldown_rank": rank,
    }


def specs(tables: Tables, field: str, result_set: Any) -> list[Any]:
    """Return the aggregations of a field's attributes, with counts rather than only described."""
    shortnames = search_filters.field_of(tables, field).shortnames
    aggregated = [*getattr(result_set, "specAggs", []), *getattr(result_set, "specKinds", [])]
    # Reversed: of two with the same name the first stays, which has the counts.
    by_name = {each.attribute.shortname: each for each in reversed(aggregated)}
    return [by_name[shortname] for shortname in shortnames if shortname in by_name]


def _spec_buckets(tables: Tables, aggregated: list[Any]) -> list[tuple[Any, int]]:
    """Return values with their counts: numbers as v3's strings, texts as displayed. A part counts once for each
    attribute of the spec, so twice for the two ends of a range."""
    counts: Counter[str] = Counter()
    for each in aggregated:
        name = each.attribute.shortname
        for bucket in each.buckets:
            number = bucket.floatValue
            value = bucket.displayValue if number is None else tables.specs.number(name, number)
            counts[value] += bucket.count or 0
    # One attribute: the upstream has sorted its buckets.
    return list(counts.items()) if len(aggregated) < 2 else counts.most_common()


def stats_result(aggregated: list[Any], result_set: Any, size: int, rank: int | None = None) -> dict[str, Any]:
    """Return one entry of stats_results: upstream reports minimum and maximum of a spec, and the number of values if
    all of them have one of the `size` buckets that were requested."""
    lows = [low for each in aggregated if (low := as_number(each.siMin)) is not None]
    highs = [high for each in aggregated if (high := as_number(each.siMax)) is not None]
    none = count = 0 if getattr(result_set, "hits", None) == 0 else None
    # The hits may have more numbers than the buckets.
    is_cut = any(len(each.buckets) >= size or (each.siMin and not each.buckets) for each in aggregated)
    if none is None and aggregated and not is_cut:
        counts = [bucket.count for each in aggregated for bucket in each.buckets if bucket.floatValue is not None]
        count = None if None in counts else sum(counts)
    return {
        "__class__": "SearchStatsResult",
        "min": min(lows, default=None),
        "max": max(highs, default=None),
        "count": count,
        "missing": none,
        "mean": None,
        "stddev": None,
        "spec_drilldown_rank": rank,
    }


def as_number(value: Any) -> float | None:
    """Return a value as a number; None if it is none."""
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
