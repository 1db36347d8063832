"""Brands, manufacturers, sellers and categories as v3 objects (contract v3-rest.md §3.2).

Cached and shared by responses, so they must not be modified.
"""

from functools import lru_cache
from typing import Any

from proxy.sandbox.catalog import records, store
from proxy.sandbox.legacy_v3 import synthetic_values, uids

Object = dict[str, Any]
# v3's names of sellers that had several or that the catalog calls otherwise, by numeric id: the name that was shown
# last, then others on record (recordings of 2015 to 2018, and the names by which KiCost picks offers).
_SELLERS = {
    "14": ("Allied Electronics & Automation", "Allied Electronics"),
    "1106": ("Arrow Electronics", "Arrow Electronics, Inc.", "Arrow"),
    "3261": ("RS Components",),
    "4089": ("Chip One Stop Japan",),
}


class CompanyObjects:
    """Objects of one catalog, and attributions."""

    def __init__(self, catalog: store.Catalog, company_objects: uids.LegacyUids) -> None:
        self._catalog, self.uids = catalog, company_objects
        self.brand = lru_cache(maxsize=None)(self._brand)
        self.manufacturer = lru_cache(maxsize=None)(self._manufacturer)
        self.seller = lru_cache(maxsize=None)(self._seller)
        self.category = lru_cache(maxsize=None)(self._category)
        self.credited = lru_cache(maxsize=1024)(lambda name: self._credited(company_objects.source_name(name)))

    def category_uid(self, category: records.Category) -> str:
        """Uid of a category."""
        return self.uids.of("Category", category.id, category.name)

    def seller_name(self, company: records.Company) -> str:
        """v3's name of a seller."""
        return _SELLERS.get(company.id, (company.name,))[0]

    def other_names(self, company: records.Company) -> tuple[str, ...]:
        """Other names of the seller in filters."""
        return (company.name, *_SELLERS.get(company.id, ())[1:])

    def category_line(self, category: records.Category) -> list[str]:
        """The uids from the root to the category itself."""
        return [self.category_uid(each) for each in (*self._catalog.ancestors(category.id), category)]

    def _brand(self, company: records.Company) -> Object:
        return {**_named(company), "__class__": "Brand", "uid": self.uids.of("Brand", company.id, company.name)}

    def _manufacturer(self, company: records.Company) -> Object:
        uid = self.uids.of("Manufacturer", company.id, company.name)
        return {**_named(company), "__class__": "Manufacturer", "uid": uid}

    def _seller(self, company: records.Company) -> Object:
        return {
            "display_flag": company.display_flag,
            "has_ecommerce": synthetic_values.sells_online(company),
            **_named(company),
            "name": self.seller_name(company),
            "__class__": "Seller",
            "id": company.id,
            "uid": self.uids.of("Seller", company.id, company.name),
        }

    def _category(self, category: records.Category) -> Object:
        *line, uid = self.category_line(category)
        return {
            "parent_uid": line[-1] if line else None,
            "name": category.name,
            "num_parts": self._catalog.num_parts(category.id),
            "ancestor_uids": line,
            "uid": uid,
            "children_uids": [self.category_uid(child) for child in self._catalog.children(category.id)],
            "__class__": "Category",
            "ancestor_names": [each.name for each in self._catalog.ancestors(category.id)],
        }

    def _credited(self, name: str) -> Object:
        """An Attribution: one source, or none without a name."""
        sources = [{"uid": self.uids.of_source(name), "__class__": "Source", "name": name}] if name else []
        return {"sources": sources, "__class__": "Attribution", "first_acquired": None}


def _named(company: records.Company) -> Object:
    return {"homepage_url": company.homepage_url, "name": company.name}
