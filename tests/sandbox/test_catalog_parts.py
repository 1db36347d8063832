"""Parts of the catalog: specs, documents, generated offers as uneven as real ones, and figures over several sellers."""

import itertools
from typing import Any

import pytest
from support import cases

from nexar_sandbox.catalog import listings, offers, pricing, records, units


@pytest.mark.parametrize("id_", ["", "0", "abc", "99", "١٠١", "1" * 40, "-101", "101.0", "\ud800"])
def test_an_unknown_id_or_uid_is_no_part(small: Any, id_: str) -> None:
    assert small.part(id_) is None
    assert small.part_by_uid(id_) is None


def test_specs_have_a_bare_value_an_si_value_and_a_display_value(small: Any) -> None:
    (farads, _) = small.part("108").specs
    assert (farads.value, farads.si_value, farads.display_value, farads.units) == (
        "100",
        "0.0000001",
        "100 nF",
        "nF",
    )
    (status,) = small.part("101").specs
    assert (status.value, status.si_value) == ("Production", "Production")
    assert status.display_value.startswith("Production (Last Updated: ")


def test_documents_are_grouped_and_may_be_missing(small: Any) -> None:
    part = small.part("101")
    assert [one.name for one in part.document_collections] == ["Datasheets", "Compliance Documents"]
    (sheet,) = part.document_collections[0].documents
    assert sheet.url == "http://datasheet.octopart.com/SN74S74N-Texas-Instruments-datasheet-101.pdf"
    assert [one.name for one in part.document_collections[1].documents] == ["Rohs Statement"]
    assert small.part("104").document_collections == ()


def test_the_slug_is_made_of_number_maker_and_id(small: Any) -> None:
    assert small.part("101").slug == "/sn74s74n-texas+instruments-101"


def _matched(catalog: Any, **query: Any) -> Any:
    hits = catalog.match(records.MatchQuery(**query), records.SearchConditions())
    return [(part.mpn, part.manufacturer.name) for part in map(catalog.part, hits.ids)]


def test_shipped_catalog_matches_the_recorded_cases(catalog: Any) -> None:
    assert len(_matched(catalog, mpn="SN74S74N")) == 4
    assert _matched(catalog, mpn="SN74S74N", manufacturer="TI") == [("SN74S74N", "Texas Instruments")]
    assert _matched(catalog, sku="67K1122", seller="Newark") == [("SN74S74N", "Texas Instruments")]
    assert {maker for _, maker in _matched(catalog, mpn="MBR1020VL")} == {"onsemi", "Panjit"}
    assert {mpn for mpn, _ in _matched(catalog, mpn="ATMEGA328P-PU")} == {"ATMEGA328P-PU", "ATMEGA328PPU"}
    assert {mpn for mpn, _ in _matched(catalog, mpn="1.5SMC68CA")} == {"1.5SMC68CA", "1.5SMC6.8CA"}
    assert catalog.part_by_uid("103cdb613d20cffb").v3uid == "bd4d768f82c5628a"


@cases.parametrize("mpn,spelling,maker")
def test_shipped_makers_are_found_under_recorded_spellings(catalog: Any, mpn: str, spelling: str, maker: str) -> None:
    assert _matched(catalog, mpn=mpn, manufacturer=spelling) == [(mpn, maker)]


EVERYTHING = records.SearchConditions()


@pytest.fixture(scope="module")
def listed(catalog: Any) -> Any:
    """Every (seller, offer) of every part."""
    return [
        (seller, offer) for part in catalog.parts() for seller in catalog.sellers_of(part) for offer in seller.offers
    ]


def _sellers(small: Any, id_: str) -> Any:
    return {one.company.name: one for one in small.sellers_of(small.part(id_))}


def test_price_breaks_ascend_and_prices_fall(listed: Any) -> None:
    for _, offer in listed:
        for currency in {step.currency for step in offer.prices}:
            steps = [step for step in offer.prices if step.currency == currency]
            assert 5 <= len(steps) <= 10
            assert [step.quantity for step in steps] == sorted({step.quantity for step in steps})
            assert all(later.price <= step.price for step, later in itertools.pairwise(steps))
            assert all(step.price > 0 and step.price == round(step.price, 5) for step in steps)


