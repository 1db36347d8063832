"""Columns that can be added: `price@100:EUR`, `stock:Digi-Key`; and the value that each has for a line.

A heading begins with the name of the data's source: a list has headings such as Stock of its own, which must stay.
"""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Literal, NamedTuple

from proxy import config, errors
from proxy.tools.sheet import offers
from proxy.tools.sheet.offers import CANDIDATES, Offer, Part, Purchase
from proxy.traffic.bom_columns import plain

CellValue = str | int | Decimal | None
Option = Literal["quantity", "currency", "distributor", "spec"]

PREFIX = "Nexar"
CURRENCY = "USD"
SHOWN = 60  # characters of a wrong name in a message
PRICE_STEP = Decimal("0.00001")  # five decimals, as the Excel add-in shows
DIGITS_MAX = 20  # before the point, beyond which nothing is rounded: Decimal could not hold the decimals
NONE = "none"  # what there is none of, although it was looked up
AT_BEST: tuple[Option, ...] = ("quantity", "distributor")
PRICED: tuple[Option, ...] = ("quantity", "currency", "distributor")

_SPEC = re.compile(r"(?P<name>[^@:]*)(?:@(?P<quantity>[^:]*))?(?::(?P<argument>.*))?", re.DOTALL)


class Share(NamedTuple):
    """What of a purchase for several lines is one line's: `own` pieces of `wanted`, after `before` pieces of others."""

    before: int
    own: int
    wanted: int

    def of(self, amount: Decimal) -> Decimal:
        """Return the line's share of an amount, so that all shares add up to it."""
        return rounded(amount * (self.before + self.own) / self.wanted) - rounded(amount * self.before / self.wanted)

    def of_pieces(self, pieces: int) -> int:
        """Return the line's share of pieces, so that all shares add up to them."""
        return pieces * (self.before + self.own) // self.wanted - pieces * self.before // self.wanted


@dataclass(frozen=True)
class LinePart:
    """A part as columns of one line use it. `offers` are those that count; the best is chosen at `share.wanted`
    pieces. `spec` is the argument of such a column."""

    part: Part
    offers: Sequence[Offer]
    share: Share
    currency: str
    fetched: float
    spec: str | None = None

    @cached_property
    def best(self) -> Purchase | None:
        return offers.best(self.offers, self.share.wanted, self.currency)


class ColumnKind(NamedTuple):
    """A kind of column. `options` may follow its name: `@100`, `:EUR` or `:Digi-Key`; `feature` is needed of a plan.
    `field`: that of the part, or of the best offer, whose value it has, if it is one."""

    label: str
    explanation: str
    field: str = ""
    options: tuple[Option, ...] = ()
    feature: config.Feature | None = None
    number_format: str = "General"


class FilledColumns(NamedTuple):
    """Values of cells by row and column; headings of new columns, and number formats, by column."""

    cells: Mapping[int, Mapping[int, CellValue]]
    new: Mapping[int, str]
    formats: Mapping[int, str]


