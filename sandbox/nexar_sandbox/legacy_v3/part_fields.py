"""The fields by which parts were searched (contract v3-rest.md §1.1), and their counterparts in the catalog.

Criteria that the catalog supports become catalog filters; for all others values are read part by part.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from nexar_sandbox.catalog import pricing, records, store
from nexar_sandbox.legacy_v3 import catalog_objects, query_string, spec_names
from nexar_sandbox.legacy_v3.criteria import Criterion

CatalogFilter = tuple[str, tuple[str, ...]]
Named = records.Company | records.Category
Counted = Literal["maker", "seller", "category", "stock", "spec", "values"]
_IN_STOCK = Criterion("avg_avail", (), "1", None)
_SPEC = re.compile(r"specs\.([^.]+)\.(value|min_value|max_value)")
_ANY = ("(__)",)


def _no_other(_named: Named) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class SearchField:
    """A filter field. `key` is the catalog's filter, `sort` its sort key ("" if there is none); `display` gives the
    field's text for a company or category, `also` further accepted texts; `values` reads the values of a part."""

    name: str
    count_kind: Counted
    key: str = ""
    sort: str = ""
    display: Callable[[Any], str] = str
    also: Callable[[Any], Iterable[str]] = _no_other
    values: Callable[[records.Part], list[Any]] | None = None
    spec: spec_names.SpecDefinition | None = None

    @property
    def is_empty(self) -> bool:
        """True for a spec that only v3 had, so that no part has a value."""
        return self.spec is not None and not self.spec.sources

    def values_of(self, part: records.Part) -> list[Any]:
        """Values of a part. Raises LegacyError for a field whose values cannot be read per part."""
        if self.values is None:
            raise query_string.bad_request(f"{self.name} can only be filtered by whole values and counted")
        return self.values(part)

    @property
    def range(self) -> spec_names.SpecRange | None:
        return self.spec.range if self.spec else None

    def sort_key(self, downwards: bool) -> str:
        if self.range is None:
            return self.sort
        return self.range.high if downwards else self.range.low

    def sort_value(self, part: records.Part, downwards: bool) -> Any:
        spec_value = self.spec.sorted_by(part, downwards) if self.spec else None
        if self.range is not None and spec_value is None:
            return None
        if spec_value is not None and spec_value.attribute.value_type == "number":
            return float(spec_value.si_value)
        return next(iter(self.values_of(part)), None)


class SplitCriteria(NamedTuple):
    """Criteria split into catalog filters, the parts that meet others, and the rest for `passes`."""

    catalog: records.SearchConditions
    inside: list[frozenset[int]]
    left: list[Criterion]


