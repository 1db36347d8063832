"""Parts with their offers: which count under rules, what can be bought of them at which price, and the best. Pure.

What is bought is the least quantity that an offer allows: its minimum, the quantity of its first price, and its order
multiple. The best offer has the lowest total, including the fee for a reel that is wound for the order; among equal
ones that with the greater stock. One without a price in the currency, its own or converted, is no candidate.

Parts are `gc=False`, because the collector would visit the offers of a long list.
"""

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec

from proxy.traffic.bom_columns import plain

CANDIDATES = 5  # parts at most that are looked at where several match, or as parts of other manufacturers
STOCK_TEXTS = {-1: "Non-stocked", -2: "Yes", -3: "Unknown", -4: "RFQ"}  # contract workbook.md, Functions
YES = -2
# Those on record (contract v3-rest.md §3.3), and of reels that are wound for an order; the service may have others.
PACKAGINGS = (
    *("Tape & Reel", "Tape & Reel (7 in.)", "Tape & Reel (13 in.)", "Reel", "Cut Tape", "Tape & Box", "Tube", "Bulk"),
    *("Tray", "Bag", "Box", "Kit", "Magazine", "Rail", "Spool", "Strip", "Ammo Pack", "Waffle Pack", "Custom Reel"),
    *("Digi-Reel", "MouseReel", "Re-Reel"),
)
_CUSTOM_REELS = ("customreel", "digireel", "mousereel", "rereel")
REEL_FEE = Decimal(7)  # USD, of Digi-Key and Mouser in 2026, for pieces that are wound on a reel of their own
_SEPARATORS = str.maketrans("", "", " \t\u00a0-\u2010\u2011\u2012\u2013\u2014\u2212_./,:;")


class PartQuery(NamedTuple):
    """Parts to look up, by `mpn` or `sku`; costs `limit` parts at most. An empty `manufacturer` means any."""

    mpn: str
    manufacturer: str = ""
    sku: str = ""
    currency: str = "USD"
    limit: int = 1


class Price(msgspec.Struct, frozen=True, gc=False):
    """Price of one piece from this quantity on; `converted` to the currency of the query, None without a rate."""

    quantity: int
    price: Decimal
    currency: str
    converted: Decimal | None = None


class Offer(msgspec.Struct, frozen=True, gc=False):
    """One offer of a distributor. `stock` is a level, or -1 to -4 (contract workbook.md, Functions); None: unknown."""

    seller_id: str
    seller: str
    authorized: bool
    sku: str | None = None
    stock: int | None = None
    moq: int | None = None
    order_multiple: int | None = None
    lead_days: int | None = None
    packaging: str | None = None
    url: str | None = None
    updated: str | None = None  # ISO 8601
    prices: tuple[Price, ...] = ()


class PartSpec(msgspec.Struct, frozen=True, gc=False):
    """One spec; `shortname` and `name` are the service's, `key` is v3's: `rohs`, `RoHS`, `rohs_status`."""

    shortname: str
    name: str
    key: str
    value: str


class Part(msgspec.Struct, frozen=True, gc=False):
    """One part with all its offers, in the order of the service."""

    mpn: str
    manufacturer: str
    url: str | None = None
    short_description: str | None = None
    datasheet_url: str | None = None
    lifecycle: str | None = None
    package: str | None = None
    offers: tuple[Offer, ...] = ()
    specs: tuple[PartSpec, ...] = ()


class PartResult(NamedTuple):
    """The first parts that match, or why there are none; `hits` counts all. `fetched`: Unix time of the request."""

    query: PartQuery
    parts: tuple[Part, ...]
    hits: int
    error: str | None
    fetched: float


class OfferRules(NamedTuple):
    """Which offers count: those of distributors whose name contains one of these (without case, spaces and
    punctuation) or whose seller id is one of them, and those in packagings whose name contains one of these. Of the
    rest the ones with the SKU that the list names, unless `any_offer`."""

    distributors: tuple[str, ...] = ()
    packagings: tuple[str, ...] = ()
    any_offer: bool = False


