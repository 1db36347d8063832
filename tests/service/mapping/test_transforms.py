"""Tests of transforms from upstream values to v3 values (contract v3-rest.md §3.3 to §3.5)."""

import datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy.mapping import loader, transforms


def price(quantity: int, amount: float, currency: str) -> SimpleNamespace:
    return SimpleNamespace(quantity=quantity, price=amount, currency=currency)


USD, EUR, NONE = price(1, 0.647, "USD"), price(1, 0.6, "EUR"), price(1, 1, "")


@pytest.mark.parametrize(
    "prices, table",
    [
        ([], {}),
        ([USD], {"USD": [[1, "0.64700"]]}),
        ([USD, EUR, price(10, 0.5, "USD")], {"USD": [[1, "0.64700"], [10, "0.50000"]], "EUR": [[1, "0.60000"]]}),
        ([NONE], {}),
        ([price(1, 1e-9, "USD"), price(2, 1234567.89123, "JPY")],
         {"USD": [[1, "0.00000"]], "JPY": [[2, "1234567.89123"]]}),
        ([price(3000, 7, "CNY")], {"CNY": [[3000, "7.00000"]]}),
    ],
)  # fmt: skip
def test_prices_are_tables_by_currency_with_five_decimals(prices: list[Any], table: dict[str, Any]) -> None:
    assert written(prices) == table


def written(prices: list[Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(transforms.prices_by_currency(prices)))


@cases.parametrize("time, written")
def test_times_are_utc_without_a_fraction(time: str, written: str) -> None:
    assert transforms.timestamp(time) == written


FIRST, LAST = datetime.datetime.fromisoformat("1970-01-02"), datetime.datetime.fromisoformat("2200-01-01")
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes)))


@given(st.datetimes(FIRST, LAST, timezones=zones))
def test_times_keep_their_second(moment: datetime.datetime) -> None:
    written = transforms.timestamp(moment.isoformat())
    assert datetime.datetime.strptime(written, "%Y-%m-%dT%H:%M:%S%z") == moment.replace(microsecond=0)


@pytest.mark.parametrize("time", ["", "yesterday", "2023-02-30T00:00:00.0Z", "22:13"])
def test_invalid_time_is_an_error(time: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        transforms.timestamp(time)


RANKS = [
    (True, 5, [USD]), (True, -2, [USD]), (True, 0, [USD]), (True, -1, [USD]), (True, 5, [EUR]), (True, 5, []),
    (False, 5, [USD]), (False, 0, [USD]), (False, 5, [EUR]), (False, 5, []),
]  # fmt: skip


def test_offers_are_sorted_as_in_v3() -> None:
    ranks = [transforms.offer_rank(authorized, stock, prices, "USD") for authorized, stock, prices in RANKS]
    assert ranks == [0, 0, 1, 1, 2, 3, 4, 5, 6, 7]


@cases.parametrize("function, argument, value")
def test_transform_produces_its_value(function: str, argument: Any, value: Any) -> None:
    assert transforms.TRANSFORMS[function](argument) == value


@cases.parametrize("converted, currency, converted_to, wanted, expected")
def test_converted_price_is_none_without_a_rate(
    converted: float, currency: str, converted_to: str, wanted: str, expected: float | None
) -> None:
    assert transforms.converted_price(1.5, currency, converted, converted_to, wanted) == expected


def test_free_price_is_free_in_every_currency() -> None:
    assert transforms.converted_price(0.0, "USD", 0.0, "EUR", "EUR") == 0.0


def test_lifecycle_status_has_no_age_and_package_is_as_displayed() -> None:
    specs = [
        spec("numberofpins", "14", "14 pins"),
        spec("lifecyclestatus", "Production", "Production (Last Updated: 6 months ago)"),
        spec("case_package", "SOIC", "SOIC 14"),
    ]
    assert (transforms.lifecycle_status(specs), transforms.case_package(specs)) == ("Production", "SOIC 14")
    assert (transforms.lifecycle_status(specs[:1]), transforms.case_package(specs[:1])) == (None, None)
    assert transforms.lifecycle_status([spec("lifecyclestatus", "", "NRND")]) == "NRND"


def spec(shortname: str, value: str, shown: str) -> SimpleNamespace:
    return SimpleNamespace(attribute=SimpleNamespace(shortname=shortname), value=value, displayValue=shown)


def test_every_transform_is_used_by_a_mapping_file(mappings: loader.Mappings) -> None:
    objects = [each for view in (mappings, *mappings.views.values()) for each in view.rules.values()]
    rules = [rule for rules in objects for rule in rules.fields.values()]
    feeds = [feed for rule in rules for feed in (rule, rule.only, rule.order, rule.key) if feed is not None]
    assert {feed.through for feed in feeds} - {None} == set(mappings.transforms)
