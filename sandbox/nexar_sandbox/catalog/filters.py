"""Filters and sort keys of searches as SQL (contract graphql.md §2.4). Whatever a user writes is a parameter.

Values of one key are alternatives (OR); keys are combined (AND).
"""
# ruff: noqa: S608  the SQL is composed of literals in this package; user input is passed as parameters

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from nexar_sandbox.catalog import matching, parts, records, reference_data, rules, units

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
    "median_price_1000": "p.median",
    "avg_price": "p.average",
    "num_authsuppliers": "p.authorized",
    "mpn": "p.mpn COLLATE NOCASE",
    "manufacturer.displayname": "p.maker_name COLLATE NOCASE",
}


class CatalogFilters:
    def __init__(self, connection: sqlite3.Connection, reference: reference_data.ReferenceData) -> None:
        self._connection, self._reference = connection, reference
        companies = reference.companies.values()
        self._makers = matching.CompanyNameIndex(each for each in companies if "manufacturer" in each.roles)
        self._sellers = matching.CompanyNameIndex(each for each in companies if "seller" in each.roles)
        # Cached for each catalog: a decorator of the method would keep every catalog in memory.
        self.values = cache(self._values)

    def of(self, conditions: records.SearchConditions) -> list[Clause]:
        """The filters of some conditions. Raises ValueError naming an unknown key or an invalid value."""
        clauses = self._of_keys(conditions)
        if conditions.in_stock_only:
            clauses.append(Clause("p.stocked"))
        if conditions.authorized_only:
            clauses.append(Clause("p.authorized"))
        return clauses

    def of_query(self, query: records.MatchQuery, search_rules: rules.SearchRules) -> list[Clause]:
        company_filters = []
        if query.manufacturer is not None:
            known = self.makers(query.manufacturer, search_rules)
            if known or search_rules.unknown_makers_match_nothing:
                company_filters.append(self.made_by([query.manufacturer], search_rules))
        if query.seller is not None:
            company_filters.append(self.sold_by([query.seller]))
        return company_filters

    def order(self, sort: str, descending: bool, search_rules: rules.SearchRules) -> Clause | None:
        """The order for `sort`, parts without a value last; None for relevance (""). ValueError for an unknown key."""
        if not sort:
            return None
        is_known = (sort in _SORTS or sort in self._reference.attributes) and sort not in search_rules.sort_keys_missing
        if not is_known:
            if search_rules.unknown_sorts_refused:
                raise ValueError(f"sort: there is no key {sort!r}")
            return None
        direction = "DESC" if descending and search_rules.descending_sorts else "ASC"
        if sort in _SORTS:
            return Clause(f"{_SORTS[sort]} {direction} NULLS LAST, {BEST}")
        value = "(SELECT code FROM specs WHERE attribute = ? AND part = p.id)"
        return Clause(f"{value} {direction} NULLS LAST, {BEST}", (sort,))

    def made_by(self, texts: Iterable[str], search_rules: rules.SearchRules) -> Clause:
        """Parts of the makers that `texts` (names or ids) refer to."""
        return among("p.maker", {id_ for text in texts for id_ in self.makers(text, search_rules)})

    def sold_by(self, texts: Iterable[str]) -> Clause:
        """Parts listed by a seller that `texts` (names or ids) refer to."""
        ids = {id_ for text in texts for id_ in self.sellers(text)}
        listed = among("seller", (i for i, seller in enumerate(self._reference.sellers) if seller.id in ids))
        return Clause(f"p.id IN (SELECT part FROM listings WHERE {listed.sql})", listed.parameters)

    def sellers(self, text: str) -> frozenset[str]:
        """Ids of the sellers that a name or an id refers to."""
        return frozenset({text}) if _is_id(text) else self._sellers.find(text)

    def makers(self, text: str, search_rules: rules.SearchRules) -> frozenset[str]:
        """Ids of the makers that a name or an id refers to."""
        return frozenset({text}) if _is_id(text) else self._makers.find(text, search_rules)

    def _values(self, shortname: str) -> list[float | str]:
        """The values of an attribute that occur, sorted: a value's place is its code."""
        rows = self._connection.execute("SELECT value FROM spec_values WHERE attribute = ? ORDER BY code", (shortname,))
        return [value for (value,) in rows]

    def _of_keys(self, conditions: records.SearchConditions) -> list[Clause]:
        search_rules = conditions.search_rules
        clauses = [
            self._filter(key, group, search_rules)
            for key, values in conditions.filters
            for group in ([values] if search_rules.values_are_alternatives else [(value,) for value in values])
        ]
        if search_rules.keys_are_combined or not clauses:
            return clauses
        either = " OR ".join(clause.sql for clause in clauses)
        return [Clause(f"({either})", tuple(each for clause in clauses for each in clause.parameters))]

    def _filter(self, key: str, values: Sequence[str], search_rules: rules.SearchRules) -> Clause:
        if key == "manufacturer_id":
            takes_names = search_rules.names_filter_makers
            return self.made_by([text for text in values if takes_names or _is_id(text)], search_rules)
        if key == "distributor_id":
            takes_names = search_rules.names_filter_sellers
            return self.sold_by([text for text in values if takes_names or _is_id(text)])
        if key == "category_id":
            return among("p.category", {id_ for text in values for id_ in self._categories(text, search_rules)})
        if key == "cad_models":
            return among("p.cad", map(_cad, values))
        if key in self._reference.attributes:
            return self._by_attribute(self._reference.attributes[key], values, search_rules)
        if not search_rules.unknown_filters_refused:
            return Clause("1")
        raise ValueError(f"filters: there is no key {key!r}")

    def _by_attribute(
        self, attribute: records.CatalogAttribute, values: Sequence[str], search_rules: rules.SearchRules
    ) -> Clause:
        numeric = attribute.value_type == "number"
        bounds = [hit for text in values if numeric and (hit := _RANGE.fullmatch(text))]
        ranges = [_between(attribute.shortname, each, search_rules) for each in bounds]
        texts = [text for text in values if not (numeric and _RANGE.fullmatch(text))]
        # Each value that occurs is compared once, and not once for each part.
        chosen = among(
            "code",
            (
                code
                for code, value in enumerate(self.values(attribute.shortname))
                if any(inside(value) for inside in ranges)
                or any(_equal(attribute, value, text, search_rules) for text in texts)
            ),
        )
        having = f"p.id IN (SELECT part FROM specs WHERE attribute = ? AND {chosen.sql})"
        return Clause(having, (attribute.shortname, *chosen.parameters))

    def _categories(self, text: str, search_rules: rules.SearchRules) -> tuple[str, ...]:
        reference, norm = self._reference, matching.normalize(text)
        same = [
            category.id
            for category in reference.categories.values()
            if (category.id == text if _is_id(text) else matching.normalize(category.name) == norm)
        ]
        if not search_rules.categories_include_descendants:
            return tuple(same)
        return tuple(below for id_ in same for below in reference.descendants(id_))


