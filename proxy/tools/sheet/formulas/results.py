"""Values of calls from parts: right ones. Where there is none, the error value `#N/A`, which IFERROR catches. No I/O.

The add-ins' own values, faults included, are in `add_in_results`.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from proxy.tools.sheet import offers
from proxy.tools.sheet.formulas.requests import PartRequest
from proxy.tools.sheet.package.cells import CellError, CellValue
from proxy.tools.sheet.parts import Offer, Part

NOT_AVAILABLE = CellError("#N/A")


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
    if (of_part := OF_PART.get(request.function.result)) is not None:
        return of_part(part) or ""
    matching = matching_offers(part.offers, request, offers.is_from)
    return _OF_OFFERS[request.function.result](matching, request) if matching else NOT_AVAILABLE


def matching_offers(
    part_offers: Iterable[Offer], request: PartRequest, is_from: Callable[[Offer, str], bool]
) -> list[Offer]:
    """Return the offers of the distributors and the authorization that a call asks for, in their order."""
    return [
        offer
        for offer in part_offers
        if (not request.distributors or any(is_from(offer, name) for name in request.distributors))
        and (request.authorized == "any" or offer.authorized is (request.authorized == "yes"))
    ]


def _least_price(matching: Sequence[Offer], request: PartRequest) -> CellValue:
    purchase = offers.best(matching, request.quantity, request.currency)
    return purchase.unit_price if purchase else NOT_AVAILABLE


def _average_price(matching: Sequence[Offer], request: PartRequest) -> CellValue:
    candidates = [offers.purchase(offer, request.quantity, request.currency) for offer in matching]
    purchases = [purchase for purchase in candidates if purchase is not None]
    # The price of a reel says nothing about that of ten pieces, unless there is nothing else to buy.
    exact = [purchase for purchase in purchases if purchase.quantity == request.quantity] or purchases
    if not exact:
        return NOT_AVAILABLE
    mean = sum((purchase.unit_price for purchase in exact), Decimal(0)) / len(exact)
    return Decimal(f"{mean:.15g}")  # Excel's precision


def _stock(matching: Sequence[Offer], _: PartRequest) -> CellValue:
    levels = [offer.stock for offer in matching if offer.stock is not None]
    return offers.stock_text(max(levels)) if levels else NOT_AVAILABLE


_OfOffers = Callable[[Sequence[Offer], PartRequest], CellValue]


def _least(number: Callable[[Offer], int | None], above: int) -> _OfOffers:
    def least(matching: Sequence[Offer], _: PartRequest) -> CellValue:
        numbers = [value for offer in matching if (value := number(offer)) is not None and value > above]
        return Decimal(min(numbers)) if numbers else NOT_AVAILABLE

    return least


def _best_offer(matching: Sequence[Offer], request: PartRequest) -> Offer:
    """Return the offer whose SKU, URL and packaging stand for the part: the one that the price is of."""
    purchase = offers.best(matching, request.quantity, request.currency)
    return purchase.offer if purchase else matching[0]


def _of_best(text: Callable[[Offer], str | None]) -> _OfOffers:
    return lambda matching, request: text(_best_offer(matching, request)) or ""


OF_PART: dict[str, Callable[[Part], str | None]] = {
    "detail_url": lambda part: part.url,
    "datasheet_url": lambda part: part.datasheet_url,
    "short_description": lambda part: part.short_description,
    "manufacturer": lambda part: part.manufacturer,
    "image": lambda part: part.image_url,
}

_OF_OFFERS: dict[str, _OfOffers] = {
    "price": _least_price,
    "average_price": _average_price,
    "stock": _stock,
    "industry_stock": lambda matching, _: Decimal(sum(max(offer.stock or 0, 0) for offer in matching)),
    # ISO 8601 in UTC sorts by time.
    "stock_updated": lambda matching, _: max((offer.updated for offer in matching if offer.updated), default=""),
    "moq": _least(lambda offer: offer.moq, 0),
    "order_multiple": _least(lambda offer: offer.order_multiple, 0),
    "lead_time": _least(lambda offer: offer.lead_days, -1),
    "packaging": _of_best(lambda offer: offer.packaging),
    "distributor_url": _of_best(lambda offer: offer.url),
    "sku": _of_best(lambda offer: offer.sku),
}
