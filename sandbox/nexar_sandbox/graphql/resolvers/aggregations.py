"""Aggregations of a search over all of its hits: by maker, seller, category, stock, CAD models and spec value; and the
lists of makers, sellers, categories and attributes (contract graphql.md §1.1). None of it is billed."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar

from graphql import GraphQLFieldResolver

from nexar_sandbox.catalog import matching, records, store, units
from nexar_sandbox.graphql import context, errors
from nexar_sandbox.graphql.resolvers import parts

# Attributes are taken from this many of the best hits; the rest rarely adds one.
SAMPLED_HITS = 100
SUGGESTED = 8
SUGGESTED_CATEGORIES = 5
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


def manufacturers(result: context.SupPartResultSet, info: context.Info, size: int) -> Buckets:
    counts = info.context.catalog.manufacturer_counts(result.hits)
    return _buckets("company", counts, size)


def distributors(result: context.SupPartResultSet, info: context.Info, size: int) -> Buckets:
    """Hits by seller; a part counts for each of its sellers."""
    counts = info.context.catalog.distributor_counts(result.hits)
    return _buckets("company", counts, size)


def categories(result: context.SupPartResultSet, info: context.Info, size: int) -> Buckets:
    return _buckets("category", info.context.catalog.category_counts(result.hits), size)


def _buckets(key: str, counts: Iterable[tuple[Any, int]], size: int | None = None) -> Buckets:
    """Return the first `size` buckets, none for a negative size; all for None."""
    most = None if size is None else max(size, 0)
    return [{key: value, "count": count} for value, count in list(counts)[:most]]


def suggested_categories(result: context.SupPartResultSet, info: context.Info) -> Buckets:
    """Return the most frequent categories, unless the search is filtered by one."""
    return [] if applied_category(result, info) else categories(result, info, SUGGESTED_CATEGORIES)


def attribute_groups(result: context.SupPartResultSet, info: context.Info) -> Buckets:
    groups: dict[str, list[records.CatalogAttribute]] = {}
    for attribute in attributes_of(result.hits, info):
        groups.setdefault(attribute.group, []).append(attribute)
    return [{"name": name, "attributes": attributes} for name, attributes in groups.items()]


def specs(
    result: context.SupPartResultSet,
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


def applied_category(result: context.SupPartResultSet, info: context.Info) -> records.Category | None:
    """Return the category of the filter, if it names exactly one."""
    category_ids = dict(result.conditions.filters).get("category_id", ())
    if len(category_ids) != 1:
        return None
    categories, name = info.context.catalog.reference.categories, matching.normalize(category_ids[0])
    named = [category for category in categories.values() if matching.normalize(category.name) == name]
    return categories.get(category_ids[0]) or (named[0] if len(named) == 1 else None)


def applied_filters(result: context.SupPartResultSet, info: context.Info) -> Buckets:
    attributes = info.context.catalog.reference.attributes
    names = {**{name: attribute.name for name, attribute in attributes.items()}, **FILTER_NAMES}
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
    reference = info.context.catalog.reference
    named: records.Company | records.Category | None = None
    if key in ("manufacturer_id", "distributor_id"):
        named = reference.companies.get(value)
    elif key == "category_id":
        named = reference.categories.get(value)
    return named.name if named else value


_Listed = TypeVar("_Listed", records.Company, records.Category)


def listed_manufacturers(
    _root: None,
    info: context.Info,
    ids: list[str] | None = None,
    slugs: list[str] | None = None,
    minNumberOfActiveParts: int | None = None,  # noqa: N803 (the schema's argument name)
) -> list[records.Company]:
    """Makers. A part is active unless it is at the end of its life."""
    selected = select(info.context.catalog.reference.manufacturers, "slug", ids, slugs)
    least = minNumberOfActiveParts or 0
    if least <= 0:
        return selected
    active = _active_parts(info.context.catalog)
    return [company for company in selected if active[company.id] >= least]


def _active_parts(catalog: store.Catalog) -> Counter[str]:
    """How many parts each maker has that are not at the end of their life."""
    ended = {(parts.LIFE_CYCLE, status) for status in parts.END_OF_LIFE}
    return Counter(
        part.manufacturer.id
        for part in catalog.parts()
        if ended.isdisjoint((spec.attribute.shortname, spec.value) for spec in part.specs)
    )


def listed_sellers(
    _root: None, info: context.Info, ids: list[str] | None = None, slugs: list[str] | None = None
) -> list[records.Company]:
    return select(info.context.catalog.reference.sellers, "slug", ids, slugs)


def select(listed: Iterable[_Listed], key: str, ids: list[str] | None, keys: list[str] | None) -> list[_Listed]:
    """Return those with one of the ids, or one of the keys; all if neither is given."""
    if ids is None and keys is None:
        return list(listed)
    wanted_ids, wanted_keys = set(ids or ()), set(keys or ())
    return [each for each in listed if each.id in wanted_ids or getattr(each, key) in wanted_keys]


def relevant_attributes(category: records.Category, info: context.Info) -> list[records.CatalogAttribute]:
    """Return the attributes of its most offered parts, most frequent first."""
    inside = records.SearchConditions(filters=(("category_id", (category.id,)),))
    return attributes_of(info.context.catalog.search("", inside), info)


RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.supManufacturers": listed_manufacturers,
    "Query.supSellers": listed_sellers,
    "Query.supCategories": lambda _, info, ids=None, paths=None: select(
        info.context.catalog.reference.categories.values(), "path", ids, paths
    ),
    "Query.supAttributes": lambda _, info: [*info.context.catalog.reference.attributes.values()],
    "SupCategory.ancestors": lambda category, info: info.context.catalog.reference.ancestors(category.id),
    "SupCategory.children": lambda category, info: info.context.catalog.reference.children(category.id),
    "SupCategory.numParts": lambda category, info: info.context.catalog.num_parts(category.id),
    "SupCategory.relevantAttributes": relevant_attributes,
    "SupPartResultSet.specsViewAttributeGroups": attribute_groups,
    "SupPartResultSet.specAggs": specs,
    "SupPartResultSet.manufacturerAgg": manufacturers,
    "SupPartResultSet.distributorAgg": distributors,
    "SupPartResultSet.categoryAgg": categories,
    "SupPartResultSet.cadAgg": lambda result, info: _buckets("cadState", info.context.catalog.cad_counts(result.hits)),
    # The contract has no levels, and no texts about categories.
    "SupPartResultSet.cadLevelAgg": lambda _result, _: [],
    "SupCategory.blurb": lambda _category, _: None,
    "SupPartResultSet.inStockAgg": lambda result, info: _buckets(
        "isInStock", info.context.catalog.in_stock_counts(result.hits)
    ),
    "SupPartResultSet.suggestedCategories": suggested_categories,
    "SupPartResultSet.suggestedFilters": lambda result, info: attributes_of(result.hits, info)[:SUGGESTED],
    "SupPartResultSet.allFilters": lambda result, info: attributes_of(result.hits, info),
    "SupPartResultSet.appliedCategory": applied_category,
    "SupPartResultSet.appliedFilters": applied_filters,
}
