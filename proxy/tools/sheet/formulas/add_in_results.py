"""Values of calls as the add-ins themselves give them, with their known faults and texts (`--as-add-in`). No I/O.

Contract workbook.md, Functions, and graphql.md §7. The manufacturer does not filter offers; prices are those of the
offers' own currency, with five decimals; numbers are texts in places. The one fault that is left out costs parts: a
distributor without offers is not looked for in further parts.
"""

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal

from proxy.tools.sheet.formulas import results
from proxy.tools.sheet.formulas.requests import PartRequest
from proxy.tools.sheet.formulas.results import Excluded
from proxy.tools.sheet.offers import stock_text
from proxy.tools.sheet.package.cells import CellValue
from proxy.tools.sheet.parts import Offer, Part

NO_RESULT = "ERROR: Query did not provide a result. Please widen your search criteria."
NO_DATASHEET = "ERROR: Datasheet url not found. Please try expanding your search"
_GOOGLE_TEXTS = {"short_description": "(no description retrieved)", "image": "(no image retrieved)"}
_GOOGLE_NO_OFFER = "No offer found"
# Errors, calls that were never answered, and those of a workbook that was not logged in.
_FAILURES = ("ERROR: ", "!!! ", "Nexar Supply client is not specified.", "The access token has expired")
_UNKNOWN_LEAD_TIME = Decimal(2**31 - 1)  # of the Octopart add-in, which takes the least of all


def is_failure(text: str) -> bool:
    """Return true for a text that an add-in writes instead of a value."""
    return text.startswith(_FAILURES) or text in (_GOOGLE_NO_OFFER, *_GOOGLE_TEXTS.values())


def add_in_value(request: PartRequest, part: Part | None, error: str | None, excluded: Excluded) -> CellValue:
    """Return the value of a call; `part` is None if none was found, or the query failed with `error`."""
    if part is None:
        return _missing(request) if request.function.dialect == "google" or not error else f"ERROR: {error}"
    if request.function.result in results.OF_PART:
        return _of_part(request, part, excluded)
    offers = results.matching_offers(part.offers, request, _is_seller)
    return _OF_OFFERS[request.function.result](offers, request) if offers else _missing(request)


def _missing(request: PartRequest) -> str:
    if request.function.dialect == "google":
        return _GOOGLE_TEXTS.get(request.function.result, _GOOGLE_NO_OFFER)
    return NO_RESULT


def _of_part(request: PartRequest, part: Part, excluded: Excluded) -> CellValue:
    if _sanitized(request.manufacturer) not in _sanitized(part.manufacturer):
        return _missing(request)
    if value := results.OF_PART[request.function.result](part):
        return value
    if request.function.result == "datasheet_url":
        return "" if excluded.datasheets else NO_DATASHEET
    return (
        _missing(request) if request.function.result in _GOOGLE_TEXTS and request.function.dialect == "google" else ""
    )


def _is_seller(offer: Offer, distributor: str) -> bool:
    """Return true for the seller's number, or a part of its name. The add-in leaves out white space, but no
    punctuation."""
    return offer.seller_id == distributor or _sanitized(distributor) in _sanitized(offer.seller)


def _sanitized(name: str) -> str:
    return "".join(name.split()).casefold()


def _average_price(offers: Sequence[Offer], request: PartRequest) -> CellValue:
    prices = [float(price) for price in _prices(offers, request)]
    # The add-in adds up doubles: the mean shows it in its last digits.
    return Decimal(repr(sum(prices) / len(prices))) if prices else NO_RESULT


def _stock(offers: Sequence[Offer], _: PartRequest) -> CellValue:
    level = max(offer.stock or 0 for offer in offers)
    return stock_text(level)


def _moq(offers: Sequence[Offer], _: PartRequest) -> CellValue:
    return min((Decimal(offer.moq) for offer in offers if offer.moq and offer.moq > 0), default=NO_RESULT)


def _prices(offers: Sequence[Offer], request: PartRequest) -> list[Decimal]:
    """Return the least price of each offer that has one at the quantity, with five decimals. Every break below the
    quantity counts, and so does an offer whose minimum order is above it."""
    least = (
        min(
            (
                price.price
                for price in offer.prices
                if request.currency in price.currency and price.quantity <= request.quantity
            ),
            default=None,
        )
        for offer in offers
    )
    return [price.quantize(Decimal("0.00001"), ROUND_HALF_UP) for price in least if price is not None]


def _order_multiple(offers: Sequence[Offer], request: PartRequest) -> CellValue:
    if request.function.dialect == "nexar":
        return _least_text([offer.order_multiple for offer in offers])
    return Decimal(min(1 if offer.order_multiple is None else offer.order_multiple for offer in offers))


def _lead_time(offers: Sequence[Offer], request: PartRequest) -> CellValue:
    if request.function.dialect == "nexar":
        return _least_text([offer.lead_days for offer in offers])
    return min(_UNKNOWN_LEAD_TIME if offer.lead_days is None else Decimal(offer.lead_days) for offer in offers)


def _least_text(numbers: Sequence[int | None]) -> str:
    known = [number for number in numbers if number is not None]
    return str(min(known)) if known else ""


_OF_OFFERS: dict[str, Callable[[Sequence[Offer], PartRequest], CellValue]] = {
    "price": lambda offers, request: min(_prices(offers, request), default=NO_RESULT),
    "average_price": _average_price,
    "stock": _stock,
    "industry_stock": lambda offers, _: Decimal(sum(offer.stock or 0 for offer in offers)),
    "stock_updated": lambda offers, _: max(offer.updated or "" for offer in offers),
    "moq": _moq,
    "order_multiple": _order_multiple,
    "lead_time": _lead_time,
    "packaging": lambda offers, _: offers[0].packaging or "",
    "distributor_url": lambda offers, _: offers[0].url or "",
    "sku": lambda offers, _: offers[0].sku or "",
}
