"""Figures over the offers of several sellers: median price, average price, total stock.

Pure functions over records, for sorting and for the fields medianPrice1000, totalAvail and avgAvail. Broker offers
enter a stock figure only if no other seller has stock (contract graphql.md §2.6).
"""

import statistics
from collections.abc import Iterable, Sequence

from nexar_sandbox.catalog import records, units

BULK = 1000
# A price that differs from the median by more than this factor is an error of a feed, not a market price.
OUTLIER = 4.0


def median_price(sellers: Iterable[records.SellerOffers]) -> records.PriceBreak | None:
    """The median unit price in USD for 1 000 pieces, one price for each seller, without outliers; None if there is
    none."""
    middle = median(prices(sellers))
    return None if middle is None else records.PriceBreak(BULK, middle, "USD")


def total_avail(sellers: Iterable[records.SellerOffers]) -> int:
    """Pieces in stock at all sellers; brokers count only when no other seller has stock."""
    return sum(_stocks(sellers))


def avg_avail(sellers: Iterable[records.SellerOffers]) -> float:
    """Mean number of pieces in stock, over the sellers that `total_avail` counts; 0.0 without any stock."""
    return mean(_stocks(sellers)) or 0.0


def _stocks(sellers: Iterable[records.SellerOffers]) -> list[int]:
    offered = list(sellers)
    without_brokers = [stock(seller) for seller in offered if not seller.is_broker]
    return without_brokers if any(without_brokers) else [stock(seller) for seller in offered if seller.is_broker]


def stock(seller: records.SellerOffers) -> int:
    """Pieces in stock at one seller. Its offers are packagings of the same stock, so the largest counts; negative stock
    codes count 0."""
    return max((max(offer.inventory_level, 0) for offer in seller.offers), default=0)


def prices(sellers: Iterable[records.SellerOffers], quantity: int = BULK) -> list[float]:
    """For each seller, without brokers, the unit price in USD of its cheapest offer that sells `quantity` pieces."""
    priced = (
        [price for offer in seller.offers if (price := _at(offer.prices, quantity)) is not None]
        for seller in sellers
        if not seller.is_broker
    )
    return [min(own) for own in priced if own]


def median(values: Sequence[float]) -> float | None:
    """The median of `values` without outliers (see OUTLIER); None for no values."""
    if not values:
        return None
    middle = statistics.median(values)
    return statistics.median([price for price in values if middle / OUTLIER <= price <= middle * OUTLIER] or values)


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def dollars(price: float, currency: str) -> float | None:
    """`price` in USD; None for a currency without an exchange rate."""
    factor = units.exchange_rate(currency, "USD")
    return None if factor is None else price * factor


def _at(breaks: Iterable[records.PriceBreak], quantity: int) -> float | None:
    """The price in USD of the last break at or below `quantity` whose currency has an exchange rate; the first one at
    that quantity."""
    best: tuple[int, float] | None = None
    for step in breaks:
        price = dollars(step.price, step.currency)
        if price is not None and step.quantity <= quantity and (best is None or step.quantity > best[0]):
            best = (step.quantity, price)
    return None if best is None else best[1]
