"""Parts of the catalog as components of a design library, with their part choices, parameters and suppliers."""

import hashlib
import random
from dataclasses import dataclass, field

from nexar_sandbox.catalog import records as catalog_records
from nexar_sandbox.catalog import store
from nexar_sandbox.design import records, sample_workspaces, timestamps

# Distributors of a part choice, and price breaks of each.
SUPPLIERS = 3
BREAKS = 4


def stable_id(*words: object) -> str:
    """An opaque id that is the same for the same arguments."""
    return hashlib.blake2b("\n".join(map(str, words)).encode(), digest_size=9).hexdigest()


def part_choice(part: catalog_records.Part, catalog: store.Catalog, priority: int) -> records.ManufacturerPart:
    """A part of the catalog as a part choice."""
    listed = (seller for seller in catalog.sellers_of(part) if seller.offers and not seller.is_broker)
    suppliers = tuple(_supplier(seller) for seller, _ in zip(listed, range(SUPPLIERS), strict=False))
    return records.ManufacturerPart(
        company_name=part.manufacturer.name,
        part_number=part.mpn,
        priority=priority,
        octopart_id=part.id,
        supplier_parts=suppliers,
    )


def _supplier(seller: catalog_records.SellerOffers) -> records.SupplierPart:
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


def parameters(part: catalog_records.Part) -> tuple[records.DesignParameter, ...]:
    """The specs of a part, by attribute name."""
    return tuple(records.DesignParameter(name=spec.attribute.name, value=spec.display_value) for spec in part.specs)


def footprint(part: catalog_records.Part) -> str:
    """The footprint name: the package of the part if the catalog has it, else its MPN."""
    cases = (spec.display_value for spec in part.specs if spec.attribute.shortname == "case_package")
    return next(cases, part.mpn)


def find_part(catalog: store.Catalog, company: str, number: str) -> catalog_records.Part | None:
    """The part of the catalog with this maker and MPN, or None."""
    try:
        hits = catalog.match(
            catalog_records.MatchQuery(mpn=number, manufacturer=company), catalog_records.SearchConditions()
        )
    # A number without letters or digits.
    except ValueError:
        return None
    return next(map(catalog.part, hits.page(0, 1)), None)


# Projects use the first parts of a category, which have the most offers.
PARTS_PER_CATEGORY = 200


@dataclass(slots=True)
class ComponentBuilder:
    """Creates the components of a sample workspace from catalog parts, when a project needs them. `folders` and
    `components` are by category path and by part id."""

    catalog: store.Catalog
    workspace: records.Workspace
    rng: random.Random
    past: timestamps.PastTimes
    administrator_id: str
    folders: dict[str, records.Folder] = field(default_factory=dict)
    components: dict[str, records.Component] = field(default_factory=dict)
    _part_ids: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def draw(self, category: str, count: int) -> list[records.Component]:
        """Up to `count` different components of the category whose path ends with `category`."""
        if category not in self._part_ids:
            self._part_ids[category] = self._ids(category)
        ids = self._part_ids[category]
        drawn = self.rng.sample(ids, min(count, len(ids)))
        parts = (self.catalog.part(id_) for id_ in drawn)
        return [self._component(part) for part in parts if part is not None]

    def alternate_for(self, component: records.Component) -> records.Component | None:
        """Another component of the same folder, or None."""
        siblings = [
            sibling
            for sibling in self.components.values()
            if sibling.folder_id == component.folder_id and sibling != component
        ]
        return self.rng.choice(siblings) if siblings else None

    def _ids(self, category: str) -> tuple[str, ...]:
        matching_category = next(
            (candidate for candidate in self.catalog.categories() if candidate.path.endswith(category)), None
        )
        if matching_category is None:
            return ()
        conditions = catalog_records.SearchConditions(filters=(("category_id", (matching_category.id,)),))
        return self.catalog.search("", conditions).page(0, PARTS_PER_CATEGORY)

    def _component(self, part: catalog_records.Part) -> records.Component:
        existing = self.components.get(part.id)
        if existing is not None:
            return existing
        number = len(self.components) + 1
        id_ = stable_id(self.workspace.id, "component", part.id)
        component = self.components[part.id] = records.Component(
            id=id_,
            workspace_id=self.workspace.id,
            folder_id=self._folder(part.category).id if part.category else None,
            item_internal_id=stable_id(id_, "item"),
            revision_id=stable_id(id_, "revision", 1),
            name=f"CMP-{number:05d}-1",
            comment=part.mpn,
            description=part.short_description,
            footprint_name=footprint(part),
            created_at=self.past.ago(self.rng.randrange(200, 800)),
            modified_at=self.past.ago(self.rng.randrange(1, 200)),
            is_managed=True,
            # Three in four are approved for production.
            life_cycle_state=life_cycle_state(self.workspace.id, self.rng.choice((0, 1, 1, 1))),
            parameters=parameters(part),
            manufacturer_parts=self._part_choices(part),
        )
        return component

    def _part_choices(self, part: catalog_records.Part) -> tuple[records.ManufacturerPart, ...]:
        """The part itself, and parts of other makers with the same MPN."""
        similar_parts = (self.catalog.part(id_) for id_ in part.similar_ids)
        parts = [
            part,
            *(alternative for alternative in similar_parts if alternative is not None and alternative.mpn == part.mpn),
        ]
        return tuple(part_choice(part, self.catalog, place) for place, part in enumerate(parts, 1))

    def _folder(self, category: catalog_records.Category) -> records.Folder:
        if category.path not in self.folders:
            created_at = self.past.ago(850)
            self.folders[category.path] = records.Folder(
                id=stable_id(self.workspace.id, "folder", category.path),
                workspace_id=self.workspace.id,
                name=category.name,
                path=f"Components\\{category.name}",
                description=f"{category.name} in use at {self.workspace.name}",
                folder_type="COMPONENT_LIBRARY",
                created_by_id=self.administrator_id,
                updated_by_id=self.administrator_id,
                created_at=created_at,
                updated_at=created_at,
            )
        return self.folders[category.path]


def life_cycle_state(workspace_id: str, index: int) -> records.LifeCycleState:
    """A life cycle state by its index in sample_workspaces.STATES."""
    name, description, is_allowed = sample_workspaces.STATES[index]
    return records.LifeCycleState(
        life_cycle_state_id=stable_id(workspace_id, "state", name),
        name=name,
        description=description,
        state_index=index,
        is_allowed_in_design=is_allowed,
    )
