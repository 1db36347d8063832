"""Kinds of columns: how each is named and explained, and the value it has for a line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Literal, NamedTuple

from proxy import config
from proxy.tools.sheet import offers
from proxy.tools.sheet.offers import OfferRules, Purchase
from proxy.tools.sheet.package.cells import CellValue, ColumnLook
from proxy.tools.sheet.parts import SOURCES_MAX, Offer, Part, PartOfSource
from proxy.traffic.bom_columns import plain

Option = Literal["quantity", "currency", "distributor", "spec"]
PRICE_STEP = Decimal("0.00001")  # five decimals, as the Excel add-in shows
NONE = "none"  # what there is none of, although it was looked up
ALTERNATIVES_MAX = 10
DIGITS_MAX = 20  # before the point, beyond which nothing is rounded: Decimal could not hold the decimals
AT_BEST: tuple[Option, ...] = ("quantity", "distributor")
PRICED: tuple[Option, ...] = ("quantity", "currency", "distributor")


@dataclass(frozen=True)
class LinePart:
    """A part as columns of one line use it: those with the same quantity, currency and argument share it. `distributor`
    and `spec` are such arguments."""

    part: Part
    quantity: int
    currency: str
    rules: OfferRules
    distributor: str | None
    fetched: float
    spec: str | None = None

    @cached_property
    def best(self) -> Purchase | None:
        """The best purchase under the rules, of all distributors or of the one."""
        return offers.best(self._offers, self.quantity, self.currency, self.rules)

    @cached_property
    def allowed(self) -> list[Offer]:
        """The offers that count, whatever their stock."""
        return offers.allowed(self._offers, OfferRules(self.rules.distributors, self.rules.authorized_only))

    @property
    def _offers(self) -> Sequence[Offer]:
        name = self.distributor
        return self.part.offers if name is None else [each for each in self.part.offers if offers.is_from(each, name)]


TEXT, LONG, LINK = ColumnLook(14), ColumnLook(32), ColumnLook(30, link=True)
COUNT, PRICE, TOTAL = (
    ColumnLook(11, "#,##0"),
    ColumnLook(13, "[$CURRENCY] #,##0.00###"),
    ColumnLook(14, "[$CURRENCY] #,##0.00"),
)
Value = Callable[[LinePart], CellValue]
SourcesValue = Callable[[Part | None, Sequence[PartOfSource]], CellValue]


class ColumnKind(NamedTuple):
    """A kind of column. `options` are what may follow its name: `@100`, `:EUR` or `:Digi-Key`; `feature` is what a
    plan must include to have values. `of_sources` is the value of a column that needs the manufacturers of a number."""

    label: str
    explanation: str
    value: Value = lambda _: None
    options: tuple[Option, ...] = ()
    feature: config.Feature | None = None
    look: ColumnLook = TEXT
    of_sources: SourcesValue | None = None


def at(time: float) -> str:
    """Format a time as text, which reads the same in every program."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M UTC")


def rounded(price: Decimal) -> Decimal:
    """Round a price to five decimals, without trailing zeros."""
    if price.adjusted() > DIGITS_MAX:
        return price
    short = price.quantize(PRICE_STEP).normalize()
    return short.quantize(Decimal(1)) if short == short.to_integral_value() else short


def breaks_text(purchase: Purchase) -> str:
    """Format all prices of an offer by the quantities from which they are valid."""
    return "; ".join([f"{quantity}: {rounded(price):f}" for quantity, price in purchase.breaks])


def number(value: int | None) -> Decimal | None:
    """Return a cell value of a whole number."""
    return None if value is None else Decimal(value)


def _spec(part: Part, name: str) -> CellValue:
    """Return a spec for display, by one of its names."""
    wanted = plain(name)
    return next(
        (each.value for each in part.specs if wanted in map(plain, (each.shortname, each.name, each.key))), None
    )


def _second_source(part: Part | None, sources: Sequence[PartOfSource]) -> CellValue:
    """Return the manufacturers but the part's own."""
    own = None if part is None else part.manufacturer
    others = dict.fromkeys(each.manufacturer for each in sources if each.manufacturer != own)
    return "; ".join(others) or NONE


def _alternatives(part: Part | None, sources: Sequence[PartOfSource]) -> CellValue:
    """Return what may replace the part, or else the first one with its number."""
    own = next((each for each in sources if part is not None and each.manufacturer == part.manufacturer), None)
    similar = (own or sources[0]).similar if sources else ()
    return "; ".join(f"{each.mpn} ({each.manufacturer})" for each in similar[:ALTERNATIVES_MAX]) or NONE


def _of_best(value: Callable[[Purchase], CellValue]) -> Value:
    return lambda line: None if (best := line.best) is None else value(best)


def _lead_time(line: LinePart) -> CellValue:
    """Return the lead time of the best offer; if it states none, the shortest of the others."""
    best = line.best
    if best is not None and best.offer.lead_days is not None:
        return Decimal(best.offer.lead_days)
    return number(min((each.lead_days for each in line.allowed if each.lead_days is not None), default=None))


def _next_break(value: Callable[[Purchase, int, Decimal], Decimal]) -> Value:
    """Return a value of the best offer's next quantity with a lower price, and that price; None if there is none."""

    def of(line: LinePart) -> CellValue:
        best = line.best
        cheaper = [] if best is None else [each for each in best.breaks if each[0] > best.quantity]
        return value(best, *cheaper[0]) if best is not None and cheaper and cheaper[0][1] < best.unit_price else None

    return of


