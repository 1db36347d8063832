"""Everything that the old service makes objects of, put together for one catalog at the first use of each."""

from functools import cached_property
from typing import Any

from proxy.sandbox.catalog import records, store
from proxy.sandbox.legacy_v3 import (
    companies,
    drawing,
    listing,
    offers,
    only_v3,
    part_fields,
    part_search,
    parts,
    shape,
    spec_names,
    uids,
)

Object = dict[str, Any]


class Objects:
    """The objects of one catalog as callers see them. `country` and `currency` are what offers are shown for."""

    def __init__(self, catalog: store.Catalog, country: str, currency: str) -> None:
        self._catalog, self._country, self._currency = catalog, country, currency

    def part(self, part: records.Part, seen: shape.Shape, apikey: str, draws: drawing.Draws) -> Object:
        """A Part."""
        return self._parts.built(part, seen, apikey, draws)

    def known(self, name: str, uid: str) -> Object | None:
        """The Brand, Category or Seller that a uid leads to, be it one of an earlier year."""
        return self.listings[name].get(self._companies.uids.current(uid))

    def listed(self, found: Object, name: str, seen: shape.Shape) -> Object:
        """A Brand, Category or Seller of a listing."""
        if name == "Category" and "imagesets" in seen.include:
            found = {**found, "imagesets": self._pictures[found["uid"]]}
        return seen.of(found)

    @cached_property
    def search(self) -> part_search.PartSearch:
        """The search of parts."""
        fields = part_fields.PartFields(self._catalog, self._companies, self.spec_names, self._country)
        return part_search.PartSearch(self._catalog, fields)

    @cached_property
    def spec_names(self) -> spec_names.SpecNames:
        """The specs of parts by the keys that requests may use."""
        return spec_names.SpecNames(self._catalog.attributes())

    @cached_property
    def listings(self) -> dict[str, listing.Listing]:
        """Brands, sellers and categories, by class."""
        known, catalog = self._companies, self._catalog
        return {
            "Brand": listing.Listing((known.brand(each), each.aliases, ()) for each in catalog.manufacturers()),
            "Seller": listing.Listing(
                (known.seller(each), each.aliases, known.other_names(each)) for each in catalog.sellers()
            ),
            "Category": listing.Listing((known.category(each), (), ()) for each in catalog.categories()),
        }

    @cached_property
    def _companies(self) -> companies.Companies:
        return companies.Companies(self._catalog, uids.Uids())

    @cached_property
    def _parts(self) -> parts.Parts:
        market = offers.Offers(self._companies, self._country, self._currency)
        return parts.Parts(self._catalog, self._companies, market, self._country)

    @cached_property
    def _pictures(self) -> dict[str, list[dict[str, object]]]:
        categories = self._catalog.categories()
        return {self._companies.category_uid(each): only_v3.category_pictures(each) for each in categories}
