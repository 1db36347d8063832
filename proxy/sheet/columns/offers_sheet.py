"""Sheet of all offers of all lines, beside the filled table: a row for each offer, in the order of the lines."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from proxy.sheet import offers
from proxy.sheet.columns.kinds import at, breaks_text, number, rounded
from proxy.sheet.columns.lines import Line
from proxy.sheet.offers import OfferRules
from proxy.sheet.package.cells import CellValue
from proxy.sheet.parts import Offer, PartResult

HEADINGS = (
    *("Line", "Part number", "Manufacturer", "Distributor", "Authorized", "Counts", "SKU", "Stock", "MOQ"),
    *("Order multiple", "Lead time days", "Packaging", "Order quantity", "Unit price", "Total", "Currency"),
    *("Price breaks", "Updated", "Offer URL", "Data as of"),
)
"""`Counts`: whether the offer counts under the rules, at the line's quantity."""


def rows(line: Line, result: PartResult, quantity: int | None, rules: OfferRules) -> Iterator[Sequence[CellValue]]:
    """Yield the rows of one line; without a quantity, they have no prices."""
    if result.part is None:
        return
    fetched = at(result.fetched)
    for offer in result.part.offers:
        yield (
            Decimal(line.row),
            result.part.mpn,
            result.part.manufacturer,
            offer.seller,
            offer.authorized,
            None if quantity is None else offers.counts(offer, rules, quantity),
            *_terms(offer),
            *_prices(offer, quantity, result.query.currency),
            offer.updated,
            offer.url,
            fetched,
        )


def _terms(offer: Offer) -> tuple[CellValue, ...]:
    stock = None if offer.stock is None else offers.stock_text(offer.stock)
    return (
        offer.sku,
        stock,
        number(offer.moq),
        number(offer.order_multiple),
        number(offer.lead_days),
        offer.packaging,
    )


def _prices(offer: Offer, quantity: int | None, currency: str) -> tuple[CellValue, ...]:
    purchase = None if quantity is None else offers.purchase(offer, quantity, currency)
    if purchase is None:
        return None, None, None, None, None
    return (
        Decimal(purchase.quantity),
        rounded(purchase.unit_price),
        rounded(purchase.total),
        currency,
        breaks_text(purchase),
    )
