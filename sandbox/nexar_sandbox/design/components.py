"""Parts of the catalog as components of a design library, with their part choices, parameters and suppliers."""

import hashlib
from typing import Any

from nexar_sandbox.catalog import records as catalog_records
from nexar_sandbox.catalog import store
from nexar_sandbox.design import records, sample_workspaces

# Distributors of a part choice, and price breaks of each.
SUPPLIERS = 3
BREAKS = 4


def stable_id(*words: object) -> str:
    """Return an opaque id that is the same for the same arguments."""
    return hashlib.blake2b("\n".join(map(str, words)).encode(), digest_size=9).hexdigest()


def part_choices(part: catalog_records.Part, catalog: store.Catalog) -> tuple[records.Record, ...]:
    """Return the part itself, and parts of other makers with the same MPN, as part choices."""
    similar_parts = (catalog.part(id_) for id_ in part.similar_ids)
    others = (other for other in similar_parts if other is not None and other.mpn == part.mpn)
    return tuple(part_choice(each, catalog, place) for place, each in enumerate((part, *others), 1))


def part_choice(part: catalog_records.Part, catalog: store.Catalog, priority: int) -> Any:
    listed = (seller for seller in catalog.sellers_of(part) if seller.offers and not seller.is_broker)
    return records.ManufacturerPart(
        company_name=part.manufacturer.name,
        part_number=part.mpn,
        priority=priority,
        octopart_id=part.id,
        supplier_parts=tuple(_supplier(seller) for seller, _ in zip(listed, range(SUPPLIERS), strict=False)),
    )


def _supplier(seller: catalog_records.SellerOffers) -> Any:
    offer = seller.offers[0]
    prices = (
        records.SupplierPrice(
            currency=price_break.currency or "USD", price=price_break.price, break_quantity=price_break.quantity
        )
        for price_break in offer.prices[:BREAKS]
    )
    stock = records.SupplierStock(location_name=offer.eligible_region or "", quantity=max(offer.inventory_level, 0))
    return records.SupplierPart(
        company_name=seller.company.name, part_number=offer.sku, prices=tuple(prices), stocks=(stock,)
    )


def parameters(part: catalog_records.Part) -> tuple[records.Record, ...]:
    return tuple(records.Parameter(name=spec.attribute.name, value=spec.display_value) for spec in part.specs)


def footprint(part: catalog_records.Part) -> str:
    """Return the footprint name: the package of the part if the catalog has it, else its MPN."""
    cases = (spec.display_value for spec in part.specs if spec.attribute.shortname == "case_package")
    return next(cases, part.mpn)


def find_part(catalog: store.Catalog, company: str, number: str) -> catalog_records.Part | None:
    try:
        hits = catalog.match(
            catalog_records.MatchQuery(mpn=number, manufacturer=company), catalog_records.SearchConditions()
        )
    # A number without letters or digits.
    except ValueError:
        return None
    return next(map(catalog.part, hits.page(0, 1)), None)


def life_cycle_state(workspace_id: str, index: int) -> Any:
    """Return a life cycle state by its index in sample_workspaces.STATES."""
    name, description, is_allowed = sample_workspaces.STATES[index]
    return records.LifeCycleState(
        life_cycle_state_id=stable_id(workspace_id, "state", name),
        name=name,
        description=description,
        state_index=index,
        is_allowed_in_design=is_allowed,
    )
