"""Filters and sort keys over the columns of the catalog (contract graphql.md §2.4).

Values of one key are alternatives (OR); keys are combined (AND).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nexar_sandbox.catalog import columns, matching, parts, records, reference_data, rules, units

_RANGE = re.compile(r"\(\s*(.*?)\s*__\s*(.*?)\s*\)")
CAD_STATES = {
    "symbol_footprint_3d": parts.SYMBOL_FOOTPRINT_3D,
    "symbol_footprint": parts.SYMBOL_FOOTPRINT,
    "none": parts.NO_CAD,
}
_SORTS = {
    "median_price_1000": "median",
    "avg_price": "average",
    "num_authsuppliers": "authorized",
    "mpn": "mpn_places",
    "manufacturer.displayname": "maker_places",
}
# From rows of parts to one boolean for each: whether it passes.
RowFilter = Callable[[columns.Array], columns.Array]
# From rows of parts to one sort key for each, lowest first.
SortKeys = Callable[[columns.Array], columns.Array]


class CompanyNames(NamedTuple):
    """Lookup of companies by the names in a filter or a query."""

    makers: matching.CompanyNameIndex
    sellers: matching.CompanyNameIndex


class CatalogFilters:
    """The filters and sort keys of one catalog."""

    def __init__(
        self, column_store: columns.Columns, reference: reference_data.ReferenceData, names: CompanyNames
    ) -> None:
        self._columns, self._reference, self._names = column_store, reference, names

    def of(self, conditions: records.SearchConditions) -> list[RowFilter]:
        """The filters of some conditions. Raises ValueError naming an unknown key or an invalid value."""
        masks = self._of_keys(conditions)
        if conditions.in_stock_only:
            masks.append(lambda rows: self._columns.column("stocked")[rows] > 0)
        if conditions.authorized_only:
            masks.append(lambda rows: self._columns.column("authorized")[rows] > 0)
        return masks

    def of_query(self, query: records.MatchQuery, search_rules: rules.SearchRules) -> list[RowFilter]:
        """The filters by the manufacturer and the seller of a match query."""
        company_filters = []
        if query.manufacturer is not None:
            known = self.makers(query.manufacturer, search_rules)
            if known or search_rules.unknown_makers_match_nothing:
                company_filters.append(self.made_by([query.manufacturer], search_rules))
        if query.seller is not None:
            company_filters.append(self.sold_by([query.seller]))
        return company_filters

    def order(self, sort: str, descending: bool, search_rules: rules.SearchRules) -> SortKeys | None:
        """The sort keys for `sort`, parts without a value last; None for relevance (""). ValueError for an unknown
        key."""
        if not sort:
            return None
        is_known = (sort in _SORTS or sort in self._reference.attributes) and sort not in search_rules.sort_keys_missing
        if not is_known and search_rules.unknown_sorts_refused:
            raise ValueError(f"sort: there is no key {sort!r}")
        return (
            None
            if not is_known
            else lambda rows: self._sort_keys(sort, descending and search_rules.descending_sorts)[rows]
        )

    def made_by(self, texts: Iterable[str], search_rules: rules.SearchRules) -> RowFilter:
        """Parts of the makers that `texts` (names or ids) refer to."""
        ids = {id_ for text in texts for id_ in self.makers(text, search_rules)}
        return self._with_label("maker", "makers", ids)

    def sold_by(self, texts: Iterable[str]) -> RowFilter:
        """Parts listed by a seller that `texts` (names or ids) refer to."""
        ids = {id_ for text in texts for id_ in self.sellers(text)}
        positions = [i for i, seller in enumerate(self._reference.sellers) if seller.company.id in ids]
        return lambda rows: self._parts_of_sellers(positions)[rows]

    def sellers(self, text: str) -> frozenset[str]:
        """Ids of the sellers that a name or an id refers to."""
        return frozenset({text}) if _is_id(text) else self._names.sellers.find(text)

    def makers(self, text: str, search_rules: rules.SearchRules) -> frozenset[str]:
        """Ids of the makers that a name or an id refers to."""
        return frozenset({text}) if _is_id(text) else self._names.makers.find(text, search_rules)

    def _of_keys(self, conditions: records.SearchConditions) -> list[RowFilter]:
        """The filters of the conditions' keys."""
        search_rules = conditions.search_rules
        masks = [
            self._filter(key, group, search_rules)
            for key, values in conditions.filters
            for group in ([values] if search_rules.values_are_alternatives else [(value,) for value in values])
        ]
        if search_rules.keys_are_combined or not masks:
            return masks
        return [lambda rows: np.any([each(rows) for each in masks], axis=0)]

    def _filter(self, key: str, values: Sequence[str], search_rules: rules.SearchRules) -> RowFilter:
        if key == "manufacturer_id":
            takes_names = search_rules.names_filter_makers
            return self.made_by([text for text in values if takes_names or _is_id(text)], search_rules)
        if key == "distributor_id":
            takes_names = search_rules.names_filter_sellers
            return self.sold_by([text for text in values if takes_names or _is_id(text)])
        if key == "category_id":
            ids = {id_ for text in values for id_ in self._categories(text, search_rules)}
            return self._with_label("category", "categories", ids)
        if key == "cad_models":
            states = np.isin(np.arange(len(CAD_STATES)), [_cad(text) for text in values])
            return lambda rows: states[self._columns.column("cad")[rows]]
        if key in self._reference.attributes:
            return self._by_attribute(self._reference.attributes[key], values, search_rules)
        if not search_rules.unknown_filters_refused:
            return lambda rows: np.ones(len(rows), bool)
        raise ValueError(f"filters: there is no key {key!r}")

    def _with_label(self, column: str, labels: str, ids: set[str]) -> RowFilter:
        chosen = np.array([id_ in ids for id_ in self._columns.labels(labels)], bool)
        return lambda rows: chosen[self._columns.column(column)[rows]]

    def _parts_of_sellers(self, positions: list[int]) -> columns.Array:
        """Which of all parts are listed by one of these sellers."""
        column_store, every = self._columns, self._columns.length("ids")
        listed = np.zeros((every + 7) // 8, np.uint8)
        for position in positions:
            listed |= bits(column_store, position)
        return np.unpackbits(listed, count=every).view(bool)

    def _by_attribute(
        self, attribute: records.CatalogAttribute, values: Sequence[str], search_rules: rules.SearchRules
    ) -> RowFilter:
        numeric = attribute.value_type == "number"
        bounds = [hit for text in values if numeric and (hit := _RANGE.fullmatch(text))]
        ranges = [_between(attribute.shortname, each, search_rules) for each in bounds]
        texts = [text for text in values if not (numeric and _RANGE.fullmatch(text))]
        # Each value that occurs is compared once, and not once for each part.
        chosen = np.array(
            [
                any(inside(value) for inside in ranges)
                or any(_equal(attribute, value, text, search_rules) for text in texts)
                for value in self._columns.labels(f"spec {attribute.shortname}")
            ],
            bool,
        )
        return lambda rows: self._having(attribute.shortname, chosen)[rows]

    def _having(self, shortname: str, chosen: columns.Array) -> columns.Array:
        """Which of all parts have one of the chosen values."""
        mask = np.zeros(self._columns.length("ids"), bool)
        if len(chosen):
            rows, codes = values(self._columns, shortname)
            mask[rows[chosen[codes]]] = True
        return mask

    def _sort_keys(self, sort: str, descending: bool) -> columns.Array:
        """The sort key of every part, NaN if it has no value."""
        sort_values: columns.Array = self._columns.derived(f"sort by {sort}", lambda: self._values(sort))
        return -sort_values if descending else sort_values

    def _values(self, sort: str) -> columns.Array:
        if sort == "manufacturer.displayname":
            ordered: columns.Array = ranks(
                [no_case(self._reference.companies[id_].name) for id_ in self._columns.labels("makers")]
            )
            return ordered[self._columns.column("maker")]
        if sort in _SORTS:
            return self._columns.column(_SORTS[sort]).astype(np.float64)
        sort_values = np.full(self._columns.length("ids"), np.nan)
        if self._columns.labels(f"spec {sort}"):
            rows, codes = values(self._columns, sort)
            sort_values[rows] = codes
        return sort_values

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


def bits(column_store: columns.Columns, position: int) -> columns.Array:
    """Which of all parts the seller at this position lists, one bit each."""
    width = (column_store.length("ids") + 7) // 8
    return column_store.column("sellers")[position * width : (position + 1) * width]


def values(column_store: columns.Columns, shortname: str) -> tuple[columns.Array, columns.Array]:
    """The rows of the parts that have an attribute, ascending, and the codes of their values (indices of sorted
    labels)."""
    return column_store.column(f"spec {shortname} rows"), column_store.column(f"spec {shortname} codes")


def _between(shortname: str, bounds: re.Match[str], search_rules: rules.SearchRules) -> Callable[[float], bool]:
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


def ranks(texts: list[str]) -> columns.Array:
    """The rank of each text in sorted order; equal for equal texts."""
    places = {text: float(place) for place, text in enumerate(sorted(set(texts)))}
    return np.array([places[text] for text in texts], np.float64)


def no_case(text: str) -> str:
    """The text with ASCII letters in lower case, others unchanged (like NOCASE of SQLite)."""
    return "".join(char.lower() if char.isascii() else char for char in text)


def _cad(text: str) -> int:
    if text not in CAD_STATES:
        raise ValueError(f"filters: cad_models takes {', '.join(CAD_STATES)}, not {text!r}")
    return CAD_STATES[text]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal()
