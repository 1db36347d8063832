"""Figures over what several sellers list: median price, average price, stock in all.

Pure functions over records; used by the store for sorting and by whoever answers medianPrice1000, totalAvail
and avgAvail. Broker offers enter a stock figure only when nobody else has stock (contract graphql.md §2.6).
"""

import statistics
from collections.abc import Iterable, Sequence

from proxy.sandbox.catalog import money, records

BULK = 1000
# A price this many times off the middle is a slip of a feed or a broker's wish, not a market price.
OUTLIER = 4.0


def median_price(sellers: Iterable[records.SellerOffers]) -> records.PriceBreak | None:
    """The middle price in USD for 1 000 pieces, one price a seller, outliers dropped; None where nobody
    prices."""
    middle = median(prices(sellers))
    return None if middle is None else records.PriceBreak(BULK, middle, "USD")


def average_price(sellers: Iterable[records.SellerOffers]) -> float | None:
    """The mean price in USD for 1 000 pieces, one price a seller; None where nobody prices."""
    return mean(prices(sellers))


def total_avail(sellers: Iterable[records.SellerOffers]) -> int:
    """Pieces in stock at all sellers together; brokers count only when nobody else has any."""
    listed = list(sellers)
    plain = sum(stock(seller) for seller in listed if not seller.is_broker)
    return plain or sum(stock(seller) for seller in listed if seller.is_broker)


def avg_avail(sellers: Iterable[records.SellerOffers]) -> float:
    """Pieces in stock per seller, over those that `total_avail` counts; 0.0 where nobody has any."""
    listed = list(sellers)
    total = total_avail(listed)
    plain = [seller for seller in listed if not seller.is_broker]
    brokers = [seller for seller in listed if seller.is_broker]
    return total / len(plain if any(map(stock, plain)) else brokers) if total else 0.0


def stock(seller: records.SellerOffers) -> int:
    """Pieces one seller has. Its offers are packagings of the same stock, so the largest counts; codes count
    0."""
    return max((max(offer.inventory_level, 0) for offer in seller.offers), default=0)


def prices(sellers: Iterable[records.SellerOffers], quantity: int = BULK) -> list[float]:
    """One price in USD a seller (no brokers) for `quantity` pieces: its cheapest offer that sells so few."""
    best = (_cheapest(seller.offers, quantity) for seller in sellers if not seller.is_broker)
    return [price for price in best if price is not None]


def median(values: Sequence[float]) -> float | None:
    """The middle of `values` after dropping what lies more than `OUTLIER` times off it; None for none."""
    if not values:
        return None
    middle = statistics.median(values)
    return statistics.median([price for price in values if middle / OUTLIER <= price <= middle * OUTLIER] or values)


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean; None for none."""
    return sum(values) / len(values) if values else None


def dollars(price: float, currency: str) -> float | None:
    """`price` in USD; None for a currency without a rate."""
    factor = money.rate(currency, "USD")
    return None if factor is None else price * factor


def _cheapest(offers: Iterable[records.Offer], quantity: int) -> float | None:
    return min((price for offer in offers if (price := _at(offer.prices, quantity)) is not None), default=None)


def _at(breaks: Iterable[records.PriceBreak], quantity: int) -> float | None:
    """The price of the last break at or below `quantity` whose currency has a rate; the first named at that
    break."""
    found: tuple[int, float] | None = None
    for step in breaks:
        price = dollars(step.price, step.currency)
        if price is not None and step.quantity <= quantity and (found is None or step.quantity > found[0]):
            found = (step.quantity, price)
    return None if found is None else found[1]
