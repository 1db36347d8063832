"""Parts of the catalog as components of a library: their part choices, parameters and suppliers.

Used by seeding.py and by the library service when a choice is added.
"""

import hashlib

from proxy.sandbox.catalog import records as catalogued
from proxy.sandbox.catalog import store
from proxy.sandbox.design import records

# Distributors that a part choice lists, and price breaks of each.
SUPPLIERS = 3
BREAKS = 4


def ident(*words: object) -> str:
    """An opaque id, the same for the same words."""
    return hashlib.blake2b("\n".join(map(str, words)).encode(), digest_size=9).hexdigest()


def choice(part: catalogued.Part, catalog: store.Catalog, priority: int) -> records.ManufacturerPart:
    """A part of the catalog as part choice."""
    listed = (seller for seller in catalog.sellers_of(part) if seller.offers and not seller.is_broker)
    suppliers = tuple(_supplier(seller) for seller, _ in zip(listed, range(SUPPLIERS), strict=False))
    return records.ManufacturerPart(
        company_name=part.manufacturer.name,
        part_number=part.mpn,
        priority=priority,
        octopart_id=part.id,
        supplier_parts=suppliers,
    )


def _supplier(seller: catalogued.SellerOffers) -> records.SupplierPart:
    offer = seller.offers[0]
    prices = (
        records.SupplierPrice(currency=one.currency or "USD", price=one.price, break_quantity=one.quantity)
        for one in offer.prices[:BREAKS]
    )
    stock = records.SupplierStock(location_name=offer.eligible_region or "", quantity=max(offer.inventory_level, 0))
    return records.SupplierPart(
        company_name=seller.company.name, part_number=offer.sku, prices=tuple(prices), stocks=(stock,)
    )


def parameters(part: catalogued.Part) -> tuple[records.Named, ...]:
    """The properties of a part, by their names."""
    return tuple(records.Named(name=spec.attribute.name, value=spec.display_value) for spec in part.specs)


def footprint(part: catalogued.Part) -> str:
    """The package, as far as the catalog knows it."""
    cases = (spec.display_value for spec in part.specs if spec.attribute.shortname == "case_package")
    return next(cases, part.mpn)


def find(catalog: store.Catalog, company: str, number: str) -> catalogued.Part | None:
    """The part of the catalog with this maker and number; None where there is none."""
    try:
        hits = catalog.match(catalogued.MatchQuery(mpn=number, manufacturer=company), catalogued.SearchConditions())
    except ValueError:
        return None
    return next(map(catalog.part, hits.page(0, 1)), None)
