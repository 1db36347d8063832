"""Resolvers of SupPart, without its plain fields (contract graphql.md §1.2). Sellers and prices are in
offers.py."""

from graphql import GraphQLFieldResolver

from nexar_sandbox.catalog import pricing, records
from nexar_sandbox.graphql import context
from nexar_sandbox.graphql.resolvers import offers

DATASHEETS = "Datasheets"
# Properties that are shown only where the plan has LIFECYCLE.
LIFE_CYCLE = "lifecyclestatus"
LIFECYCLE = frozenset({LIFE_CYCLE, "manufacturerlifecyclestatus"})
# Lifecycle statuses of parts at the end of their life.
END_OF_LIFE = ("EOL", "Obsolete")
LARGEST_INT = 2**31 - 1


def specs(part: context.PartView, info: context.Info) -> list[records.CatalogSpec]:
    """Return the properties, without those of the life cycle where the plan lacks them."""
    return [spec for spec in part.record.specs if may_see(spec.attribute.shortname, info)]


def may_see(shortname: str, info: context.Info) -> bool:
    application = info.context.application
    return shortname not in LIFECYCLE or (application is not None and "LIFECYCLE" in application.features)


def similar_parts(part: context.PartView, info: context.Info) -> list[context.PartView]:
    """Similar parts. Nested parts are not billed: the contract does not specify it, and the vendor's examples count
    root results only."""
    similar = (info.context.catalog.part(similar_id) for similar_id in part.record.similar_ids)
    return [context.PartView(similar_part, part.market) for similar_part in similar if similar_part is not None]


def best_datasheet(part: context.PartView, _info: context.Info) -> records.CatalogDocument | None:
    sheets = (collection for collection in part.record.document_collections if collection.name == DATASHEETS)
    return next((document for collection in sheets for document in collection.documents), None)


def cad_request_url(part: context.PartView, _info: context.Info) -> str | None:
    """Return the URL for requesting a CAD model; None if there is one."""
    return None if part.record.cad else f"{offers.SITE}{part.record.slug}#CadModels"


def counts(part: context.PartView, info: context.Info) -> dict[str, int]:
    """Numbers of related objects. The contract has no keys, so these are ours."""
    record = part.record
    listed = offers.listed(part, info)
    return {
        "datasheets": sum(
            len(collection.documents) for collection in record.document_collections if collection.name == DATASHEETS
        ),
        "descriptions": len(record.descriptions),
        "images": len(record.images),
        "offers": sum(len(seller.offers) for seller in listed),
        "reference_designs": len(record.reference_designs),
        "sellers": len(listed),
        "similar_parts": len(record.similar_ids),
    }


def median_price(part: context.PartView, info: context.Info) -> context.PriceView | None:
    """Return the median price at a quantity of 1 000, in USD, converted like any price."""
    median = pricing.median_price(offers.listed(part, info))
    return None if median is None else offers.price(median, part.market, ("median", part.record.id))


RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "SupPart._cacheId": lambda part, _: context.cache_id("part", part.record.id, *part.market),
    "SupPart.name": lambda part, _: f"{part.record.manufacturer.name} {part.record.mpn}",
    "SupPart.octopartUrl": lambda part, _: offers.SITE + part.record.slug,
    "SupPart.specs": specs,
    "SupPart.similarParts": similar_parts,
    "SupPart.bestImage": lambda part, _: part.record.images[0] if part.record.images else None,
    "SupPart.bestDatasheet": best_datasheet,
    "SupPart.cadRequestUrl": cad_request_url,
    "SupPart.counts": counts,
    "SupPart.medianPrice1000": median_price,
    # At most the largest Int.
    "SupPart.totalAvail": lambda part, info: min(pricing.total_avail(offers.listed(part, info)), LARGEST_INT),
    "SupPart.avgAvail": lambda part, info: pricing.avg_avail(offers.listed(part, info)),
    # Fields of the service for its own products, and advertisements: the contract has no data.
    "SupPart.altiumInternalId": lambda part, _: part.record.id,
    "SupPart.circuitMakerInternal": lambda _part, _: None,
    "SupPart.companionProducts": lambda _part, _: [],
    "SupPart.extras": lambda _part, _: None,
    "Query.supOctopartIdFromCiivaId": lambda _root, _info, **_: None,
    "Query.supPartIdFromCiivaId": lambda _root, _info, **_: None,
    "Query.supPartIdsFromCiivaIds": lambda _root, _info, **given: [None] * len(given["ciivaIds"]),
    "Query.supCiivaIdFromPartId": lambda _root, _info, **_: None,
    "Query.supCiivaIdsFromPartIds": lambda _root, _info, **given: [None] * len(given["partIds"]),
    "Query.supPartExtrasByPartId": lambda _root, _info, **_: None,
    "Query.supPartExtrasByPartIds": lambda _root, _info, **given: [
        {"message": f"there are no extras of part {id_}"} for id_ in given["partIds"]
    ],
}