def _between(shortname: str, bounds: re.Match[str], search_rules: rules.SearchRules) -> Callable[[Any], bool]:
    low, high = bounds[1], bounds[2]
    is_open, has_exponent = not (low and high), "e" in bounds[0].lower()
    if (is_open and not search_rules.ranges_may_be_open) or (has_exponent and not search_rules.exponents_in_ranges):
        return lambda _: False
    try:
        least, most = float(low or "-inf"), float(high or "inf")
    except ValueError:
        raise ValueError(f"filters: {shortname} has no range '({low}__{high})', a bound is a number") from None
    if not search_rules.ranges_include_ends:
        return lambda value: least < value < most
    return lambda value: least <= value <= most


def _equal(attribute: records.CatalogAttribute, value: float | str, text: str, search_rules: rules.SearchRules) -> bool:
    """Whether a filter's text equals the value: as displayed, one of several, or a bare number in SI base units."""
    plain_text = _plain(text)
    if isinstance(value, str):
        return plain_text == _plain(value) or plain_text in map(_plain, value.split(","))
    try:
        return float(text) == value and search_rules.plain_numbers_filter
    except ValueError:
        displayed = _plain(units.displayed(value, attribute.units_symbol).display)
        return search_rules.displayed_values_filter and plain_text == displayed


def _plain(text: str) -> str:
    return "".join(text.split()).casefold()


def _cad(text: str) -> int:
    if text not in CAD_STATES:
        raise ValueError(f"filters: cad_models takes {', '.join(CAD_STATES)}, not {text!r}")
    return CAD_STATES[text]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal()
