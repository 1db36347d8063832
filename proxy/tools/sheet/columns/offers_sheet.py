"""Sheet of the offers of all lines, beside the filled table: a row for each offer, in the order of the lines."""

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from proxy.tools.sheet import offers
from proxy.tools.sheet.columns.kinds import COUNT, LINK, LONG, at, breaks_text, number, rounded
from proxy.tools.sheet.columns.lines import Line
from proxy.tools.sheet.offers import OfferRules
from proxy.tools.sheet.package.cells import CellValue, ColumnLook
from proxy.tools.sheet.parts import Offer, PartResult

HEADINGS = (
    *("Line", "Part number", "Manufacturer", "Distributor", "Authorized", "Counts", "SKU", "Stock", "MOQ"),
    *("Order multiple", "Lead time days", "Packaging", "Order quantity", "Unit price", "Total", "Currency"),
    *("Price breaks", "Updated", "Offer URL", "Data as of"),
)
LOOKS = (
    *(
        ColumnLook(7, "0"),
        ColumnLook(20),
        ColumnLook(22),
        ColumnLook(20),
        ColumnLook(13),
        ColumnLook(10),
        ColumnLook(22),
    ),
    *(COUNT, COUNT, ColumnLook(16, "#,##0"), ColumnLook(17, "#,##0"), ColumnLook(16), ColumnLook(16, "#,##0")),
    *(
        ColumnLook(12, "#,##0.00###"),
        ColumnLook(12, "#,##0.00"),
        ColumnLook(11),
        LONG,
        ColumnLook(22),
        LINK,
        ColumnLook(22),
    ),
)
"""`Counts`: whether the offer counts under the rules, at the line's quantity."""


EXPECTED = 250  # offers that a part may have; with room for fewer of each line, the user is told before


def notes(queries: int, wanted: int | None, room: int | None) -> list[str]:
    """Say if so many queries may have more offers than there is room for. How many a part has is known only after it is
    paid for."""
    fitting = room // max(1, queries) if room is not None else EXPECTED
    if fitting >= (EXPECTED if wanted is None else wanted):
        return []
    return [
        f"the sheet of offers holds {room:,}, which is {fitting} for each line and currency: if there are more, "
        "the best of each line are written; --offers best:N or none writes fewer"
    ]


def kept(sizes: Counter[int], wanted: int | None, room: int | None) -> int | None:
    """Return how many offers of each line are written, so that they fit into `room` rows; None for all of them.
    `sizes` are numbers of offers, and how many lines have them; `wanted` is the most that each shall have."""
    if room is None or written(sizes, wanted) <= room:
        return wanted
    return next(limit for limit in range(max(sizes), -1, -1) if written(sizes, limit) <= room)


def written(sizes: Counter[int], limit: int | None) -> int:
    """Return the number of offers with at most `limit` of each line."""
    return sum(lines * (size if limit is None else min(size, limit)) for size, lines in sizes.items())


def rows(
    line: Line, result: PartResult, quantity: int | None, rules: OfferRules, limit: int | None = None
) -> Iterator[Sequence[CellValue]]:
    """Yield the rows of one line: of all offers in the order of the service, or of the best `limit`, best first.
    Without a quantity, they have no prices."""
    if result.part is None:
        return
    fetched = at(result.fetched)
    listed: Sequence[Offer] = result.part.offers
    if limit is not None:
        listed = offers.ranked(listed, quantity or 1, result.query.currency, rules)[:limit]
    for offer in listed:
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
