"""Tests of v3's filters and sort orders as upstream arguments, with the real tables (contract graphql.md §2.4)."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from support import cases

from proxy import errors
from proxy.kit import shipped
from proxy.mapping import loader, rules
from proxy.planning import search_filters
from proxy.planning.lucene import Condition

SHIPPED = loader.load(shipped("mappings"), "octopart").tables
LISTED = {"Yageo": ("621",), "Fluke": ("90",), "Twins": ("1", "2"), "A": ("3",), "B": ("4",)}
TABLES = structs.replace(SHIPPED, listed={"Brand": LISTED})
TI = "2239e3330e2df5fe"


def made(conditions: list[Any]) -> list[Condition]:
    """Conditions from data: field, values, and the ends of a range."""
    return [Condition(field, tuple(values), *ends) for field, values, *ends in conditions]


@cases.parametrize("conditions, variables")
def test_conditions_become_variables(conditions: list[Any], variables: object) -> None:
    assert search_filters.translate(TABLES, made(conditions)).variables == variables


@cases.parametrize("condition, reason")
def test_unsupported_filter_is_refused(condition: Any, reason: str) -> None:
    with pytest.raises(errors.BadRequest, match=reason):
        search_filters.translate(TABLES, made([condition]))


def test_pattern_matching_too_many_names_is_refused() -> None:
    makers = {f"Maker {number}": (str(number),) for number in range(1001)}
    many = structs.replace(SHIPPED, listed={"Brand": makers})
    with pytest.raises(errors.BadRequest, match=r"^Maker \*: at most 1000 names for a value with \*, not 1001$"):
        search_filters.translate(many, [Condition("brand.name", ("Maker *",))])
    found = search_filters.translate(many, [Condition("brand.name", ("Maker 1*",))])
    assert len(found.variables["filters"]["manufacturer_id"]) == 112


@cases.parametrize("conditions")
def test_unsatisfiable_filter_needs_no_request(conditions: list[Any]) -> None:
    assert search_filters.translate(TABLES, made(conditions)).finds_nothing


def test_unknown_value_is_dropped_from_alternatives() -> None:
    found = search_filters.translate(TABLES, [Condition("brand.uid", ("ffffffffffffffff", TI))])
    assert found.variables["filters"] == {"manufacturer_id": ["370"]}
    assert not found.finds_nothing


@pytest.mark.parametrize(
    "condition, wanted",
    [
        (Condition("brand.name", ("Nobody",)), "Brand"),
        (Condition("manufacturer.uid", ("94e351e9bd0a4724",)), "Brand"),
        (Condition("offers.seller.name", ("Sager",)), "Seller"),
        (Condition("category_uids", ("5c6a91606d4187ad",)), "Category"),
    ],
)
def test_name_beyond_the_table_requests_its_list(condition: Condition, wanted: str) -> None:
    with pytest.raises(rules.UnlistedError) as missing:
        search_filters.translate(SHIPPED, [condition])
    assert missing.value.args == (wanted,)


def test_unsatisfiable_filter_does_not_hide_other_errors() -> None:
    with pytest.raises(errors.BadRequest, match=r"cannot filter by 'no\.such'"):
        search_filters.translate(TABLES, [Condition("brand.uid", ("x",)), Condition("no.such", ("X",))])


@pytest.mark.parametrize(
    "field, one, other, both",
    [
        ("offers.seller.id", ("1", "2"), ("1", "2", "3"), ["1", "2"]),
        ("offers.seller.id", ("1", "2", "3"), ("2",), ["2"]),
        ("specs.voltage.value", ("1", "5"), ("5", "7"), ["5"]),
    ],
)
def test_two_filters_of_a_field_are_combined(
    field: str, one: tuple[str, ...], other: tuple[str, ...], both: list[str]
) -> None:
    found = search_filters.translate(TABLES, [Condition(field, one), Condition(field, other)])
    assert [*found.variables["filters"].values()] == [both]


@pytest.mark.parametrize(
    "field, one, other",
    [
        ("offers.seller.id", ("1",), ("2",)),
        ("offers.seller.id", ("1", "2"), ("2", "3")),  # somebody may offer it besides the one that both name
        ("specs.color.value", ("Blue",), ("Red",)),  # a part can have both
        ("specs.color.value", ("Blue", "Red"), ("Red", "Green")),
        ("specs.case_package.value", ("0603",), ("0603 (1608 Metric)",)),  # the service may take them for equal
    ],
)
def test_ambiguous_filters_of_a_field_are_refused(field: str, one: tuple[str, ...], other: tuple[str, ...]) -> None:
    with pytest.raises(errors.BadRequest, match=f"{field}: the service cannot ask for two filters on it at once"):
        search_filters.translate(TABLES, [Condition(field, one), Condition(field, other)])


def test_ranges_of_a_field_are_intersected() -> None:
    ranges = [("1", None), (None, "5"), ("-3", "1e3"), ("0.5", None)]
    conditions = [Condition("specs.voltage.value", (), low, high) for low, high in ranges]
    assert search_filters.translate(TABLES, conditions).variables["filters"] == {"voltage": ["(1.0__5.0)"]}


@pytest.mark.parametrize(
    "ranges, reason",
    [
        ([(None, None)], "a range needs an end"),
        ([("1", None), ("x", None)], "a range goes from number to number, not 'x'"),
    ],
)
def test_invalid_range_is_refused(ranges: list[tuple[str | None, str | None]], reason: str) -> None:
    conditions = [Condition("specs.voltage.value", (), low, high) for low, high in ranges]
    with pytest.raises(errors.BadRequest, match=re.escape(reason)):
        search_filters.translate(TABLES, conditions)


@given(st.text(max_size=12) | st.floats().map(str), st.none() | st.floats().map(str))
def test_sent_range_has_finite_numbers(low: str, high: str | None) -> None:
    try:
        found = search_filters.translate(TABLES, [Condition("specs.voltage.value", (), low, high)])
    except errors.BadRequest:
        return
    if found.finds_nothing:
        return
    ends = re.fullmatch(r"\((.*)__(.*)\)", found.variables["filters"]["voltage"][0])
    assert ends
    assert all(abs(float(end)) < float("inf") for end in ends.groups() if end)


@cases.parametrize("sortby, variables")
def test_supported_sort_orders_become_variables(sortby: str, variables: dict[str, str]) -> None:
    assert search_filters.sort_variables(TABLES, sortby) == variables


@cases.parametrize("sortby, reason")
def test_unsupported_sort_orders_are_refused(sortby: str, reason: str) -> None:
    with pytest.raises(errors.BadRequest, match=reason):
        search_filters.sort_variables(TABLES, sortby)
