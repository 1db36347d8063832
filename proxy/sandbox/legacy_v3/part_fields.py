"""The fields by which parts were searched (contract v3-rest.md §1.1), and how the catalog holds each.

What the catalog filters by itself is put in its own words; of everything else the values are read part by part.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from proxy.sandbox.catalog import columns, pricing, records, store
from proxy.sandbox.legacy_v3 import companies, criteria, refusal, spec_names

CatalogFilter = tuple[str, tuple[str, ...]]
Named = records.Company | records.Category
Counted = Literal["maker", "seller", "category", "stock", "spec", "values"]
_IN_STOCK = criteria.Criterion("avg_avail", (), "1", None)


@dataclass(frozen=True, slots=True)
class Field:
    """A field. `key` is the catalog's filter, `sort` its sort key ("" where it has none); `shown` is how the field
    names a company or category, `values` reads its values of a part."""

    name: str
    counted: Counted
    key: str = ""
    sort: str = ""
    shown: Callable[[Any], str] = str
    values: Callable[[records.Part], list[Any]] | None = None
    attribute: records.Attribute | None = None

    def values_of(self, part: records.Part) -> list[Any]:
        """Its values of a part. Refused where a part's cannot be told one by one."""
        if self.values is None:
            raise refusal.bad(f"{self.name} can only be filtered by whole values and counted")
        return self.values(part)


class PartFields:
    """The fields of one catalog's parts."""

    def __init__(
        self, catalog: store.Catalog, known: companies.Companies, names: spec_names.SpecNames, country: str
    ) -> None:
        self._catalog, self._known, self._names, self._country = catalog, known, names, country
        self._fields = {each.name: each for each in self._listed()}

    def of(self, name: str) -> Field:
        """The field of that name. Refuses one that parts do not have."""
        field = self._fields.get(name) or self._spec(name)
        if field is None:
            raise refusal.bad(
                f"parts have no field {name[:60]}; they have {', '.join(self._fields)}, specs.<key>.value"
            )
        return field

    def conditions(self, wanted: Iterable[criteria.Criterion]) -> tuple[records.Conditions, list[criteria.Criterion]]:
        """What the catalog filters by itself, and the criteria that are left to `passes`."""
        filters: list[CatalogFilter] = []
        left: list[criteria.Criterion] = []
        in_stock = False
        for each in wanted:
            found = self._catalog_filter(self.of(each.field), each)
            if each == _IN_STOCK:
                in_stock = True
            elif found is None:
                left.append(each)
            else:
                filters.append(found)
        return records.Conditions(tuple(filters), in_stock_only=in_stock), left

    def passes(self, part: records.Part, wanted: Iterable[criteria.Criterion]) -> bool:
        """Whether a part meets criteria."""
        return all(any(map(each.holds, self.of(each.field).values_of(part))) for each in wanted)

    def named(self, wanted: criteria.Criterion) -> columns.Array | None:
        """The numbers of the catalog's parts that alone can meet the criterion: of those that name parts; else None."""
        if wanted.is_range or any("*" in value for value in wanted.values):
            return None
        if wanted.field == "mpn":
            found = [
                self._catalog.match(records.MatchQuery(mpn=value), records.Conditions()) for value in wanted.values
            ]
            return np.concatenate([hits.rows for hits in found])
        if wanted.field == "uid":
            parts = (self._catalog.part_by_uid(value) for value in wanted.values)
            return self._catalog.among([part.id for part in parts if part is not None]).rows
        return None

    def _catalog_filter(self, field: Field, wanted: criteria.Criterion) -> CatalogFilter | None:
        if field.counted == "spec":
            return _spec_filter(field.key, wanted)
        if not field.key or wanted.is_range:
            return None
        named: dict[Counted, Iterable[Named]] = {
            "maker": self._catalog.manufacturers(),
            "seller": self._catalog.sellers(),
            "category": self._catalog.categories(),
        }
        ids = [each.id for each in named[field.counted] if wanted.holds(field.shown(each))]
        # v3 compared values as they are: a name that nobody has finds nothing.
        return field.key, tuple(ids)

    def _spec(self, name: str) -> Field | None:
        specs, _, rest = name.partition(".")
        key, _, value = rest.rpartition(".")
        attribute = self._names.attribute(key)
        if specs != "specs" or value != "value" or attribute is None:
            return None
        shortname = attribute.shortname

        def values(part: records.Part) -> list[str]:
            return [text for each in part.specs if each.attribute == attribute for text in spec_names.values(each)]

        return Field(name, "spec", shortname, shortname, str, values, attribute)

    def _listed(self) -> Iterable[Field]:
        known = self._known
        makers: list[tuple[str, Callable[[records.Company], str]]] = [
            ("brand.name", lambda company: company.name),
            ("brand.uid", lambda company: str(known.brand(company)["uid"])),
            ("manufacturer.name", lambda company: company.name),
            ("manufacturer.uid", lambda company: str(known.manufacturer(company)["uid"])),
        ]
        for name, shown in makers:
            sort = "manufacturer.displayname" if name.endswith(".name") else ""
            yield Field(name, "maker", "manufacturer_id", sort, shown, partial(_of_maker, shown))
        sellers: list[tuple[str, Callable[[records.Company], str]]] = [
            ("offers.seller.name", known.seller_name),
            ("offers.seller.uid", lambda company: str(known.seller(company)["uid"])),
            ("offers.seller.id", lambda company: company.id),
        ]
        for name, shown in sellers:
            yield Field(name, "seller", "distributor_id", shown=shown)
        yield Field("category_uids", "category", "category_id", shown=known.category_uid)
        yield Field("avg_avail", "stock", values=lambda part: [pricing.avg_avail(self.sellers(part))])
        yield Field("avg_price", "values", sort="avg_price", values=lambda part: self._prices(part, pricing.mean))
        yield Field(
            "median_price_1000",
            "values",
            sort="median_price_1000",
            values=lambda part: self._prices(part, pricing.median),
        )
        yield Field(
            "num_authsuppliers", "values", sort="num_authsuppliers", values=lambda part: [self._authorized(part)]
        )
        yield Field("mpn", "values", sort="mpn", values=lambda part: [part.mpn])
        yield Field("uid", "values", values=lambda part: [part.v3uid])

    def sellers(self, part: records.Part) -> tuple[records.SellerOffers, ...]:
        """Who lists a part."""
        return self._catalog.sellers_of(part, self._country)

    def _prices(self, part: records.Part, middle: Callable[[list[float]], float | None]) -> list[float]:
        found = middle(pricing.prices(self.sellers(part)))
        return [] if found is None else [found]

    def _authorized(self, part: records.Part) -> int:
        return sum(each.is_authorized for each in self.sellers(part))


def _of_maker(shown: Callable[[records.Company], str], part: records.Part) -> list[str]:
    return [shown(part.manufacturer)]


def _spec_filter(shortname: str, wanted: criteria.Criterion) -> CatalogFilter | None:
    """Ranges and whole values; tolerances were written with their sign."""
    if wanted.is_range:
        return shortname, (f"({wanted.low or ''}__{wanted.high or ''})",)
    if any("*" in value for value in wanted.values):
        return None
    return shortname, tuple(value.removeprefix("±") for value in wanted.values)
