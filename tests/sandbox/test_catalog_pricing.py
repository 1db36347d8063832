"""Figures over several sellers: median price, average, stock."""

from typing import Any

import pytest

from nexar_sandbox.catalog import pricing, records

COMPANY = records.Company("1", "S", (), None, None, "/s", True, False, False, False, frozenset({"seller"}))


def _offer(stock: int = 0, *breaks: Any) -> Any:
    prices = tuple(records.PriceBreak(*one) for one in breaks)
    return records.Offer("1", "X", None, stock, None, None, prices, "2026-11-01T00:00:00Z", *[None] * 5)


def _seller(*offers: Any, broker: bool = False) -> Any:
    return records.SellerOffers(COMPANY, None, not broker, broker, False, (), offers)


def _priced(*prices: Any) -> Any:
    return [_seller(_offer(0, (1000, price, "USD"))) for price in prices]


def test_the_median_price_is_for_a_thousand_pieces_in_dollars() -> None:
    sellers = [
        _seller(_offer(0, (1, 9.0, "USD"), (1000, 2.0, "USD"), (5000, 1.0, "USD"))),
        _seller(_offer(0, (1, 3.0, "USD"))),
        _seller(_offer(0, (2000, 0.5, "USD"))),
    ]
    assert pricing.median_price(sellers) == records.PriceBreak(1000, 2.5, "USD")


def test_outliers_are_dropped_from_the_median_but_not_from_the_average() -> None:
    sellers = _priced(1.0, 1.2, 1.4, 50.0)
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