def at(time: float) -> str:
    """Format a time as text, which reads the same in every program."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M UTC")


def rounded(price: Decimal) -> Decimal:
    """Round a price to five decimals, without trailing zeros."""
    if price.adjusted() > DIGITS_MAX:
        return price
    short = price.quantize(PRICE_STEP).normalize()
    return short.quantize(Decimal(1)) if short == short.to_integral_value() else short


def breaks_text(breaks: Sequence[tuple[int, Decimal]]) -> str:
    """Format all prices of an offer by the quantities from which they are valid."""
    return "; ".join([f"{quantity}: {rounded(price):f}" for quantity, price in breaks])


COUNT, PRICE, TOTAL = "#,##0", "#,##0.00###", "#,##0.00"

_SPECS: config.Feature = "TECH_SPECS"

KINDS = {
    "price": ColumnKind("price", "unit price of the best offer", "", PRICED, None, PRICE),
    "total": ColumnKind("total", "price of what has to be bought, or a share of it", "", PRICED, None, TOTAL),
    "order_quantity": ColumnKind("order quantity", "what has to be bought", "", AT_BEST, None, COUNT),
    "needed": ColumnKind("needed", "quantity of the line, times --boards", number_format=COUNT),
    "price_breaks": ColumnKind("price breaks", "all prices of the best offer", "", PRICED),
    "stock": ColumnKind("stock", "stock of all offers that count", "", ("distributor",), None, COUNT),
    "distributor": ColumnKind("distributor", "distributor of the best offer", "seller", AT_BEST),
    "authorized": ColumnKind("authorized", "whether its distributor is authorized", "", AT_BEST),
    "sku": ColumnKind("SKU", "number of the best offer at its distributor", "sku", AT_BEST),
    "moq": ColumnKind("MOQ", "minimum order quantity of the best offer", "moq", AT_BEST, None, COUNT),
    "order_multiple": ColumnKind(
        "order multiple", "multiple in which the best offer is sold", "order_multiple", AT_BEST, None, COUNT
    ),
    "packaging": ColumnKind("packaging", "packaging of the best offer", "packaging", AT_BEST),
    "offer_url": ColumnKind("offer URL", "page of the best offer", "url", AT_BEST),
    "lead_time": ColumnKind(
        "lead time days", "days of the best offer, or the least of all", "lead_days", AT_BEST, "LEAD_TIME", COUNT
    ),
    "lifecycle": ColumnKind("lifecycle", "lifecycle status", "lifecycle", (), _SPECS),
    "rohs": ColumnKind("RoHS", "RoHS status of the part", "", (), _SPECS),
    "spec": ColumnKind("spec", "any spec: spec:resistance, spec:Number of Pins", "", ("spec",), _SPECS),
    "second_source": ColumnKind("second source", f"other makers of the number; {CANDIDATES} parts more at most"),
    "package": ColumnKind("package", "case or package of the part", "package", (), _SPECS),
    "datasheet": ColumnKind("datasheet", "link to the datasheet", "datasheet_url", (), "DATASHEETS"),
    "url": ColumnKind("product page", "address of the part's page at Octopart", "url"),
    "mpn": ColumnKind("MPN", "part number as the manufacturer writes it", "mpn"),
    "manufacturer": ColumnKind("manufacturer", "manufacturer of the part", "manufacturer"),
    "description": ColumnKind("description", "short description", "short_description"),
    "data_as_of": ColumnKind("data as of", "time at which the data was fetched"),
    "status": ColumnKind("status", "how the line went; always there, last if not named"),
}


def value(kind: str, line: LinePart) -> CellValue:
    """Return the value that a column of a kind has for a line; None where there is none, or no offer to buy."""
    if kind in ("rohs", "spec"):
        wanted = plain(line.spec or kind)
        specs = (each for each in line.part.specs if wanted in map(plain, (each.shortname, each.name, each.key)))
        return next((each.value for each in specs), None)
    if kind == "stock":
        return offers.stock(line.offers)
    if not KINDS[kind].options:
        return at(line.fetched) if kind == "data_as_of" else getattr(line.part, KINDS[kind].field)
    best = line.best
    if kind == "lead_time" and (best is None or best.offer.lead_days is None):
        return min((each.lead_days for each in line.offers if each.lead_days is not None), default=None)
    return None if best is None else _bought(kind, best, line.share)


def _bought(kind: str, best: Purchase, share: Share) -> CellValue:
    match kind:
        case "price":
            return rounded(best.unit_price)
        case "total":
            return share.of(best.total)
        case "order_quantity":
            return share.of_pieces(best.quantity)
        case "price_breaks":
            return breaks_text(best.breaks)
        case "authorized":
            return "yes" if best.offer.authorized else "no"
    return getattr(best.offer, KINDS[kind].field)  # type: ignore[no-any-return]


class ColumnSpec(NamedTuple):
    """One column. `quantity` and `currency` are None where the line's quantity and USD count."""

    kind: str
    quantity: int | None = None
    currency: str | None = None
    distributor: str | None = None
    spec: str | None = None

    @property
    def heading(self) -> str:
        words = [PREFIX, KINDS[self.kind].label]
        if self.quantity is not None:
            words.append(f"@{self.quantity}")
        if self.takes("currency"):
            words.append(self.currency or CURRENCY)
        return " ".join([*words, *filter(None, (self.distributor, self.spec))])

    def takes(self, option: Option) -> bool:
        """Return whether it has this option: `currency` if it is priced, `quantity` if it is of the best offer."""
        return option in KINDS[self.kind].options