class Purchase(NamedTuple):
    """What is bought of an offer to get at least a wanted quantity. `breaks`: all its prices in the currency; `total`:
    price of everything that is bought, with the fee."""

    offer: Offer
    quantity: int
    unit_price: Decimal
    breaks: Sequence[tuple[int, Decimal]]
    fee: Decimal
    total: Decimal


def bare(number: str) -> str:
    """Return a number without case, blanks and separators. A plus sign stays: MAX3232ESE+ is another part."""
    return number.translate(_SEPARATORS).casefold()


def allowed(offers: Iterable[Offer], rules: OfferRules, skus: Collection[str] = ()) -> list[Offer]:
    """Return the offers that count; `skus` are those that the list names."""
    counting = [
        offer
        for offer in offers
        if (not rules.distributors or any(is_named(name, offer.seller_id, offer.seller) for name in rules.distributors))
        and (not rules.packagings or any(plain(name) in plain(offer.packaging or "") for name in rules.packagings))
    ]
    return [offer for offer in counting if not rules.any_offer and has_sku(offer, skus)] or counting


def has_sku(offer: Offer, skus: Iterable[str]) -> bool:
    """Return whether an offer has one of these numbers."""
    return offer.sku is not None and bare(offer.sku) in map(bare, skus)


def is_named(distributor: str, seller_id: str, seller: str) -> bool:
    """Return true if this is a part of a seller's name, or its id."""
    wanted = plain(distributor)
    return distributor.strip() == seller_id or (any(map(str.isalnum, wanted)) and wanted in plain(seller))


def price_breaks(offer: Offer, currency: str) -> list[tuple[int, Decimal]]:
    """Return the prices in this currency with the quantities that they begin at, ascending."""
    breaks: dict[int, Decimal] = {}
    for price in offer.prices:
        amount = price.price if price.currency == currency else price.converted  # None: there is no rate
        # An offer may state a price in several currencies: the lowest is what a buyer would choose.
        if amount is not None and amount < breaks.get(price.quantity, Decimal("Infinity")):
            breaks[price.quantity] = amount
    return sorted(breaks.items())


def purchase(offer: Offer, quantity: int, currency: str) -> Purchase | None:
    """Return what is bought to get `quantity`; None without a price in this currency."""
    first_price: int = min((price.quantity for price in offer.prices), default=1)
    least = max(quantity, offer.moq or 1, first_price, 1)
    multiple = max(offer.order_multiple or 1, 1)
    bought = -(-least // multiple) * multiple
    breaks = price_breaks(offer, currency)
    amounts = [amount for begin, amount in breaks if begin <= bought]
    if not amounts:
        return None
    is_wound = plain(offer.packaging or "") in _CUSTOM_REELS
    rates = (
        price.converted / price.price
        for price in offer.prices
        if currency != "USD" and price.currency == "USD" and price.converted and price.price
    )
    fee = REEL_FEE * next(rates, Decimal(1)) if is_wound else Decimal(0)
    return Purchase(offer, bought, amounts[-1], breaks, fee, amounts[-1] * bought + fee)


def best(offers: Sequence[Offer], quantity: int, currency: str) -> Purchase | None:
    """Return the best purchase; None if there is none."""
    purchases = filter(None, (purchase(each, quantity, currency) for each in offers))
    # SKU and price breaks make the order total: the same offers in another order have the same best one.
    return min(
        purchases,
        key=lambda each: (each.total, -(each.offer.stock or 0), each.offer.seller, each.offer.sku or "", *each.breaks),
        default=None,
    )


def stock(offers: Iterable[Offer]) -> Decimal | str | None:
    """Return the sum over distributors, of each the greatest level: packagings share one stock. Without a number it is
    the text of the service, such as "RFQ"; None if nothing is known."""
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
