"""Tests of the rules over offers: by example, and as properties of any offers."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy.tools.sheet import offers
from proxy.tools.sheet.offers import Offer, OfferRules, Price


def offer(seller: str = "Digi-Key", *breaks: tuple[int, str], **more: Any) -> Offer:
    """An offer in USD with prices by quantity."""
    prices = tuple(Price(quantity, Decimal(price), "USD") for quantity, price in breaks or ((1, "1"),))
    fields: dict[str, Any] = {"seller_id": seller, "seller": seller, "authorized": True, "prices": prices} | more
    return Offer(**fields)


def _bought(purchase: offers.Purchase | None) -> tuple[Offer, int, Decimal] | None:
    """What is bought, without the other prices."""
    return None if purchase is None else purchase[:3]


def test_price_is_that_of_the_quantity_that_can_be_bought() -> None:
    reel = offer("A", (1, "1.00"), (100, "0.50"), (1000, "0.10"), moq=100, order_multiple=100)
    assert _bought(offers.purchase(reel, 1, "USD")) == (reel, 100, Decimal("0.50"))
    assert _bought(offers.purchase(reel, 101, "USD")) == (reel, 200, Decimal("0.50"))
    assert _bought(offers.purchase(reel, 1000, "USD")) == (reel, 1000, Decimal("0.10"))
    assert _bought(offers.purchase(offer("A", (10, "1")), 3, "USD")) == (offer("A", (10, "1")), 10, Decimal(1))


def test_line_total_decides_and_not_the_unit_price() -> None:
    reel = offer("Reel", (1, "0.10"), moq=5000)
    cut = offer("Cut", (1, "0.30"))
    best = offers.best([reel, cut], 100, "USD")
    assert best is not None
    assert (best.offer.seller, best.unit_price, best.total) == ("Cut", Decimal("0.30"), Decimal("30.00"))


def test_equal_totals_are_decided_by_stock_then_name() -> None:
    few, many, other = offer("B", stock=5), offer("C", stock=9), offer("A", stock=9)
    assert offers.best([few, many], 1, "USD") == offers.purchase(many, 1, "USD")
    assert offers.best([few, many, other], 1, "USD") == offers.purchase(other, 1, "USD")


@pytest.mark.parametrize(
    "name, matches",
    [("digikey", True), ("Digi-Key", True), ("KEY", True), ("459", True), (" 459 ", True), ("45", False), ("", False)],
)
def test_distributors_are_named_by_a_part_of_the_name_or_by_id(name: str, matches: bool) -> None:
    assert offers.is_named(name, "459", "Digi-Key Electronics") is matches


def test_rules_exclude_offers() -> None:
    cut, reel, unknown = offer("Mouser", packaging="Cut Tape"), offer("Zoro", packaging="Tape & Reel"), offer("Newark")
    everyone = [cut, reel, unknown]
    assert offers.allowed(everyone, OfferRules()) == everyone
    assert offers.allowed(everyone, OfferRules(distributors=("newark", "zoro"))) == [reel, unknown]
    assert offers.allowed(everyone, OfferRules(packagings=("cut tape", "reel"))) == [cut, reel]
    assert offers.allowed(everyone, OfferRules(packagings=("Cut-Tape",))) == [cut]
    assert offers.allowed(everyone, OfferRules(("Mouser",), ("reel",))) == []


@pytest.mark.parametrize("sku", ["470-1-ND", "470-1-nd", " 470-1-ND ", "4701ND"])
def test_offer_of_the_list_s_number_counts_alone(sku: str) -> None:
    own, other = offer("Digi-Key", (1, "9"), sku="470-1-ND"), offer("Mouser", sku="595-X")
    assert offers.allowed([own, other], OfferRules(), [sku]) == [own]
    assert offers.allowed([own, other], OfferRules(any_offer=True), [sku]) == [own, other]
    assert offers.allowed([own, other], OfferRules(), ["X-1"]) == [own, other]
    assert offers.allowed([own, other], OfferRules(distributors=("Mouser",)), [sku]) == [other]


@pytest.mark.parametrize("packaging", ["Custom Reel", "Digi-Reel®", "MouseReel", "Digi-Reel"])
def test_reel_with_a_fee_is_best_only_if_it_is_cheaper_in_total(packaging: str) -> None:
    cut, wound = offer("A", (1, "0.10"), packaging="Cut Tape"), offer("B", (1, "0.05"), packaging=packaging)
    best = {quantity: offers.best([cut, wound], quantity, "USD") for quantity in (100, 139, 141)}
    assert {quantity: bought and bought.offer.seller for quantity, bought in best.items()} == {
        100: "A",
        139: "A",
        141: "B",
    }
    assert best[141] is not None
    assert best[141].total == Decimal("7") + Decimal("0.05") * 141


def test_fee_is_in_the_currency_of_the_query() -> None:
    wound = offer("B", prices=(Price(1, Decimal(2), "USD", Decimal(1)),), packaging="Custom Reel")
    bought = offers.purchase(wound, 10, "EUR")
    assert bought is not None
    assert (bought.fee, bought.total) == (Decimal("3.5"), Decimal("13.5"))


@pytest.mark.parametrize("other", ["1.5smc68ca", "15SMC68CA", "1.5 SMC-68/CA", "1.5SMC6.8CA", "1.5_SMC\u201368CA"])
def test_numbers_are_the_same_but_for_case_blanks_and_separators(other: str) -> None:
    assert offers.bare("1.5SMC68CA") == offers.bare(other)
    assert offers.bare("1.5SMC68CA") != offers.bare(f"{other}+")


def test_converted_price_is_used_and_a_missing_rate_excludes_the_offer() -> None:
    converted = Price(1, Decimal("2"), "USD", Decimal("1.8"))
    unknown = Price(1, Decimal("9"), "XAU")
    offered = offer("A", prices=(unknown, converted))
    assert _bought(offers.purchase(offered, 1, "EUR")) == (offered, 1, Decimal("1.8"))
    assert offers.best([offer("B", prices=(unknown,))], 1, "EUR") is None


@cases.parametrize("levels, expected")
def test_stock_adds_distributors_and_not_packagings(levels: list[tuple[str, int | None]], expected: Any) -> None:
    assert offers.stock([offer(seller, stock=level) for seller, level in levels]) == expected


PRICES = st.lists(
    st.tuples(st.integers(1, 500), st.decimals("0.00001", 100, places=5)).map(lambda pair: Price(*pair, "USD")),
    max_size=4,
)
OFFERS = st.lists(
    st.builds(
        Offer,
        seller_id=st.sampled_from(["1", "2", "3"]),
        seller=st.sampled_from(["Digi-Key", "Mouser", "Zoro"]),
        authorized=st.booleans(),
        sku=st.text("AB", max_size=3),
        stock=st.none() | st.integers(-4, 1000),
        moq=st.none() | st.integers(0, 300),
        order_multiple=st.none() | st.integers(0, 50),
        prices=PRICES.map(tuple),
    ),
    max_size=6,
)


@given(OFFERS, st.integers(1, 1000))
def test_no_offer_is_better_than_the_best(listed: list[Offer], quantity: int) -> None:
    best = offers.best(listed, quantity, "USD")
    purchases = [offers.purchase(each, quantity, "USD") for each in listed]
    totals = [each.total for each in purchases if each is not None]
    assert (best is None) == (not totals)
    assert best is None or (best.total == min(totals) and best.offer in listed)


@given(OFFERS, st.integers(1, 1000))
def test_purchase_respects_every_limit_of_the_offer(listed: list[Offer], quantity: int) -> None:
    for purchase in filter(None, (offers.purchase(each, quantity, "USD") for each in listed)):
        own, multiple = purchase.offer, purchase.offer.order_multiple or 1
        least = max(quantity, own.moq or 1, *(price.quantity for price in own.prices), 1)
        assert purchase.quantity >= max(quantity, own.moq or 1)
        assert purchase.quantity % multiple == 0
        assert purchase.quantity - multiple < least
