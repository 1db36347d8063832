"""The pure rules of the catalog: part numbers, company names, units, rates, order codes."""

from typing import Any

import pytest
from support import cases

from nexar_sandbox.catalog import listings, matching, offers, records, units


@cases.parametrize("text,same")
def test_normalization_keeps_letters_and_digits_only(text: str, same: str) -> None:
    assert matching.normalize(text) == same


def _company(id_: Any, name: Any, *aliases: Any) -> Any:
    return records.Company(
        id_, name, aliases, None, None, f"/{id_}", True, False, False, False, frozenset({"manufacturer"})
    )


NAMES = matching.CompanyNameIndex(
    [
        _company("370", "Texas Instruments", "TI", "Burr Brown"),
        _company("510", "Lite-On"),
        _company("30", "Vishay"),
        _company("278", "onsemi", "ON Semiconductor"),
        _company("3518", "Memory Protection Devices", "MPD"),
        _company("355", "STMicroelectronics"),
    ]
)


@pytest.mark.parametrize(
    "text,ids",
    [
        ("texas INSTRUMENTS", {"370"}),
        ("TI", {"370"}),
        ("burr-brown", {"370"}),
        ("Texas Instruments Inc.", {"370"}),
        ("Texas", {"370"}),
        ("Vishay Lite-On", {"510"}),
        ("Vishay Dale", {"30"}),
        ("MPD", {"3518"}),
        ("ON Semiconductor", {"278"}),
        ("STMicro", {"355"}),
        ("Texas Instrumentos", set()),
        ("Semiconductor", set()),
        ("on", set()),
        ("", set()),
    ],
)
def test_company_names_are_matched_loosely_within_limits(text: str, ids: Any) -> None:
    assert NAMES.find(text) == ids


@cases.parametrize("number,symbol,display")
def test_numbers_are_displayed_with_the_best_prefix(number: float, symbol: str, display: str) -> None:
    shown = units.displayed(number, symbol)
    assert shown.display == display
    assert f"{shown.value} {shown.units}".strip() == display


@pytest.mark.parametrize("number,text", [(1e-7, "0.0000001"), (10000.0, "10000"), (2.5, "2.5"), (-40, "-40")])
def test_si_values_have_no_exponent(number: float, text: str) -> None:
    assert units.plain(number) == text


def test_a_currency_without_a_rate_converts_to_nothing() -> None:
    assert (
        units.exchange_rate("", "USD"),
        units.exchange_rate("USD", "XTS"),
        units.exchange_rate("XTS", "XTS"),
    ) == (None, None, None)
    assert units.exchange_rate("JPY", "JPY") == 1.0


def test_sellers_have_their_own_order_code_formats() -> None:
    def code(seller: str) -> str:
        company = records.Company(seller, "A seller")
        listing = listings.CatalogListing(0, company, 1, 1.0, 0.1, ((1,),), False)
        return offers.order_codes(9336958, 370, "SN74S74N", listings.OfferTerms(), listing)[0]

    codes = [code(seller) for seller in ("459", "2401", "2402", "11779", "8706")]
    assert codes == ["470-9336958-1-ND", "470-SN74S74N", "35X6958", "C9336958", "SN74S74N"]
