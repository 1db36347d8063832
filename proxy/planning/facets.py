"""v3's facets, stats and spec_drilldown, made from upstream aggregations (contract v3-rest.md §3.6, graphql.md
§1.2).

Counts are the upstream's; what it does not tell (missing, mean, stddev) is null (docs/v3-today.md).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from proxy.mapping.tables import SearchField, Tables
from proxy.model import SEARCH_LIMIT_DEFAULT, FacetField
from proxy.planning import search_filters

SIZE_MAX = 1000  # most buckets that are requested of one aggregation; v3 paged facets up to start 1000
SUGGESTED_SIZE = 100  # of each spec of a drilldown: a range is added up from those of both ends


class SearchDetails(NamedTuple):
    """Details of a search beside its parts: their snippets, and v3's facets, stats and spec metadata."""

    snippets: list[str | None]
    facet_results: dict[str, dict[str, Any]]
    stats_results: dict[str, Any]
    spec_metadata: dict[str, Any]

    def with_empty(self, facets: Iterable[FacetField], stats: Iterable[str], queries: Iterable[str]) -> "SearchDetails":
        """Return a copy with empty entries for counts that upstream does not support; the count of a facet query is
        null."""
        fields = {each.field: _facet([], None, None) for each in facets}
        counts = {text: {"count": None} for text in queries}
        numbers = dict.fromkeys(("min", "max", "mean", "stddev", "count", "missing", "spec_drilldown_rank"))
        results = self.facet_results
        return self._replace(
            facet_results={"fields": {**results["fields"], **fields}, "queries": {**results["queries"], **counts}},
            stats_results={
                **self.stats_results,
                **{field: {"__class__": "SearchStatsResult", **numbers} for field in stats},
            },
        )


class AggregationRequest(NamedTuple):
    """Aggregations that one operation requests, by name, and the shortnames of specs; for those in `filtered` only
    their descriptions, not their counts."""

    aggregations: frozenset[str]
    shortnames: tuple[str, ...]
    size: int
    suggested: bool = False
    filtered: tuple[str, ...] = ()

    def variables(self) -> dict[str, Any]:
        """Return the variables that the chosen aggregations declare."""
        variables: dict[str, Any] = {"size": self.size} if self.aggregations - {"inStockAgg", "specKinds"} else {}
        if "specAggs" in self.aggregations:
            selection = "WITH_SUGGESTED" if self.suggested else "EXPLICIT"
            variables |= {"attributes": list(self.shortnames), "selection": selection}
        return variables | ({"filtered": list(self.filtered)} if self.filtered else {})

    def with_described(self, shortnames: Iterable[str]) -> "AggregationRequest":
        """Return a copy that also requests descriptions of these specs, unless their counts include them."""
        filtered = tuple(dict.fromkeys(each for each in shortnames if each not in self.shortnames))
        return self._replace(aggregations=self.aggregations | {"specKinds"}, filtered=filtered) if filtered else self


def request(
    tables: Tables, facets: Iterable[FacetField], stats: Iterable[str], drilldown: bool, features: frozenset[str]
) -> AggregationRequest:
    """Return the aggregations for facets and stats that upstream supports (search_support.py)."""
    names: set[str] = {"specAggs"} if drilldown and "TECH_SPECS" in features else set()
    shortnames: list[str] = []
    # The upstream's default (contract graphql.md §1.2).
    size = SUGGESTED_SIZE if names else 10
    for facet in facets:
        names.add(_aggregation(tables, facet.field))
        attributes = search_filters.shortnames(tables, [facet.field])
        # A range is added up from the counts of several attributes: what is rare at one may be frequent at another.
        size = max(size, SIZE_MAX if len(attributes) > 1 else min(SIZE_MAX, facet.start + facet.limit))
        shortnames += attributes
    for field in stats:
        names.add(_aggregation(tables, field))
        shortnames += search_filters.shortnames(tables, [field])
        size = SIZE_MAX  # the number of values is known if all are counted
    return AggregationRequest(frozenset(names), tuple(dict.fromkeys(shortnames)), size, drilldown)


