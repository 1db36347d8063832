"""Aggregations of a search over all of its hits: by maker, seller, category, stock, CAD models and spec value."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

from graphql import GraphQLFieldResolver

from nexar_sandbox.catalog import matching, records, units
from nexar_sandbox.graphql import context, errors, views
from nexar_sandbox.graphql.resolvers import parts

# Attributes are taken from this many of the best hits; the rest rarely adds one.
SAMPLED_HITS = 100
SUGGESTED = 8
SUGGESTED_CATEGORIES = 5
CAD_LEVELS = {"none": 0, "symbol_footprint": 1, "symbol_footprint_3d": 2}
CAD_NAMES = ("No models", "Symbol and footprint", "Symbol, footprint and 3D model")
FILTER_NAMES = {
    "manufacturer_id": "Manufacturer",
    "distributor_id": "Distributor",
    "category_id": "Category",
    "cad_models": "CAD Models",
}

Buckets: TypeAlias = list[dict[str, Any]]


def attributes_of(hits: records.SearchHits, info: context.Info) -> list[records.CatalogAttribute]:
    """Attributes that the best hits have values for, most frequent first."""
    totals: Counter[records.CatalogAttribute] = Counter()
    for id_ in hits.page(0, SAMPLED_HITS):
        part = info.context.catalog.part(id_)
        totals.update(spec.attribute for spec in part.specs) if part else None
    return [attribute for attribute, _ in totals.most_common()]


def manufacturers(result: views.SupPartResultSet, info: context.Info, size: int) -> Buckets:
    counts = info.context.catalog.manufacturer_counts(result.hits)
    return _buckets("company", counts, size)


def distributors(result: views.SupPartResultSet, info: context.Info, size: int) -> Buckets:
    """Hits by seller; a part counts for each of its sellers."""
    counts = info.context.catalog.distributor_counts(result.hits)
    return _buckets("company", counts, size)


def categories(result: views.SupPartResultSet, info: context.Info, size: int) -> Buckets:
    return _buckets("category", info.context.catalog.category_counts(result.hits), size)


def _buckets(key: str, counts: Iterable[tuple[Any, int]], size: int | None = None) -> Buckets:
    """Return the first `size` buckets, none for a negative size; all for None."""
    most = None if size is None else max(size, 0)
    return [{key: value, "count": count} for value, count in list(counts)[:most]]


def suggested_categories(result: views.SupPartResultSet, info: context.Info) -> Buckets:
    """Return the most frequent categories, unless the search is filtered by one."""
    return [] if applied_category(result, info) else categories(result, info, SUGGESTED_CATEGORIES)


def cad_levels(result: views.SupPartResultSet, info: context.Info) -> Buckets:
    """Hits by level of CAD models. The levels are our choice: the contract has only the fields."""
    counts = ((CAD_LEVELS[state], count) for state, count in info.context.catalog.cad_counts(result.hits))
    return [{"level": level, "displayName": CAD_NAMES[level], "count": count} for level, count in sorted(counts)]


def attribute_groups(result: views.SupPartResultSet, info: context.Info) -> Buckets:
    groups: dict[str, list[records.CatalogAttribute]] = {}
    for attribute in attributes_of(result.hits, info):
        groups.setdefault(attribute.group, []).append(attribute)
    return [{"name": name, "attributes": attributes} for name, attributes in groups.items()]


def specs(
    result: views.SupPartResultSet,
    info: context.Info,
    attributeNames: list[str],  # noqa: N803 (the schema's argument names)
    attributeSelection: str,  # noqa: N803
    size: int,
) -> Buckets:
    """Hits by value, for the named attributes and those that the selection adds."""
    most = {"WITH_SUGGESTED": SUGGESTED, "ALL": None}.get(attributeSelection, 0)
    more = [] if most == 0 else [attribute.shortname for attribute in attributes_of(result.hits, info)[:most]]
    try:
        aggregations = [
            info.context.catalog.spec_counts(result.hits, name)
            for name in dict.fromkeys([*attributeNames, *more])
            if parts.may_see(name, info)
        ]
    except ValueError as error:
        raise errors.ServiceError(str(error)) from error
    return [_spec_agg(counts, max(size, 0)) for counts in aggregations]


def _spec_agg(counts: records.SpecCounts, size: int) -> dict[str, Any]:
    attribute, ends = counts.attribute, {"Min": counts.minimum, "Max": counts.maximum}
    buckets = [
        {"displayValue": display, "floatValue": number, "count": count}
        for display, number, count in counts.buckets[:size]
    ]
    return {
        "attribute": attribute,
        "buckets": buckets,
        "min": counts.minimum,
        "max": counts.maximum,
        **{f"si{name}": None if end is None else f"{end:.12g}" for name, end in ends.items()},
        **{
            f"display{name}": None if end is None else units.displayed(end, attribute.units_symbol).display
            for name, end in ends.items()
        },
        "valueType": attribute.value_type,
        "units": attribute.units_symbol,
        "unitsName": attribute.units_name,
        "unitsSymbol": attribute.units_symbol,
    }


def applied_category(result: views.SupPartResultSet, info: context.Info) -> records.Category | None:
    """Return the category of the filter, if it names exactly one."""
    category_ids = dict(result.conditions.filters).get("category_id", ())
    if len(category_ids) != 1:
        return None
    by_id = info.context.catalog.category(category_ids[0])
    name = matching.normalize(category_ids[0])
    named = [category for category in info.context.catalog.categories() if matching.normalize(category.name) == name]
    return by_id or (named[0] if len(named) == 1 else None)


def applied_filters(result: views.SupPartResultSet, info: context.Info) -> Buckets:
    attributes = {attribute.shortname: attribute.name for attribute in info.context.catalog.attributes()}
    names = {**attributes, **FILTER_NAMES}
    return [
        {
            "shortname": key,
            "name": names.get(key, key),
            "values": values,
            "displayValues": [_display(key, value, info) for value in values],
        }
        for key, values in result.conditions.filters
    ]


def _display(key: str, value: str, info: context.Info) -> str:
    catalog = info.context.catalog
    named: records.Company | records.Category | None = None
    if key in ("manufacturer_id", "distributor_id"):
        named = catalog.company(value)
    elif key == "category_id":
        named = catalog.category(value)
    return named.name if named else value


RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "SupPartResultSet.specsViewAttributeGroups": attribute_groups,
    "SupPartResultSet.specAggs": specs,
    "SupPartResultSet.manufacturerAgg": manufacturers,
    "SupPartResultSet.distributorAgg": distributors,
    "SupPartResultSet.categoryAgg": categories,
    "SupPartResultSet.cadAgg": lambda result, info: _buckets("cadState", info.context.catalog.cad_counts(result.hits)),
    "SupPartResultSet.cadLevelAgg": cad_levels,
    "SupPartResultSet.inStockAgg": lambda result, info: _buckets(
        "isInStock", info.context.catalog.in_stock_counts(result.hits)
    ),
    "SupPartResultSet.suggestedCategories": suggested_categories,
    "SupPartResultSet.suggestedFilters": lambda result, info: attributes_of(result.hits, info)[:SUGGESTED],
    "SupPartResultSet.allFilters": lambda result, info: attributes_of(result.hits, info),
    "SupPartResultSet.appliedCategory": applied_category,
    "SupPartResultSet.appliedFilters": applied_filters,
}