class PartFields:
    def __init__(
        self,
        catalog: store.Catalog,
        company_objects: catalog_objects.CompanyObjects,
        names: spec_names.SpecNames,
        country: str,
    ) -> None:
        self._catalog, self._company_objects, self._names, self._country = catalog, company_objects, names, country
        self._fields = {each.name: each for each in self._search_fields()}

    def of(self, name: str) -> SearchField:
        field = self._fields.get(name) or self._spec(name)
        if field is None:
            raise query_string.bad_request(
                f"parts have no field {name[:60]}; they have {', '.join(self._fields)}, specs.<key>.value"
            )
        return field

    def conditions(self, filters_: Iterable[Criterion]) -> SplitCriteria:
        filters: list[CatalogFilter] = []
        split = SplitCriteria(records.SearchConditions(), [], [])
        in_stock = False
        for each in filters_:
            field = self.of(each.field)
            filter_ = self._catalog_filter(field, each)
            if each == _IN_STOCK:
                in_stock = True
            elif filter_ is not None:
                filters.append(filter_)
            else:
                if field.spec is not None and not field.key:
                    meeting = self._meeting_range if field.range else self._meeting
                    split.inside.append(meeting(field.spec, each))
                if field.spec is None or each.has_wildcard:
                    split.left.append(each)
        return split._replace(catalog=records.SearchConditions(tuple(filters), in_stock_only=in_stock))

    def by_source(
        self, field: SearchField, hits: records.SearchHits
    ) -> list[tuple[records.CatalogAttribute, records.SearchHits]]:
        """Return the attributes that supply a spec's values, each with those of the hits whose value it has; a part
        has the value and both ends of a range."""
        spec = field.spec
        if spec is None or field.key or spec.range:
            return [] if spec is None else [(source.attribute, hits) for source in spec.sources]
        return [(attribute, hits.intersect(rows)) for attribute, rows in self._having(spec)]

    def having(self, spec: spec_names.SpecDefinition, hits: records.SearchHits) -> records.SearchHits:
        return hits.intersect(_union(parts for _, parts in self._having(spec)))

    def passes(self, part: records.Part, filters_: Iterable[Criterion]) -> bool:
        return all(any(map(each.holds, self.of(each.field).values_of(part))) for each in filters_)

    def named(self, criterion: Criterion) -> frozenset[int] | None:
        """Return the only parts that can meet a criterion by MPN or uid; None for other criteria."""
        if criterion.is_range or criterion.has_wildcard:
            return None
        if criterion.field == "mpn":
            queries = (records.MatchQuery(mpn=value) for value in criterion.values)
            return _union(self._catalog.match(each, records.SearchConditions()).parts for each in queries)
        if criterion.field == "uid":
            parts = (self._catalog.part_by_uid(value) for value in criterion.values)
            return frozenset(int(part.id) for part in parts if part is not None)
        return None

    def _catalog_filter(self, field: SearchField, criterion: Criterion) -> CatalogFilter | None:
        if not field.key or (field.count_kind != "spec" and criterion.is_range):
            return None
        if field.count_kind == "spec":
            if criterion.has_wildcard or field.spec is None:
                return None
            return _spec_filter(field.spec.sources[0].attribute, criterion)
        named: dict[Counted, Iterable[Named]] = {
            "maker": self._catalog.manufacturers(),
            "seller": self._catalog.sellers(),
            "category": self._catalog.categories(),
        }
        ids = [
            each.id
            for each in named[field.count_kind]
            if any(map(criterion.holds, (field.display(each), *field.also(each))))
        ]
        # v3 compared values literally: an unknown name matches no part, so the empty filter is retained.
        return field.key, tuple(ids)

    def _spec(self, name: str) -> SearchField | None:
        spec_match = _SPEC.fullmatch(name)
        spec = self._names.definition(spec_match[1], spec_match[2]) if spec_match else None
        if spec is None:
            return None
        alone = len(spec.sources) == 1 and not spec.sources[0].beside
        shortname = spec.sources[0].attribute.shortname if alone else ""

        def values(part: records.Part) -> list[str]:
            if spec.range is not None:
                return [
                    value for each in spec_names.of_part(part).get(spec.key, []) for value in spec_names.values(each)
                ]
            spec_value = spec.spec_of(part)
            return [] if spec_value is None else spec_names.values(spec_value)

        return SearchField(name, "spec", shortname, shortname, values=values, spec=spec)

    def _having(self, spec: spec_names.SpecDefinition) -> list[tuple[records.CatalogAttribute, frozenset[int]]]:
        """Return the attributes of a spec, each with the parts whose value it has."""
        having: list[tuple[records.CatalogAttribute, frozenset[int]]] = []
        for source in spec.sources:
            parts = self._parts((source.attribute.shortname, _ANY), source.beside)
            having.append((source.attribute, parts.difference(*(before for _, before in having))))
        return having

    def _meeting(self, spec: spec_names.SpecDefinition, criterion: Criterion) -> frozenset[int]:
        """Return the parts whose spec meets a criterion; with a wildcard, those that have the spec."""
        return _union(
            parts
            & self._parts((attribute.shortname, _ANY) if criterion.has_wildcard else _spec_filter(attribute, criterion))
            for attribute, parts in self._having(spec)
        )

    def _meeting_range(self, spec: spec_names.SpecDefinition, criterion: Criterion) -> frozenset[int]:
        """Return the parts whose range overlaps a requested one, or whose value is in it; one value is a range from it
        to it."""
        if criterion.has_wildcard or (criterion.is_range and criterion.low is criterion.high is None):
            return _union(parts for _, parts in self._having(spec))
        bounds = [(criterion.low, criterion.high)] if criterion.is_range else [(end, end) for end in criterion.values]
        return _union(
            parts
            for low, high in bounds
            if spec.range and all(end is None or spec_names.as_number(end) is not None for end in (low, high))
            for parts in self._in_common(spec.range, low or "", high or "")
        )

    def _in_common(self, spec: spec_names.SpecRange, low: str, high: str) -> Iterable[frozenset[int]]:
        ends = [(spec.high, f"({low}__)")] if low else []
        ends += [(spec.low, f"(__{high})")] if high else []
        yield frozenset.intersection(*(self._parts((shortname, (text,))) for shortname, text in ends))
        if spec.value:
            yield self._parts((spec.value, (f"({low}__{high})",)))

    def _parts(self, filter_: CatalogFilter, beside: str = "") -> frozenset[int]:
        filters = (filter_, (beside, _ANY)) if beside else (filter_,)
        try:
            return frozenset(self._catalog.search("", records.SearchConditions(filters)).parts)
        except ValueError as error:
            raise query_string.bad_request(str(error)) from None

    def _search_fields(self) -> Iterable[SearchField]:
        company_objects = self._company_objects
        makers: list[tuple[str, Callable[[records.Company], str]]] = [
            ("brand.name", lambda company: company.name),
            ("brand.uid", lambda company: str(company_objects.brand(company)["uid"])),
            ("manufacturer.name", lambda company: company.name),
            ("manufacturer.displayname", lambda company: company.name),
            ("manufacturer.uid", lambda company: str(company_objects.manufacturer(company)["uid"])),
        ]
        for name, text_of in makers:
            sort = "manufacturer.displayname" if name.endswith("name") else ""
            read = partial(lambda text_of, part: [text_of(part.manufacturer)], text_of)
            yield SearchField(name, "maker", "manufacturer_id", sort, text_of, values=read)
        sellers: list[tuple[str, Callable[[records.Company], str]]] = [
            ("offers.seller.name", company_objects.seller_name),
            ("offers.seller.uid", lambda company: str(company_objects.seller(company)["uid"])),
            ("offers.seller.id", lambda company: company.id),
        ]
        for name, text_of in sellers:
            also = company_objects.other_names if name == "offers.seller.name" else _no_other
            yield SearchField(name, "seller", "distributor_id", display=text_of, also=also)
        yield SearchField("category_uids", "category", "category_id", display=company_objects.category_uid)
        yield SearchField("avg_avail", "stock", values=lambda part: [pricing.avg_avail(self.sellers(part))])
        yield SearchField("avg_price", "values", sort="avg_price", values=lambda part: self._prices(part, pricing.mean))
        yield SearchField(
            "median_price_1000",
            "values",
            sort="median_price_1000",
            values=lambda part: self._prices(part, pricing.median),
        )
        yield SearchField(
            "num_authsuppliers",
            "values",
            sort="num_authsuppliers",
            values=lambda part: [sum(each.is_authorized for each in self.sellers(part))],
        )
        yield SearchField("mpn", "values", sort="mpn", values=lambda part: [part.mpn])
        yield SearchField("uid", "values", values=lambda part: [part.v3uid])
        yield SearchField("descriptions.value", "values", values=lambda part: [each.text for each in part.descriptions])

    def sellers(self, part: records.Part) -> tuple[records.SellerOffers, ...]:
        return self._catalog.sellers_of(part, self._country)

    def _prices(self, part: records.Part, middle: Callable[[list[float]], float | None]) -> list[float]:
        figure = middle(pricing.prices(self.sellers(part)))
        return [] if figure is None else [figure]


def _union(sets: Iterable[Iterable[int]]) -> frozenset[int]:
    return frozenset().union(*sets)


def _spec_filter(attribute: records.CatalogAttribute, criterion: Criterion) -> CatalogFilter:
    """Ranges and whole values; tolerances may be written with their sign."""
    if criterion.is_range:
        low, high = (spec_names.asked_value(attribute, end) if end else "" for end in (criterion.low, criterion.high))
        return attribute.shortname, (f"({low}__{high})",)
    return attribute.shortname, tuple(spec_names.asked_value(attribute, value) for value in criterion.values)
