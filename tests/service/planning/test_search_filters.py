"""Tests of v3's filters and sort orders as upstream arguments, with the real tables (contract graphql.md §2.4)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import errors
from proxy.kit import shipped
from proxy.mapping import loader, tables
from proxy.planning import search_filters
from proxy.planning.lucene import Condition

SHIPPED = loader.load(shipped.path("mappings"), "octopart").tables
TABLES = SHIPPED.with_list(
    "Brand", {"Yageo": ("621",), "Fluke": ("90",), "Twins": ("1", "2"), "A": ("3",), "B": ("4",)}
)
TI = "2239e3330e2df5fe"


@pytest.mark.parametrize(
    "conditions, variables",
    [
        ([], {}),
        ([Condition("brand.name", ("AMD", "Yageo"))], {"filters": {"manufacturer_id": ["7", "621"]}}),
        ([Condition("manufacturer.name", ("Twins", "twins", "T"))], {"filters": {"manufacturer_id": ["1", "2"]}}),
        ([Condition("brand.uid", (TI,))], {"filters": {"manufacturer_id": ["370"]}}),
        ([Condition("brand.uid", ("b4a2d0000000026d",))], {"filters": {"manufacturer_id": ["621"]}}),
        ([Condition("brand.uid", ("78cfb9c55526af08",))], {"filters": {"manufacturer_id": ["90"]}}),
        ([Condition("manufacturer.uid", ("40f985f368ed933e",))], {"filters": {"manufacturer_id": ["370"]}}),
        ([Condition("brand.name", ("Y*o", "Fluke"))], {"filters": {"manufacturer_id": ["621", "90"]}}),
        ([Condition("manufacturer.name", ("T*s", "*win*"))], {"filters": {"manufacturer_id": ["1", "2"]}}),
        ([Condition("offers.seller.id", ("459",))], {"filters": {"distributor_id": ["459"]}}),
        ([Condition("offers.seller.name", ("Newark",))], {"filters": {"distributor_id": ["2402"]}}),
        ([Condition("category_uids", ("8a1e4714bb3951d9",))], {"filters": {"category_id": ["4161"]}}),
        ([Condition("specs.pin_count.value", ("14",))], {"filters": {"numberofpins": ["14"]}}),
        ([Condition("specs.tolerance.value", ("±5%", "10%"))], {"filters": {"tolerance": ["5", "10"]}}),
        ([Condition("specs.tolerance.value", ("5", "5.0", "±5.0%"))], {"filters": {"tolerance": ["5"]}}),
        (
            [Condition("specs.tolerance.value", ("±1%", "5%")), Condition("specs.tolerance.value", (), "±2%", None)],
            {"filters": {"tolerance": ["5"]}},
        ),
        (
            [Condition("specs.operating_temperature.min_value", (), None, "-55")],
            {"filters": {"minoperatingtemperature": ["(__-55.0)"]}},
        ),
        (
            [Condition("specs.supply_voltage_dc.max_value", ("5",))],
            {"filters": {"maxsupplyvoltage": ["5"]}},
        ),
        (
            [Condition("specs.resistance_tolerance.value", ("±5%", "10%"))],
            {"filters": {"tolerance": ["5", "10"], "resistance": ["(0.0__)"]}},
        ),
        ([Condition("specs.voltage.value", ("1", "5", "7"))] * 2, {"filters": {"voltage": ["1", "5", "7"]}}),
        (
            [Condition("specs.voltage.value", ("1", "5", "7")), Condition("specs.voltage.value", (), "2", "5")],
            {"filters": {"voltage": ["5"]}},
        ),
        ([Condition("specs.voltage.value", (), "5", "16")], {"filters": {"voltage": ["(5.0__16.0)"]}}),
        ([Condition("specs.voltage.value", (), None, "1e-7")], {"filters": {"voltage": ["(__1e-07)"]}}),
        ([Condition("specs.voltage.value", (), "-5", None)], {"filters": {"voltage": ["(-5.0__)"]}}),
        ([Condition("avg_avail", (), "1", None)], {"inStockOnly": True}),
        ([Condition("avg_avail", ()), Condition("avg_avail", (), "1", None)], {"inStockOnly": True}),
        ([Condition("mpn", ("*",)), Condition("brand.name", ("A", "*"))], {}),
        ([Condition("brand.name", ()), Condition("brand.name", ("A",))], {"filters": {"manufacturer_id": ["3"]}}),
        (
            [Condition("brand.name", ("A", "B")), Condition("manufacturer.name", ("B", "C"))],
            {"filters": {"manufacturer_id": ["4"]}},
        ),
        (
            [Condition("brand.name", ("A",)), Condition("avg_avail", (), "1", None)],
            {"filters": {"manufacturer_id": ["3"]}, "inStockOnly": True},
        ),
    ],
)
def test_conditions_become_variables(conditions: list[Condition], variables: object) -> None:
    assert search_filters.translate(TABLES, conditions).variables() == variables


@pytest.mark.parametrize(
    "condition, reason",
    [
        (
            Condition("mpn", ("X",)),
            "cannot filter by 'mpn'; it can by .*, avg_avail, mpn and specs.<key>.value",
        ),
        (Condition("avg_price", (), "1", "2"), "cannot filter by 'avg_price'"),
        (Condition("no.such", ("X",)), "cannot filter by 'no.such'"),
        (Condition("specs.voltage", ("X",)), "cannot filter by 'specs.voltage'"),
        (Condition("specs.no_such_key.value", ("x",)), "the service knows no spec 'no_such_key'"),
        (Condition("specs.voltage.value", ("(1__5)",)), r"is no value; a range is written as \[1 TO 5\]"),
        (Condition("brand.name", (), "A", "C"), "brand.name has no ranges"),
        (Condition("brand.uid", ("22*",)), "no wildcards in filters but those of names"),
        (Condition("specs.voltage.value", ("*",)), "cannot ask if a value exists"),
        (Condition("offers.seller.name", ("*",)), "no wildcards"),  # some parts have no seller
        (Condition("category_uids", ()), "category_uids has no ranges"),
        (Condition("specs.voltage.value", (), "low", None), "a range goes from number to number, not 'low'"),
        (Condition("specs.voltage.value", (), "nan", None), "not 'nan'"),
        (Condition("specs.voltage.value", (), "1", "inf"), "not 'inf'"),
        (Condition("specs.voltage.value", (), "1e999", None), "not '1e999'"),
        (Condition("avg_avail", (), "5", None), r"only be requested as \[1 TO \*\]"),
        (Condition("avg_avail", (), "1", "5"), r"only be requested as \[1 TO \*\]"),
        (Condition("avg_avail", ("1",)), r"only be requested as \[1 TO \*\]"),
    ],
)
def test_unsupported_filter_is_refused(condition: Condition, reason: str) -> None:
    with pytest.raises(errors.BadRequest, match=reason):
        search_filters.translate(TABLES, [condition])


def test_pattern_matching_too_many_names_is_refused() -> None:
    many = SHIPPED.with_list("Brand", {f"Maker {number}": (str(number),) for number in range(1001)})
    with pytest.raises(errors.BadRequest, match=r"^Maker \*: at most 1000 names for a value with \*, not 1001$"):
        search_filters.translate(many, [Condition("brand.name", ("Maker *",))])
    assert (
        len(search_filters.translate(many, [Condition("brand.name", ("Maker 1*",))]).filters["manufacturer_id"]) == 112
    )


@pytest.mark.parametrize(
    "conditions",
    [
        [Condition("brand.uid", ("ffffffffffffffff",))],
        [Condition("offers.seller.uid", (TI,))],
        [Condition("brand.name", ("TI", "texas instruments", "yageo", ""))],
        [Condition("brand.name", ("A",)), Condition("brand.name", ("B",))],
        [Condition("category_uids", ("x", "ffffffffffffffff"))],
        [Condition("offers.seller.id", ("Digi-Key", "0459", "-1", ""))],
        [Condition("brand.uid", (TI,)), Condition("manufacturer.uid", ("4de988e364889e2e",))],
        [Condition("specs.voltage.value", (), "10", "1")],
        [Condition("specs.voltage.value", (), "1", "2"), Condition("specs.voltage.value", (), "3", "4")],
        [Condition("specs.voltage.value", ("1", "5")), Condition("specs.voltage.value", (), "2", "4")],
        [Condition("brand.uid", ("x",)), Condition("brand.uid", (TI,)), Condition("avg_avail", (), "1", None)],
    ],
)
def test_unsatisfiable_filter_needs_no_request(conditions: list[Condition]) -> None:
    assert search_filters.translate(TABLES, conditions).finds_nothing


def test_unknown_value_is_dropped_from_alternatives() -> None:
    found = search_filters.translate(TABLES, [Condition("brand.uid", ("ffffffffffffffff", TI))])
    assert found.filters == {"manufacturer_id": ["370"]}
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
    with pytest.raises(tables.UnlistedError) as missing:
        search_filters.translate(SHIPPED, [condition])
    assert missing.value.name == wanted


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
    [values] = search_filters.translate(TABLES, [Condition(field, one), Condition(field, other)]).filters.values()
    assert values == both


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
    assert search_filters.translate(TABLES, conditions).filters == {"voltage": ["(1.0__5.0)"]}


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
    ends = re.fullmatch(r"\((.*)__(.*)\)", found.filters["voltage"][0])
    assert ends
    assert all(abs(float(end)) < float("inf") for end in ends.groups() if end)


@pytest.mark.parametrize(
    "sortby, variables",
    [
        ("score desc", {}),
        ("avg_price asc", {"sort": "avg_price", "sortDir": "asc"}),
        ("avg_price", {"sort": "avg_price", "sortDir": "asc"}),
        ("avg_price DESC", {"sort": "avg_price", "sortDir": "desc"}),
        ("brand.name asc", {"sort": "manufacturer.displayname", "sortDir": "asc"}),
        ("specs.pin_count.value desc", {"sort": "numberofpins", "sortDir": "desc"}),
    ],
)
def test_supported_sort_orders_become_variables(sortby: str, variables: dict[str, str]) -> None:
    assert search_filters.sort_variables(TABLES, sortby) == variables


@pytest.mark.parametrize(
    "sortby, reason",
    [
        ("score asc", "cannot sort by 'score'; it can by score desc, brand.name"),
        ("offers.seller.name asc", "cannot sort by 'offers.seller.name'"),
        ("avg_price up", "sortby must be like"),
    ],
)
def test_unsupported_sort_orders_are_refused(sortby: str, reason: str) -> None:
    with pytest.raises(errors.BadRequest, match=reason):
        search_filters.sort_variables(TABLES, sortby)
