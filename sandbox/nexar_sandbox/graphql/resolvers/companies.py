"""Makers, sellers, categories and attributes: the lists that are not billed (contract graphql.md §1.1)."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from graphql import GraphQLFieldResolver

from nexar_sandbox.catalog import records, store
from nexar_sandbox.graphql import context
from nexar_sandbox.graphql.resolvers import aggregations, parts

_Listed = TypeVar("_Listed", records.Company, records.Category)


def manufacturers(
    _root: None,
    info: context.Info,
    ids: list[str] | None = None,
    slugs: list[str] | None = None,
    minNumberOfActiveParts: int | None = None,  # noqa: N803 (the schema's argument name)
) -> list[records.Company]:
    """Makers. A part is active unless it is at the end of its life."""
    selected = select(info.context.catalog.manufacturers(), "slug", ids, slugs)
    least = minNumberOfActiveParts or 0
    if least <= 0:
        return selected
    active = _active_parts(info.context.catalog)
    return [company for company in selected if active[company.id] >= least]


def _active_parts(catalog: store.Catalog) -> Counter[str]:
    """How many parts each maker has that are not at the end of their life."""
    over = records.SearchConditions(filters=((parts.LIFE_CYCLE, parts.END_OF_LIFE),))
    everything, gone = (catalog.search("", conditions) for conditions in (records.SearchConditions(), over))
    # Parts without a life cycle count as active, so the inactive ones are subtracted.
    active = Counter({company.id: count for company, count in catalog.manufacturer_counts(everything)})
    active.subtract({company.id: count for company, count in catalog.manufacturer_counts(gone)})
    return active


def sellers(
    _root: None, info: context.Info, ids: list[str] | None = None, slugs: list[str] | None = None
) -> list[records.Company]:
    return select(info.context.catalog.sellers(), "slug", ids, slugs)


def select(listed: Iterable[_Listed], key: str, ids: list[str] | None, keys: list[str] | None) -> list[_Listed]:
    """Return those with one of the ids, or one of the keys; all if neither is given."""
    if ids is None and keys is None:
        return list(listed)
    wanted_ids, wanted_keys = set(ids or ()), set(keys or ())
    return [each for each in listed if each.id in wanted_ids or getattr(each, key) in wanted_keys]


def relevant_attributes(category: records.Category, info: context.Info) -> list[records.CatalogAttribute]:
    """Return the attributes of its most offered parts, most frequent first."""
    inside = records.SearchConditions(filters=(("category_id", (category.id,)),))
    return aggregations.attributes_of(info.context.catalog.search("", inside), info)


def blurb(category: records.Category, info: context.Info) -> dict[str, str]:
    num_parts = info.context.catalog.num_parts(category.id)
    below = [child.name for child in info.context.catalog.children(category.id)]
    text = f"{category.name}: {num_parts} {'part' if num_parts == 1 else 'parts'} in the catalog."
    content = f"{text} Among them {', '.join(below)}." if below else text
    return {
        "name": category.name,
        "pathName": category.path,
        "description": text,
        "content": content,
        "metaDescription": text,
        "metaTitle": category.name,
    }


RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.supManufacturers": manufacturers,
    "Query.supSellers": sellers,
    "Query.supCategories": lambda _, info, ids=None, paths=None: select(
        info.context.catalog.categories(), "path", ids, paths
    ),
    "Query.supAttributes": lambda _, info: info.context.catalog.attributes(),
    "SupCategory.ancestors": lambda category, info: info.context.catalog.ancestors(category.id),
    "SupCategory.children": lambda category, info: info.context.catalog.children(category.id),
    "SupCategory.numParts": lambda category, info: info.context.catalog.num_parts(category.id),
    "SupCategory.relevantAttributes": relevant_attributes,
    "SupCategory.blurb": blurb,
}