STATUS, NEEDED, SOURCES = ColumnSpec("status"), ColumnSpec("needed"), ColumnSpec("second_source")


def parse_list(text: str) -> list[ColumnSpec]:
    """Parse columns that are separated by commas, and add that of the status. Raises ConfigError."""
    specs = list(dict.fromkeys(parse(each) for each in text.split(",") if each.strip()))
    if not specs:
        raise errors.ConfigError(f"no columns are named; there are {', '.join(KINDS)}")
    return specs if STATUS in specs else [*specs, STATUS]


def parse(text: str) -> ColumnSpec:
    """Parse one column. Raises ConfigError that names the nearest one."""
    match = _SPEC.fullmatch(text.strip())
    assert match is not None  # noqa: S101 - every text matches
    name = match["name"].strip().lower().replace(" ", "_").replace("-", "_")
    if name not in KINDS:
        near = difflib.get_close_matches(name, KINDS, 1, 0.5)
        meant = f" (did you mean {near[0]}?)" if near else ""
        unknown = f"unknown column {match['name'].strip()[:SHOWN]!r}{meant}"
        raise errors.ConfigError(f"{unknown}; there are {', '.join(KINDS)}")
    options = KINDS[name].options
    if match["quantity"] is not None and "quantity" not in options:
        raise errors.ConfigError(f"the column {name} has no quantity: write {name} instead of {text[:SHOWN]!r}")
    pieces = (match["quantity"] or "1").strip() if match["quantity"] != "" else ""
    if not re.fullmatch("0*[1-9][0-9]{0,8}", pieces):
        raise errors.ConfigError(f"the quantity of {name}@{pieces[:SHOWN]} is not a whole number from 1 to 999999999")
    quantity = None if match["quantity"] is None else int(pieces)
    argument = match["argument"]
    if "spec" in options:
        if not any(map(str.isalnum, argument or "")):
            raise errors.ConfigError(f"the column {name} needs a name, such as {name}:resistance")
        return ColumnSpec(name, spec=" ".join((argument or "").split()))
    if argument is None:
        return ColumnSpec(name, quantity)
    first, _, rest = argument.partition(":")
    is_currency = "currency" in options and first.strip().upper() in config.CURRENCIES
    currency, distributor = (first.strip().upper(), rest.strip()) if is_currency else (None, argument.strip())
    if is_currency and not distributor:
        return ColumnSpec(name, quantity, currency)
    if "distributor" in options and any(map(str.isalnum, distributor)):
        return ColumnSpec(name, quantity, currency, distributor)
    raise errors.ConfigError(f"the column {name} cannot be followed by {text[text.index(':') :][:SHOWN]!r}")


def currencies_and_quantity(specs: Sequence[ColumnSpec]) -> tuple[list[str], int | None]:
    """Return the currencies that are needed, each of which is one query for each line; and the quantity of the priced
    columns, if it is one: the best offer is chosen at it for the others, too."""
    priced = [each for each in specs if each.takes("currency")]
    currencies = list(dict.fromkeys(each.currency or CURRENCY for each in priced)) or [CURRENCY]
    quantities = {each.quantity for each in priced}
    return currencies, quantities.pop() if len(quantities) == 1 else None


def note_without(specs: Sequence[ColumnSpec], features: Collection[str]) -> str | None:
    """Return which columns stay empty without further plan features; None if there are none."""
    kinds = {spec.kind: KINDS[spec.kind].feature for spec in specs}
    empty = {kind: feature for kind, feature in kinds.items() if feature is not None and feature not in features}
    if not empty:
        return None
    missing = ", ".join(dict.fromkeys(empty.values()))
    return f"{', '.join(empty)}: will be empty: the application has no {missing} (configuration: features)"
