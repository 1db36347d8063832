"""v3's facets, stats and spec_drilldown from the service's aggregations (contract v3-rest.md §3.6, graphql.md §1.2).

Counts are the service's; what it does not compute (missing, mean, stddev) is null, as docs/v3-surface.md says.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from proxy import errors
from proxy.mapping import tables
from proxy.model import SEARCH_LIMIT_DEFAULT, FacetField
from proxy.planning import criteria

SIZE_MAX = 1000  # buckets of one aggregation that are asked for: facet start 0..1000 and limit up to 100 stay below


class Wanted(NamedTuple):
    """What one operation is to count: aggregations by name, and the shortnames of specs."""

    aggregations: frozenset[str]
    shortnames: tuple[str, ...]
    size: int
    suggested: bool = False

    def variables(self) -> dict[str, Any]:
        """The variables that the chosen aggregations declare."""
        found: dict[str, Any] = {"size": self.size} if self.aggregations - {"inStockAgg"} else {}
        if "specAggs" in self.aggregations:
            selection = "WITH_SUGGESTED" if self.suggested else "EXPLICIT"
            found |= {"attributes": list(self.shortnames), "selection": selection}
        return found


def wanted(
    book: tables.Tables, facets: Iterable[FacetField], stats: Iterable[str], drilldown: bool, features: frozenset[str]
) -> Wanted:
    """The aggregations for some facets and stats. Raises BadRequest where the service has none for a field."""
    names: set[str] = {"specAggs"} if drilldown and "TECH_SPECS" in features else set()
    shortnames: list[str] = []
    size = 10
    for facet in facets:
        names.add(_aggregation(book, facet.field, features))
        size = max(size, min(SIZE_MAX, facet.start + facet.limit))
        shortnames += _shortname(book, facet.field)
    for field in stats:
        if criteria.spec_key(field) is None:
            raise errors.BadRequest(
                f"the service has no statistics of {field[:60]!r}; it has them of specs.<key>.value"
            )
        names.add(_aggregation(book, field, features))
        shortnames += _shortname(book, field)
    return Wanted(frozenset(names), tuple(dict.fromkeys(shortnames)), size, drilldown)


def facet_result(book: tables.Tables, facet: FacetField, found: Any) -> dict[str, Any]:
    """One entry of facet_results.fields."""
    field = criteria.known(book, facet.field)
    buckets = _buckets(book, facet.field, field, found) if field else []
    page = buckets[facet.start : facet.start + facet.limit]
    return _facet(page, None, found)


def drilldown_results(book: tables.Tables, found: Any, limit: int) -> dict[str, dict[str, Any]]:
    """The facets of the specs that the service suggests, best first: their order is the rank. Each has as many values
    as a facet of which nobody says how many, whatever is counted beside them."""
    aggregations = getattr(found, "specAggs", [])[:limit]
    return {
        f"specs.{_key(book, each)}.value": _facet(_spec_buckets(book, each)[:SEARCH_LIMIT_DEFAULT], rank, found)
        for rank, each in enumerate(aggregations, 1)
    }


def stats_result(book: tables.Tables, field: str, found: Any) -> dict[str, Any]:
    """One entry of stats_results: what the service knows are the ends."""
    each = _spec(book, field, found)
    ends = (_float(each.siMin), _float(each.siMax)) if each else (None, None)
    counts = dict.fromkeys(("count", "missing"), _none_of(found))
    nothing = dict.fromkeys(("mean", "stddev", "spec_drilldown_rank"))
    return {"__class__": "SearchStatsResult", "min": ends[0], "max": ends[1], **counts, **nothing}


def ranked(asked: dict[str, dict[str, Any]], drilled: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The facets that were asked for, with a rank where the service suggests their spec, and its other suggestions."""
    ranks = {field: {"spec_drilldown_rank": each["spec_drilldown_rank"]} for field, each in drilled.items()}
    return {**drilled, **{field: {**each, **ranks.get(field, {})} for field, each in asked.items()}}