KINDS = {
    "price": ColumnKind(
        "price",
        "unit price of the best offer, at the quantity that has to be bought",
        _of_best(lambda best: rounded(best.unit_price)),
        PRICED,
        look=PRICE,
    ),
    "total": ColumnKind(
        "total",
        "price of the whole line: unit price times the quantity that has to be bought",
        _of_best(lambda best: rounded(best.total)),
        PRICED,
        look=TOTAL,
    ),
    "order_quantity": ColumnKind(
        "order quantity",
        "quantity that has to be bought of the best offer (MOQ, order multiple)",
        _of_best(lambda best: Decimal(best.quantity)),
        AT_BEST,
        look=COUNT,
    ),
    "needed": ColumnKind(
        "needed",
        "quantity that is needed: that of the line, times --boards, plus attrition",
        look=COUNT,
    ),
    "price_breaks": ColumnKind(
        "price breaks",
        "all prices of the best offer, by quantity",
        _of_best(breaks_text),
        PRICED,
        look=LONG,
    ),
    "next_break": ColumnKind(
        "next break",
        "next greater quantity at which the best offer has a lower price",
        _next_break(lambda best, quantity, price: Decimal(quantity)),  # noqa: ARG005 - one shape for both
        AT_BEST,
        look=COUNT,
    ),
    "break_saving": ColumnKind(
        "break saving",
        "what the lower price saves if the quantity of the next break is bought",
        _next_break(lambda best, quantity, price: rounded((best.unit_price - price) * quantity)),
        PRICED,
        look=TOTAL,
    ),
    "currency": ColumnKind("currency", "currency of the prices", lambda line: line.currency),
    "stock": ColumnKind(
        "stock",
        "stock of all distributors that count, or of one: stock:Digi-Key",
        lambda line: offers.stock(line.allowed),
        ("distributor",),
        look=COUNT,
    ),
    "distributor": ColumnKind(
        "distributor",
        "distributor of the best offer",
        _of_best(lambda best: best.offer.seller),
        AT_BEST,
        look=ColumnLook(20),
    ),
    "authorized": ColumnKind(
        "authorized",
        "yes where the distributor of the best offer is authorized by the manufacturer, else no",
        _of_best(lambda best: "yes" if best.offer.authorized else "no"),
        AT_BEST,
    ),
    "sku": ColumnKind(
        "SKU",
        "number of the best offer at its distributor",
        _of_best(lambda b: b.offer.sku),
        AT_BEST,
        look=ColumnLook(22),
    ),
    "moq": ColumnKind(
        "MOQ",
        "minimum order quantity of the best offer",
        _of_best(lambda best: number(best.offer.moq)),
        AT_BEST,
        look=COUNT,
    ),
    "order_multiple": ColumnKind(
        "order multiple",
        "multiple in which the best offer is sold",
        _of_best(lambda best: number(best.offer.order_multiple)),
        AT_BEST,
        look=COUNT,
    ),
    "packaging": ColumnKind(
        "packaging", "packaging of the best offer", _of_best(lambda best: best.offer.packaging), AT_BEST
    ),
    "offer_url": ColumnKind(
        "offer URL",
        "page of the best offer at its distributor",
        _of_best(lambda best: best.offer.url),
        AT_BEST,
        look=LINK,
    ),
    "lead_time": ColumnKind(
        "lead time days",
        "lead time of the best offer in days; if it has none, the shortest",
        _lead_time,
        AT_BEST,
        "LEAD_TIME",
        look=COUNT,
    ),
    "lifecycle": ColumnKind(
        "lifecycle", "lifecycle status of the part", lambda line: line.part.lifecycle, (), "TECH_SPECS"
    ),
    "rohs": ColumnKind("RoHS", "RoHS status of the part", lambda line: _spec(line.part, "rohs"), (), "TECH_SPECS"),
    "spec": ColumnKind(
        "spec",
        "any spec, by its name or v3's key: spec:resistance, spec:Number of Pins",
        lambda line: _spec(line.part, line.spec or ""),
        ("spec",),
        "TECH_SPECS",
        look=ColumnLook(18),
    ),
    "second_source": ColumnKind(
        "second source",
        f"other manufacturers with this number, or all if the line is not found; {SOURCES_MAX} parts more at most",
        look=LONG,
        of_sources=_second_source,
    ),
    "alternatives": ColumnKind(
        "alternatives",
        f"parts that may replace it; {SOURCES_MAX} parts more at most, the same as for second_source",
        feature="SIMILAR_PARTS",
        look=LONG,
        of_sources=_alternatives,
    ),
    "package": ColumnKind("package", "case or package of the part", lambda line: line.part.package, (), "TECH_SPECS"),
    "datasheet": ColumnKind(
        "datasheet",
        "address of the datasheet",
        lambda line: line.part.datasheet_url,
        (),
        "DATASHEETS",
        look=LINK,
    ),
    "url": ColumnKind("product page", "address of the part's page", lambda line: line.part.url, look=LINK),
    "mpn": ColumnKind(
        "MPN", "part number as the manufacturer writes it", lambda line: line.part.mpn, look=ColumnLook(20)
    ),
    "manufacturer": ColumnKind(
        "manufacturer", "manufacturer of the part", lambda line: line.part.manufacturer, look=ColumnLook(22)
    ),
    "description": ColumnKind(
        "description", "short description of the part", lambda line: line.part.short_description, look=LONG
    ),
    "data_as_of": ColumnKind(
        "data as of", "time at which the data was fetched", lambda line: at(line.fetched), look=ColumnLook(22)
    ),
    "status": ColumnKind(
        "status",
        "found, not found, ambiguous, stale or failed; always there, last if not named",
        look=LONG,
    ),
}