def test_order_codes_and_stock_codes_of_the_source_file_are_used(small: Any) -> None:
    assert _sellers(small, "101")["Newark"].offers[0].sku == "67K1122"
    odd = _sellers(small, "113")
    assert {offer.inventory_level for offer in odd["Digi-Key"].offers} == {-2}
    assert {offer.inventory_level for offer in odd["Farnell"].offers} == {-4}
    assert odd["Farnell"].is_rfq


def test_variants_are_priced_in_the_countrys_currency(small: Any) -> None:
    german = [one for part in small.parts() for one in small.sellers_of(part, "DE") if one.company.id == "459"]
    assert {one.offers[0].prices[0].currency for one in german if one.offers[0].prices} == {"EUR"}


def test_parts_may_have_no_offers_only_brokers_or_no_stock(small: Any) -> None:
    assert _sellers(small, "112") == {}
    assert [seller.is_broker for seller in _sellers(small, "111").values()] == [True]
    empty = _sellers(small, "110").values()
    assert empty
    assert all(offer.inventory_level == 0 for seller in empty for offer in seller.offers)


def test_authorized_sellers_come_first_and_brokers_are_never_authorized(catalog: Any) -> None:
    for id_ in catalog.search("", EVERYTHING).ids[:60]:
        authorized = [seller.is_authorized for seller in catalog.sellers_of(catalog.part(id_))]
        assert authorized == sorted(authorized, reverse=True)
        assert not any(one.is_broker and one.is_authorized for one in catalog.sellers_of(catalog.part(id_)))


COMPANY = records.Company("1", "S", (), None, None, "/s", True, False, False, False, frozenset({"seller"}))


def _offer(stock: int = 0, *breaks: Any) -> Any:
    prices = tuple(records.PriceBreak(*one) for one in breaks)
    return records.Offer("1", "X", None, stock, None, None, prices, "2026-11-01T00:00:00Z", *[None] * 5)


def _seller(*offers: Any, broker: bool = False) -> Any:
    return records.SellerOffers(COMPANY, None, not broker, broker, False, (), offers)


def test_the_median_price_is_for_a_thousand_pieces_in_dollars() -> None:
    sellers = [
        _seller(_offer(0, (1, 9.0, "USD"), (1000, 2.0, "USD"), (5000, 1.0, "USD"))),
        _seller(_offer(0, (1, 3.0, "USD"))),
        _seller(_offer(0, (2000, 0.5, "USD"))),
    ]
    assert pricing.median_price(sellers) == records.PriceBreak(1000, 2.5, "USD")


def test_outliers_are_dropped_from_the_median_but_not_from_the_average() -> None:
    sellers = [_seller(_offer(0, (1000, price, "USD"))) for price in (1.0, 1.2, 1.4, 50.0)]
    median = pricing.median_price(sellers)
    assert median is not None
    assert median.price == 1.2
    assert pricing.mean(pricing.prices(sellers)) == pytest.approx(13.4)


def test_other_currencies_are_converted_and_unknown_ones_left_out() -> None:
    sellers = [_seller(_offer(0, (1000, 0.849985, "EUR"))), _seller(_offer(0, (1000, 7.0, "")))]
    assert pricing.prices(sellers) == [pytest.approx(1.0)]


def test_brokers_and_unpriced_sellers_do_not_affect_the_price() -> None:
    assert pricing.median_price([_seller(_offer(0, (1000, 1.0, "USD")), broker=True), _seller(_offer(5))]) is None
    assert pricing.mean([]) is None


def test_of_a_sellers_packagings_the_cheapest_price_and_the_largest_stock_count() -> None:
    seller = _seller(_offer(40, (1000, 2.0, "USD")), _offer(50, (1000, 1.5, "USD")))
    assert pricing.prices([seller]) == [1.5]
    assert pricing.stock(seller) == 50


def test_brokers_count_only_without_other_stock() -> None:
    plain, broker = _seller(_offer(30)), _seller(_offer(500), broker=True)
    assert (pricing.total_avail([plain, broker]), pricing.avg_avail([plain, broker])) == (30, 30.0)
    empty = _seller(_offer(-2))
    assert (pricing.total_avail([empty, broker]), pricing.avg_avail([empty, broker])) == (500, 500.0)


def test_the_average_stock_is_over_all_sellers_even_those_without() -> None:
    assert pricing.avg_avail([_seller(_offer(30)), _seller(_offer(0)), _seller(_offer(-4))]) == 10.0
    assert (pricing.total_avail([]), pricing.avg_avail([])) == (0, 0.0)


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
