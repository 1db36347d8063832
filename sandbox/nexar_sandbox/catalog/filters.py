"""Filters and sort keys of searches as SQL (contract graphql.md §2.4). Whatever a user writes is a parameter.

Values of one key are alternatives (OR); keys are combined (AND).
"""
# ruff: noqa: S608  the SQL is composed of literals in this package; user input is passed as parameters

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nexar_sandbox.catalog import matching, parts, records, reference_data, units

# Of parts `p`: hits that nothing else distinguishes are in this order.
BEST = "p.offers DESC, p.id"


class Clause(NamedTuple):
    """A condition, or terms of an order."""

    sql: str
    parameters: tuple[str | int, ...] = ()


def among(column: str, values: Iterable[str | int]) -> Clause:
    """The condition that a column has one of some values."""
    return Clause(f"{column} IN (SELECT value FROM json_each(?))", (msgspec.json.encode(list(values)).decode(),))


_RANGE = re.compile(r"\(\s*(.*?)\s*__\s*(.*?)\s*\)")
CAD_STATES = {
    "symbol_footprint_3d": parts.SYMBOL_FOOTPRINT_3D,
    "symbol_footprint": parts.SYMBOL_FOOTPRINT,
    "none": parts.NO_CAD,
}
_SORTS = {
    "median_price_1000": "median_price(p.id)",
    "avg_price": "mean_price(p.id)",
    "num_authsuppliers": "p.authorized",
    "mpn": "p.mpn COLLATE NOCASE",
    "manufacturer.displayname": "p.maker_name COLLATE NOCASE",
}


class CatalogFilters:
    def __init__(self, lines: Mapping[int, records.PartLine], reference: reference_data.ReferenceData) -> None:
        self._lines, self._reference = lines, reference
        companies = reference.companies.values()
        self._makers = matching.CompanyNameIndex(each for each in companies if "manufacturer" in each.roles)
        self._sellers = matching.CompanyNameIndex(each for each in companies if "seller" in each.roles)

    def of(self, conditions: records.SearchConditions) -> list[Clause]:
        """The filters of some conditions. Raises ValueError naming an unknown key or an invalid value."""
        clauses = [self._filter(key, values) for key, values in conditions.filters]
        if conditions.in_stock_only:
            clauses.append(Clause("p.stocked"))
        if conditions.authorized_only:
            clauses.append(Clause("p.authorized"))
        return clauses

    def of_query(self, query: records.MatchQuery) -> list[Clause]:
        made = [] if query.manufacturer is None else [self.made_by([query.manufacturer])]
        return made if query.seller is None else [*made, self.sold_by([query.seller])]

    def order(self, sort: str, descending: bool) -> Clause | None:
        """The order for `sort`, parts without a value last; None for relevance (""). ValueError for an unknown key."""
        if not sort:
            return None
        direction = "DESC" if descending else "ASC"
        if sort in _SORTS:
            return Clause(f"{_SORTS[sort]} {direction} NULLS LAST, {BEST}")
        if sort not in self._reference.attributes:
            raise ValueError(f"sort: there is no key {sort!r}")
        return Clause(f"spec(p.id, ?) {direction} NULLS LAST, {BEST}", (sort,))

    def made_by(self, texts: Iterable[str]) -> Clause:
        """Parts of the makers that `texts` (names or ids) refer to."""
        ids = (frozenset({text}) if _is_id(text) else self._makers.find(text) for text in texts)
        return among("p.maker", frozenset[str]().union(*ids))

    def sold_by(self, texts: Iterable[str]) -> Clause:
        """Parts listed by a seller that `texts` (names or ids) refer to."""
        ids = {id_ for text in texts for id_ in self.sellers(text)}
        listed = among("seller", (i for i, seller in enumerate(self._reference.sellers) if seller.id in ids))
        return Clause(f"p.id IN (SELECT part FROM listings WHERE {listed.sql})", listed.parameters)

    def sellers(self, text: str) -> frozenset[str]:
        """Ids of the sellers that a name or an id refers to."""
        return frozenset({text}) if _is_id(text) else self._sellers.find(text)

    def _filter(self, key: str, values: Sequence[str]) -> Clause:
        if key == "manufacturer_id":
            return self.made_by(values)
        if key == "distributor_id":
            return self.sold_by(values)
        if key == "category_id":
            return among("p.category", {id_ for text in values for id_ in self._categories(text)})
        if key == "cad_models":
            return among("p.cad", map(_cad, values))
        if key in self._reference.attributes:
            return self._by_attribute(self._reference.attributes[key], values)
        raise ValueError(f"filters: there is no key {key!r}")

    def _by_attribute(self, attribute: records.CatalogAttribute, values: Sequence[str]) -> Clause:
        numeric = attribute.value_type == "number"
        bounds = [hit for text in values if numeric and (hit := _RANGE.fullmatch(text))]
        ranges = [_between(attribute.shortname, each) for each in bounds]
        texts = [text for text in values if not (numeric and _RANGE.fullmatch(text))]
        found = {
            id_: line.specs[attribute.shortname]
            for id_, line in self._lines.items()
            if attribute.shortname in line.specs
        }
        # Each value that occurs is compared once, and not once for each part.
        chosen = {
            value
            for value in set(found.values())
            if any(inside(value) for inside in ranges) or any(_equal(attribute, value, text) for text in texts)
        }
        return among("p.id", (id_ for id_, value in found.items() if value in chosen))

    def _categories(self, text: str) -> tuple[str, ...]:
        """Ids of the categories that a name or an id refers to, and of those below."""
        reference, norm = self._reference, matching.normalize(text)
        return tuple(
            below
            for category in reference.categories.values()
            if (category.id == text if _is_id(text) else matching.normalize(category.name) == norm)
            for below in reference.descendants(category.id)
        )


def _between(shortname: str, bounds: re.Match[str]) -> Callable[[Any], bool]:
    low, high = bounds[1], bounds[2]
    try:
        least, most = float(low or "-inf"), float(high or "inf")
    except ValueError:
        raise ValueError(f"filters: {shortname} has no range '({low}__{high})', a bound is a number") from None
    return lambda value: least <= value <= most


def _equal(attribute: records.CatalogAttribute, value: float | str, text: str) -> bool:
    """Whether a filter's text equals the value: as displayed, one of several, or a bare number in SI base units."""
    plain_text = _plain(text)
    if isinstance(value, str):
        return plain_text == _plain(value) or plain_text in map(_plain, value.split(","))
    try:
        return float(text) == value
    except ValueError:
        return plain_text == _plain(units.displayed(value, attribute.units_symbol).display)


def _plain(text: str) -> str:
    return "".join(text.split()).casefold()


def _cad(text: str) -> int:
    if text not in CAD_STATES:
        raise ValueError(f"filters: cad_models takes {', '.join(CAD_STATES)}, not {text!r}")
    return CAD_STATES[text]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal()
