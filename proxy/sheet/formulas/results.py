"""Values of calls from parts: right ones. Where there is none, the error value `#N/A`, which IFERROR catches. No I/O.

The add-ins' own values, faults included, are in `add_in_results`.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from proxy.sheet.formulas.requests import PartRequest
from proxy.sheet.package.cells import CellError, CellValue
from proxy.sheet.parts import Offer, Part

NOT_AVAILABLE = CellError("#N/A")

STOCK_TEXTS = {-1: "Non-stocked", -2: "Yes", -3: "Unknown", -4: "RFQ"}
"""Levels below 0, as all add-ins show them (contract workbook.md, Functions)."""


class Excluded(NamedTuple):
    """What the login excludes, because the application's plan lacks it."""

    datasheets: bool = False
    lead_times: bool = False


def right_value(request: PartRequest, part: Part | None, excluded: Excluded) -> CellValue:
    """Return the value of a call; `part` is None if none was found."""
    if part is None:
        return NOT_AVAILABLE
    if request.function.result == "datasheet_url" and excluded.datasheets:
        return ""
    if request.function.result == "lead_time" and excluded.lead_times:
        return ""
    if (of_part := _OF_PART.get(request.function.result)) is not None:
        return of_part(part) or ""
    offers = matching_offers(part.offers, request)
    return _OF_OFFERS[request.function.result](offers, request) if offers else NOT_AVAILABLE


def matching_offers(offers: Iterable[Offer], request: PartRequest) -> list[Offer]:
    """Return the offers of the distributors and the authorization that a call asks for, in their order."""
    return [
        offer
        for offer in offers
        if (not request.distributors or any(_is_seller(offer, name) for name in request.distributors))
        and (request.authorized == "any" or offer.authorized is (request.authorized == "yes"))
    ]


def _is_seller(offer: Offer, distributor: str) -> bool:
    """True if a distributor's number is the seller's, or its text a part of the seller's name."""
    if distributor.isascii() and distributor.isdigit():
        return offer.seller_id == distributor
    return sanitized(distributor) in sanitized(offer.seller)


def sanitized(name: str) -> str:
    """Return a name as the add-ins compare it: without white space and case."""
    return "".join(name.split()).casefold()


def _price(offer: Offer, request: PartRequest) -> Decimal | None:
    """Return the price of one piece at the call's quantity and in its currency."""
    breaks = [price for price in offer.prices if price.quantity <= request.quantity]
    if not breaks:
        return None
    applicable = max(price.quantity for price in breaks)
    prices = [
        price.price if price.currency == request.currency else price.converted
        for price in breaks
        if price.quantity == applicable
    ]
    return min((price for price in prices if price is not None), default=None)


def _prices(offers: Sequence[Offer], request: PartRequest) -> list[Decimal]:
    """Return the prices at the call's quantity. Offers that cannot be ordered in it count only if none can."""
    priced = [(offer, price) for offer in offers if (price := _price(offer, request)) is not None]
    orderable = [price for offer, price in priced if (offer.moq or 0) <= request.quantity]
    return orderable or [price for _, price in priced]


def _least_price(offers: Sequence[Offer], request: PartRequest) -> CellValue:
    return min(_prices(offers, request), default=NOT_AVAILABLE)


def _average_price(offers: Sequence[Offer], request: PartRequest) -> CellValue:
    prices = _prices(offers, request)
    return sum(prices, Decimal(0)) / len(prices) if prices else NOT_AVAILABLE


def _stock(offers: Sequence[Offer], _: PartRequest) -> CellValue:
    levels = [offer.stock for offer in offers if offer.stock is not None]
    if not levels:
        return NOT_AVAILABLE
    return STOCK_TEXTS.get(max(levels), Decimal(max(levels)))


def _industry_stock(offers: Sequence[Offer], _: PartRequest) -> CellValue:
    return Decimal(sum(offer.stock for offer in offers if offer.stock is not None and offer.stock > 0))


def _stock_updated(offers: Sequence[Offer], _: PartRequest) -> CellValue:
    # ISO 8601 in UTC sorts by time.
    return max((offer.updated for offer in offers if offer.updated), default="")


_OfOffers = Callable[[Sequence[Offer], PartRequest], CellValue]


def _least(number: Callable[[Offer], int | None], above: int) -> _OfOffers:
    def least(offers: Sequence[Offer], _: PartRequest) -> CellValue:
        numbers = [value for offer in offers if (value := number(offer)) is not None and value > above]
        return Decimal(min(numbers)) if numbers else NOT_AVAILABLE

    return least


def best_offer(offers: Sequence[Offer], request: PartRequest) -> Offer:
    """Return the offer whose SKU, URL and packaging stand for the part: in stock, then of the least price."""

    def rank(offer: Offer) -> tuple[bool, bool, Decimal]:
        price = _price(offer, request)
        return (offer.stock or 0) < request.quantity, price is None, price or Decimal(0)

    return min(offers, key=rank)


def _of_best(text: Callable[[Offer], str | None]) -> _OfOffers:
    return lambda offers, request: text(best_offer(offers, request)) or ""


_OF_PART: dict[str, Callable[[Part], str | None]] = {
    "detail_url": lambda part: part.url,
    "datasheet_url": lambda part: part.datasheet_url,
    "short_description": lambda part: part.short_description,
    "manufacturer": lambda part: part.manufacturer,
}

_OF_OFFERS: dict[str, _OfOffers] = {
    "price": _least_price,
    "average_price": _average_price,
    "stock": _stock,
    "industry_stock": _industry_stock,
    "stock_updated": _stock_updated,
    "moq": _least(lambda offer: offer.moq, 0),
    "order_multiple": _least(lambda offer: offer.order_multiple, 0),
    "lead_time": _least(lambda offer: offer.lead_days, -1),
    "packaging": _of_best(lambda offer: offer.packaging),
    "distributor_url": _of_best(lambda offer: offer.url),
    "sku": _of_best(lambda offer: offer.sku),
}
