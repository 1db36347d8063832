"""/parts/search (contract v3-rest.md §1.1, §3.6): the fields by which parts were searched, and the facets of a
spec_drilldown."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from nexar_sandbox.catalog import listings, pricing, records, store
from nexar_sandbox.legacy_v3 import catalog_objects, query_string, searching, spec_names
from nexar_sandbox.legacy_v3.criteria import Criterion
from nexar_sandbox.legacy_v3.search_request import CountOptions, LegacySearch
from nexar_sandbox.legacy_v3.searching import SearchField

Object = dict[str, Any]
# A spec_drilldown looks at so many of the best hits, and finds so many specs.
_LOOKED_AT, _SUGGESTED = 100, 8
_IN_STOCK = Criterion("avg_avail", (), "1", None)
_SPEC = re.compile(r"specs\.([^.]+)\.(value|min_value|max_value)")


class PartFields:
    def __init__(
        self,
        catalog: store.Catalog,
        company_objects: catalog_objects.CompanyObjects,
        names: spec_names.SpecNames,
    ) -> None:
        self._catalog, self._company_objects, self._names = catalog, company_objects, names
        self._places = {seller.id: place for place, seller in enumerate(catalog.reference.sellers)}
        self._fields = {**self._of_companies(), **self._of_offers(), **_TEXTS}

    def of(self, name: str) -> SearchField:
        field = self._fields.get(name)
        if field is not None:
            return field
        spec = self.spec(name)
        if spec is None:
            raise query_string.bad_request(
                f"parts have no field {name[:60]}; they have {', '.join(self._fields)}, specs.<key>.value"
            )
        return SearchField(spec.numbers, counted=spec.counted, sort=spec.sort_value, meets=spec.meets)

    def spec(self, name: str) -> spec_names.SpecDefinition | None:
        """Return the spec that a field is of, or None."""
        match = _SPEC.fullmatch(name)
        return self._names.definition(match[1], match[2]) if match else None

    def _of_companies(self) -> dict[str, SearchField]:
        company_objects = self._company_objects

        def of_maker(read: Callable[[records.Company], str]) -> SearchField:
            return SearchField(lambda part: [read(part.manufacturer)])

        def of_sellers(
            read: Callable[[records.Company], str], others: Callable[[records.Company], Iterable[str]] = lambda _: ()
        ) -> SearchField:
            return SearchField(
                lambda part: [read(each.company) for each in sorted(self._sellers(part), key=self._place)],
                lambda part: [name for each in self._sellers(part) for name in others(each.company)],
                sort=_unsorted,
            )

        return {
            "brand.name": of_maker(lambda company: company.name),
            "brand.uid": of_maker(lambda company: str(company_objects.brand(company)["uid"])),
            "manufacturer.name": of_maker(lambda company: company.name),
            "manufacturer.displayname": of_maker(lambda company: company.name),
            "manufacturer.uid": of_maker(lambda company: str(company_objects.manufacturer(company)["uid"])),
            "offers.seller.name": of_sellers(company_objects.seller_name, company_objects.other_names),
            "offers.seller.uid": of_sellers(lambda company: str(company_objects.seller(company)["uid"])),
            "offers.seller.id": of_sellers(lambda company: company.id),
            # A filter by a category finds the parts of those below, too.
            "category_uids": SearchField(
                lambda part: self._category_line(part)[-1:], self._category_line, sort=_unsorted
            ),
        }

    def _of_offers(self) -> dict[str, SearchField]:
        avail = SearchField(lambda part: [pricing.avg_avail(self._sellers(part))])
        return {
            "avg_avail": SearchField(
                avail.values,
                counted=lambda part: [(0, ("[1 TO *]" if self._is_stocked(part) else "0",))],
                meets=lambda criterion: self._is_stocked if criterion == _IN_STOCK else avail.predicate(criterion),
            ),
            "avg_price": SearchField(partial(self._prices, pricing.mean)),
            "median_price_1000": SearchField(partial(self._prices, pricing.median)),
            "num_authsuppliers": SearchField(lambda part: [sum(each.is_authorized for each in self._sellers(part))]),
        }

    def _sellers(self, part: records.Part) -> tuple[records.SellerOffers, ...]:
        return self._catalog.sellers_of(part)

    def _place(self, seller: records.SellerOffers) -> int:
        return self._places[seller.company.id]

    def _is_stocked(self, part: records.Part) -> bool:
        offers = (offer for seller in self._sellers(part) if not seller.is_broker for offer in seller.offers)
        return any(offer.inventory_level > 0 or offer.inventory_level == listings.SOME_STOCK for offer in offers)

    def _category_line(self, part: records.Part) -> list[str]:
        return self._company_objects.category_line(part.category) if part.category else []

    def _prices(self, middle: Callable[[list[float]], float | None], part: records.Part) -> list[float]:
        figure = middle(pricing.prices(self._sellers(part)))
        return [] if figure is None else [figure]


def _unsorted(_part: records.Part, _downwards: bool) -> Any:
    raise query_string.bad_request("sortby: parts cannot be sorted by a field with several values")


_TEXTS = {
    "mpn": SearchField(lambda part: [part.mpn]),
    "uid": SearchField(lambda part: [part.v3uid]),
    "descriptions.value": SearchField(lambda part: [each.text for each in part.descriptions]),
}


class PartSearch:
    def __init__(self, catalog: store.Catalog, fields: PartFields) -> None:
        self._catalog, self._fields = catalog, fields

    def search(self, request: LegacySearch) -> searching.SearchResult:
        found = self._catalog.search(request.q, records.SearchConditions())
        best = {part.id: place for place, part in enumerate(self._catalog.parts())}
        search = searching.ObjectSearch(
            request,
            self._catalog.parts_of(found),
            self._fields.of,
            number=lambda part: int(part.id),
            best=lambda part: best[part.id],
        )
        result = search.result()
        if request.drilldown is not None and request.drilldown.include:
            result = self._with_drilldown(result, search, request, request.drilldown)
        filters = (each.field for each in request.criteria)
        return replace(result, spec_metadata=self._metadata([*filters, *result.facets, *result.stats]))

    def _with_drilldown(
        self,
        result: searching.SearchResult,
        search: searching.ObjectSearch,
        request: LegacySearch,
        options: CountOptions,
    ) -> searching.SearchResult:
        """Add the specs that most of the best hits have: facets, and statistics of those that are numbers."""
        filters = (each for each in request.criteria if not (options.exclude_filter and _is_spec(each.field)))
        hits = search.passing(filters)
        names = [f"specs.{key}.value" for key in spec_names.of_most(hits[:_LOOKED_AT], _SUGGESTED)][: options.limit]
        facets = {name: search.facet(name, hits, CountOptions(True, options.exclude_filter)) for name in names}
        numeric = [name for name in names if (spec := self._fields.spec(name)) is not None and spec.is_numeric]
        stats = {name: search.stats(name, hits) for name in numeric}
        # What the request counts itself prevails, and has the rank, too.
        both = {**facets, **result.facets}, {**stats, **result.stats}
        for rank, name in enumerate(names, 1):
            for counted in both:
                if name in counted:
                    counted[name] = {**counted[name], "spec_drilldown_rank": rank}
        return replace(result, facets=both[0], stats=both[1])

    def _metadata(self, names: list[str]) -> Object:
        """Metadata of the specs that were filtered or counted, by the requested key."""
        named_specs = ((name.split(".")[1], self._fields.spec(name)) for name in names if _is_spec(name))
        return {key: spec_names.metadata(spec.key, spec.about) for key, spec in named_specs if spec and spec.about}


def _is_spec(field: str) -> bool:
    return field.startswith("specs.")
