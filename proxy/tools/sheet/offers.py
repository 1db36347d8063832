"""Offers that count under rules, what can be bought of them at which price, and the best of them. Pure.

Rules: `distributors` keeps the offers of distributors whose name contains one of these (without case, spaces and
punctuation), or whose seller id is one of them; `authorized_only` those of authorized distributors; `in_stock` those
whose stock covers what is bought, or is stated as "Yes" without a number.

What is bought is the least quantity that an offer allows: at least the wanted one, its minimum order quantity, and the
quantity of its first price, rounded up to its order multiple. A higher price break is not chosen for its sake alone.

The best offer is the one with the lowest line total, which is the unit price at that quantity times the quantity.
Among equal totals the greater stock is better, then the distributor's name in alphabetical order. Offers without a
price in the wanted currency, neither their own nor converted, are no candidates.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple

import msgspec

from proxy.tools.sheet.parts import Offer, Price

STOCK_TEXTS = {-1: "Non-stocked", -2: "Yes", -3: "Unknown", -4: "RFQ"}  # contract workbook.md, Functions
YES = -2

_begin = attrgetter("quantity")  # of a price


class OfferRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which offers count."""

    distributors: tuple[str, ...] = ()
    authorized_only: bool = False
    in_stock: bool = False


ALL_OFFERS = OfferRules()


class Purchase(NamedTuple):
    """What is bought of an offer to get at least a wanted quantity. `breaks`: all its prices in the currency."""

    offer: Offer
    quantity: int
    unit_price: Decimal
    breaks: Sequence[tuple[int, Decimal]]

    @property
    def total(self) -> Decimal:
        """Price of the line."""
        return self.unit_price * self.quantity


def allowed(offers: Iterable[Offer], rules: OfferRules, quantity: int = 1) -> list[Offer]:
    """Return the offers that count, where `quantity` is wanted."""
    return [offer for offer in offers if counts(offer, rules, quantity)]


def counts(offer: Offer, rules: OfferRules, quantity: int) -> bool:
    """Return true if an offer counts, where `quantity` is wanted."""
    return (
        (not rules.distributors or any(is_from(offer, name) for name in rules.distributors))
        and (offer.authorized or not rules.authorized_only)
        and (not rules.in_stock or covers(offer, orderable(offer, quantity)))
    )


def is_from(offer: Offer, distributor: str) -> bool:
    """Return true if a part of the seller's name, or its id, is this one."""
    return is_named(distributor, offer.seller_id, offer.seller)


def is_named(distributor: str, seller_id: str, seller: str) -> bool:
    """Return true if this is a part of a seller's name, or its id."""
    wanted = _plain(distributor)
    return distributor.strip() == seller_id or (bool(wanted) and wanted in _plain(seller))


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def covers(offer: Offer, quantity: int) -> bool:
    """Return true if the offer has this quantity in stock."""
    return offer.stock is not None and (offer.stock >= quantity or offer.stock == YES)


def orderable(offer: Offer, quantity: int) -> int:
    """Return the least quantity that can be bought, and is not below `quantity`."""
    first_price: int = min(map(_begin, offer.prices), default=1)
    least = max(quantity, offer.moq or 1, first_price, 1)
    multiple = max(offer.order_multiple or 1, 1)
    return -(-least // multiple) * multiple


def price_in(price: Price, currency: str) -> Decimal | None:
    """Return a price in the currency of the query; None if the service has no rate."""
    return price.price if price.currency == currency else price.converted


def price_breaks(offer: Offer, currency: str) -> list[tuple[int, Decimal]]:
    """Return the prices in this currency with the quantities that they begin at, ascending."""
    breaks: dict[int, Decimal] = {}
    for price in offer.prices:
        amount = price_in(price, currency)
        if amount is None:
            continue
        # An offer may state a price in several currencies: the lowest is what a buyer would choose.
        lowest = breaks.get(price.quantity)
        if lowest is None or amount < lowest:
            breaks[price.quantity] = amount
    return sorted(breaks.items())


def purchase(offer: Offer, quantity: int, currency: str) -> Purchase | None:
    """Return what is bought to get `quantity`; None without a price in this currency."""
    bought = orderable(offer, quantity)
    breaks = price_breaks(offer, currency)
    prices = [amount for begin, amount in breaks if begin <= bought]
    return Purchase(offer, bought, prices[-1], breaks) if prices else None


def best(offers: Sequence[Offer], quantity: int, currency: str, rules: OfferRules = ALL_OFFERS) -> Purchase | None:
    """Return the best purchase under the rules; None if there is none."""
    purchases = (purchase(offer, quantity, currency) for offer in allowed(offers, rules, quantity))
    return min(filter(None, purchases), key=_rank, default=None)


def ranked(offers: Sequence[Offer], quantity: int, currency: str, rules: OfferRules) -> list[Offer]:
    """Return all offers, the best first: those that count before others, and those with a price before others."""

    def rank(offer: Offer) -> tuple[object, ...]:
        bought = purchase(offer, quantity, currency) or Purchase(offer, 0, Decimal(0), ())
        return not counts(offer, rules, quantity), not bought.breaks, _rank(bought)

    return sorted(offers, key=rank)


def _rank(candidate: Purchase) -> tuple[object, ...]:
    offer = candidate.offer
    # SKU and price breaks make the order total: the same offers in another order have the same best one.
    return candidate.total, -(offer.stock or 0), offer.seller, offer.sku or "", *candidate.breaks


def stock(offers: Iterable[Offer]) -> Decimal | str | None:
    """Return the stock of offers: the sum over their distributors. A distributor offers one stock in several
    packagings, each with its own SKU, so that its greatest level counts. Without any number, the text of the service,
    such as "RFQ"; None if nothing is known."""
    levels: dict[str, int] = {}
    texts: list[int] = []
    for offer in offers:
        if offer.stock is None:
            continue
        if offer.stock >= 0:
            levels[offer.seller_id] = max(offer.stock, levels.get(offer.seller_id, 0))
        else:
            texts.append(offer.stock)
    if levels and (any(levels.values()) or not texts):
        return Decimal(sum(levels.values()))
    return stock_text(YES if YES in texts else max(texts)) if texts else None


def stock_text(level: int) -> Decimal | str:
    """Return a stock level as a number, or as the text that a negative one stands for."""
    return Decimal(level) if level >= 0 else STOCK_TEXTS.get(level, STOCK_TEXTS[-3])