def facet_result(tables: Tables, facet: FacetField, result_set: Any, limited: bool = False) -> dict[str, Any]:
    """Return one entry of facet_results.fields. `limited`: counted only among the hits that can have the field."""
    field = search_filters.field_support(tables, facet.field)
    buckets = _buckets(tables, facet.field, field, result_set) if field else []
    page = buckets[facet.start : facet.start + facet.limit]
    return _facet(page, None, None if limited else result_set)


def drilldown_results(tables: Tables, result_set: Any, limit: int, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facets and the stats of the specs that upstream suggests, best first: their order is the rank. Each
    has as many values as a facet with the default limit, however many are counted for other facets. Only specs that
    v3 had as numbers have stats. `size` is the number of buckets that were requested."""
    fields: dict[str, Any] = {}
    stats: dict[str, Any] = {}
    for rank, (key, each) in enumerate(list(_suggested(tables, result_set).items())[:limit], 1):
        field = f"specs.{key}.value"
        fields[field] = _facet(_spec_buckets(tables, each)[:SEARCH_LIMIT_DEFAULT], rank, result_set)
        if tables.specs.datatype(each[0].attribute.shortname, each[0].valueType) != "string":
            stats[field] = _stats(each, rank, result_set, size)
    return fields, stats


def stats_result(tables: Tables, field: str, result_set: Any, size: int, limited: bool = False) -> dict[str, Any]:
    """Return one entry of stats_results: upstream reports minimum and maximum, and the number of values if all of
    them have one of the `size` buckets that were requested. `limited` as in facet_result."""
    stats = _stats(_specs(tables, field, result_set), None, result_set, size)
    return {**stats, "missing": None} if limited else stats


def with_drilldown(
    requested: dict[str, dict[str, Any]], further: dict[str, dict[str, Any]], drilled: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the requested facets or stats, with a rank if their spec is among the `drilled` facets, which upstream
    suggests, and the `further` suggested ones."""
    ranks = {field: {"spec_drilldown_rank": each["spec_drilldown_rank"]} for field, each in drilled.items()}
    return {**further, **{field: {**each, **ranks.get(field, {})} for field, each in requested.items()}}


def metadata(tables: Tables, result_set: Any, fields: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return spec_metadata: v3's SpecMetadata of the specs among some fields, by the key that was requested."""
    kinds = ((key, field) for field in fields if (key := search_filters.spec_key(field)))
    return {key: _metadata(tables, key, each[0]) for key, field in kinds if (each := _specs(tables, field, result_set))}


def _facet(buckets: list[tuple[Any, int]], rank: int | None, result_set: Any) -> dict[str, Any]:
    return {
        "__class__": "SearchFacetResult",
        "facets": [{"value": value, "count": count} for value, count in buckets],
        "missing": _zero_if_no_hits(result_set),
        "spec_drilldown_rank": rank,
    }


def _zero_if_no_hits(result_set: Any) -> int | None:
    """Return 0 for a search without hits, else None: upstream reports neither how many hits have a value nor how
    many lack one."""
    return 0 if getattr(result_set, "hits", None) == 0 else None


def _aggregation(tables: Tables, field: str) -> str:
    entry = search_filters.field_support(tables, field)
    if entry is None or entry.facet is None:
        raise search_filters.unsupported_field(tables, field, "facet")
    return entry.facet


def _buckets(tables: Tables, field: str, entry: SearchField, result_set: Any) -> list[tuple[Any, int]]:
    buckets = getattr(result_set, entry.facet or "", [])
    if entry.facet == "specAggs":
        return _spec_buckets(tables, _specs(tables, field, result_set))
    if entry.facet == "inStockAgg":
        return [("[1 TO *]" if bucket.isInStock else "0", bucket.count or 0) for bucket in buckets]
    part = "category" if entry.facet == "categoryAgg" else "company"
    shown = _shown(tables, entry)
    return [(shown(named), bucket.count or 0) for bucket in buckets if (named := getattr(bucket, part))]


def _shown(tables: Tables, entry: SearchField) -> Callable[[Any], str]:
    """Return the function that names a company or category in this field's facet: by uid, name or id."""
    if entry.uid:
        uid = tables.uids[entry.uid].uid
        return lambda named: uid(named.id, named.name)
    if entry.name:
        name = tables.uids[entry.name].name
        return lambda named: name(named.id, named.name)
    return lambda named: named.id


def _specs(tables: Tables, field: str, result_set: Any) -> list[Any]:
    """Return the aggregations of a field's attributes; one with counts takes precedence over one that is only
    described."""
    shortnames = search_filters.shortnames(tables, [field])
    aggregated = [*getattr(result_set, "specAggs", []), *getattr(result_set, "specKinds", [])]
    # Reversed: of two with the same name the first stays, which has the counts.
    by_name = {each.attribute.shortname: each for each in reversed(aggregated)}
    return [by_name[shortname] for shortname in shortnames if shortname in by_name]


def _suggested(tables: Tables, result_set: Any) -> dict[str, list[Any]]:
    """Return the aggregations of the specs that upstream suggests, by v3's key."""
    aggregated = getattr(result_set, "specAggs", [])
    suggested: dict[str, list[Any]] = {}
    for each in aggregated:
        suggested.setdefault(_key(tables, each, aggregated), []).append(each)
    # Those of a spec that the tables do not have are its own.
    return {key: _specs(tables, f"specs.{key}.value", result_set) or own for key, own in suggested.items()}


def _key(tables: Tables, each: Any, aggregated: list[Any]) -> str:
    """Return v3's key of a suggested spec. A tolerance is named after a quantity if that is the only one suggested."""
    shortname, name = each.attribute.shortname, each.attribute.name
    plain = tables.specs.key(shortname, name)
    beside = {tables.specs.key(shortname, name, [other]) for other in aggregated} - {plain}
    # Several quantities: which of them a part with the tolerance has is unknown.
    if len(beside) != 1:
        return plain
    key = beside.pop()
    source = tables.specs.source(key)
    return key if source and source.value == shortname else plain


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


def _stats(aggregated: list[Any], rank: int | None, result_set: Any, size: int) -> dict[str, Any]:
    lows = [low for each in aggregated if (low := _float(each.siMin)) is not None]
    highs = [high for each in aggregated if (high := _float(each.siMax)) is not None]
    none = _zero_if_no_hits(result_set)
    return {
        "__class__": "SearchStatsResult",
        "min": min(lows, default=None),
        "max": max(highs, default=None),
        "count": _number_of_values(aggregated, size) if none is None else none,
        "missing": none,
        "mean": None,
        "stddev": None,
        "spec_drilldown_rank": rank,
    }


def _number_of_values(aggregated: list[Any], size: int) -> int | None:
    """Return how many numbers the hits have; None if the buckets do not have all of them."""
    if not aggregated or any(len(each.buckets) >= size or (each.siMin and not each.buckets) for each in aggregated):
        return None
    counts = [bucket.count for each in aggregated for bucket in each.buckets if bucket.floatValue is not None]
    return None if None in counts else sum(counts)


def _metadata(tables: Tables, requested_key: str, each: Any) -> dict[str, Any]:
    attribute = each.attribute
    key = tables.specs.shown_as(requested_key)
    unit = {"__class__": "UnitOfMeasurement", "name": each.unitsName, "symbol": each.unitsSymbol}
    return {
        "__class__": "SpecMetadata",
        "key": key,
        "name": tables.specs.name_under(key, attribute.shortname, attribute.name),
        "datatype": tables.specs.datatype(attribute.shortname, each.valueType),
        "unit": unit if tables.specs.has_unit(attribute.shortname, each.unitsName) else None,
    }


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
