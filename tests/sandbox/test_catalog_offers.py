"""Generated offers: as uneven as real ones."""

import itertools
from typing import Any

import pytest
from support import small_catalog

from nexar_sandbox.catalog import pricing, records, store

EVERYTHING = records.SearchConditions()


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return small_catalog.opened(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def shipped() -> Any:
    return store.open_catalog()


@pytest.fixture(scope="module")
def listed(shipped: Any) -> Any:
    """Every (seller, offer) of every part."""
    return [
        (seller, offer) for part in shipped.parts() for seller in shipped.sellers_of(part) for offer in seller.offers
    ]


def _sellers(catalog: Any, id_: Any, country: str = "US") -> Any:
    return {one.company.name: one for one in catalog.sellers_of(catalog.part(id_), country)}


def test_price_breaks_ascend_and_prices_fall(listed: Any) -> None:
    for _, offer in listed:
        for currency in {step.currency for step in offer.prices}:
            steps = [step for step in offer.prices if step.currency == currency]
            assert 5 <= len(steps) <= 10
            assert [step.quantity for step in steps] == sorted({step.quantity for step in steps})
            assert all(later.price <= step.price for step, later in itertools.pairwise(steps))
            assert all(step.price > 0 and step.price == round(step.price, 5) for step in steps)


def test_a_country_with_a_variant_gets_its_region_and_currency(catalog: Any) -> None:
    german, american = (_sellers(catalog, "101", country) for country in ("DE", "US"))
    assert german.keys() == american.keys()
    assert {offer.eligible_region for offer in german["Digi-Key"].offers} == {"DE"}
    assert {offer.eligible_region for offer in german["Mouser"].offers} == {None}
    for name, seller in german.items():
        others = american[name].offers
        assert [(one.id, one.sku, one.inventory_level) for one in seller.offers] == [
            (one.id, one.sku, one.inventory_level) for one in others
        ]


def test_variants_are_priced_in_the_countrys_currency(catalog: Any) -> None:
    parts = [catalog.part(id_) for id_ in catalog.search("", EVERYTHING).ids]
    german = [one for part in parts for one in catalog.sellers_of(part, "DE") if one.company.id == "459"]
    assert {one.offers[0].prices[0].currency for one in german if one.offers[0].prices} == {"EUR"}


def test_order_codes_and_stock_codes_of_the_source_file_are_used(catalog: Any) -> None:
    assert _sellers(catalog, "101")["Newark"].offers[0].sku == "67K1122"
    odd = _sellers(catalog, "113")
    assert {offer.inventory_level for offer in odd["Digi-Key"].offers} == {-2}
    assert {offer.inventory_level for offer in odd["Farnell"].offers} == {-4}
    assert odd["Farnell"].is_rfq


def test_parts_may_have_no_offers_only_brokers_or_no_stock(catalog: Any) -> None:
    assert _sellers(catalog, "112") == {}
    assert [seller.is_broker for seller in _sellers(catalog, "111").values()] == [True]
    empty = _sellers(catalog, "110").values()
    assert empty
    assert all(offer.inventory_level == 0 for seller in empty for offer in seller.offers)


def test_authorized_sellers_come_first_and_brokers_are_never_authorized(shipped: Any) -> None:
    for id_ in shipped.search("", EVERYTHING).ids[:60]:
        authorized = [seller.is_authorized for seller in shipped.sellers_of(shipped.part(id_))]
        assert authorized == sorted(authorized, reverse=True)
        assert not any(one.is_broker and one.is_authorized for one in shipped.sellers_of(shipped.part(id_)))


def test_sorting_by_price_agrees_with_the_prices_shown(shipped: Any) -> None:
    hits = shipped.search("", EVERYTHING, "median_price_1000", descending=False)
    medians = [pricing.median_price(shipped.sellers_of(shipped.part(id_))) for id_ in hits.ids]
    shown = [one.price for one in medians if one is not None]
    assert len(shown) > 400
    assert shown == sorted(shown)
    assert medians[len(shown) :] == [None] * (len(medians) - len(shown))
    hits = shipped.search("", EVERYTHING, "avg_price", descending=True)
    means = [pricing.mean(pricing.prices(shipped.sellers_of(shipped.part(id_)))) for id_ in hits.ids]
    assert [one for one in means if one is not None] == sorted(filter(None, means), reverse=True)