def metadata(book: tables.Tables, found: Any, fields: Iterable[str]) -> dict[str, dict[str, Any]]:
    """spec_metadata: v3's SpecMetadata of the specs among some counted fields, by the key that each was asked with."""
    counted = {key: _spec(book, field, found) for field in fields if (key := criteria.spec_key(field))}
    return {key: _metadata(book, each) for key, each in counted.items() if each}


def _facet(buckets: list[tuple[Any, int]], rank: int | None, found: Any) -> dict[str, Any]:
    return {
        "__class__": "SearchFacetResult",
        "facets": [{"value": value, "count": count} for value, count in buckets],
        "missing": _none_of(found),
        "spec_drilldown_rank": rank,
    }


def _none_of(found: Any) -> int | None:
    """How many hits have a value, or have none: the service tells neither, but where nothing is found it is 0."""
    return 0 if getattr(found, "hits", None) == 0 else None


def _aggregation(book: tables.Tables, field: str, features: frozenset[str]) -> str:
    entry = criteria.known(book, field)
    if entry is None or entry.facet is None:
        raise criteria.cannot(book, field, "facet")
    if entry.facet == "specAggs" and "TECH_SPECS" not in features:
        raise errors.BadRequest(f"{field[:60]}: the application's plan has no TECH_SPECS")
    return entry.facet


def _shortname(book: tables.Tables, field: str) -> list[str]:
    key = criteria.spec_key(field)
    shortname = book.specs.shortname(key) if key else None
    return [shortname] if shortname else []


def _buckets(book: tables.Tables, field: str, entry: tables.SearchField, found: Any) -> list[tuple[Any, int]]:
    buckets = getattr(found, entry.facet or "", [])
    if entry.facet == "specAggs":
        each = _spec(book, field, found)
        return _spec_buckets(book, each) if each else []
    if entry.facet == "inStockAgg":
        return [("[1 TO *]" if bucket.isInStock else "0", bucket.count or 0) for bucket in buckets]
    part = "category" if entry.facet == "categoryAgg" else "company"
    shown = _shown(book, entry)
    return [(shown(getattr(bucket, part)), bucket.count or 0) for bucket in buckets]


def _shown(book: tables.Tables, entry: tables.SearchField) -> Callable[[Any], str]:
    """How a company or category is named in this field's facet: by uid, id or name."""
    if entry.uid:
        uid = book.uids[entry.uid].uid
        return lambda named: uid(named.id, named.name)
    if entry.name:
        name = book.uids[entry.name].name
        return lambda named: name(named.id, named.name)
    return lambda named: named.id


def _spec(book: tables.Tables, field: str, found: Any) -> Any:
    key = criteria.spec_key(field) or ""
    shortname, counted = book.specs.shortname(key), getattr(found, "specAggs", [])
    return next((e for e in counted if e.attribute.shortname == shortname or _key(book, e) == key), None)


def _spec_buckets(book: tables.Tables, each: Any) -> list[tuple[Any, int]]:
    """Numbers as v3's strings, texts as they are shown."""
    name = each.attribute.shortname
    return [
        (b.displayValue if b.floatValue is None else book.specs.number(name, b.floatValue), b.count or 0)
        for b in each.buckets
    ]


def _key(book: tables.Tables, each: Any) -> str:
    return book.specs.key(each.attribute.shortname, each.attribute.name)


def _metadata(book: tables.Tables, each: Any) -> dict[str, Any]:
    attribute = each.attribute
    unit = {"__class__": "UnitOfMeasurement", "name": each.unitsName, "symbol": each.unitsSymbol}
    return {
        "key": _key(book, each),
        "name": attribute.name,
        "datatype": book.specs.datatype(attribute.shortname, each.valueType),
        "unit": unit if each.unitsName else None,
    }


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
