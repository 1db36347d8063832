"""Parts as spreadsheets use them: `gc=False`, because the collector would visit the offers of a long list. No I/O."""

from decimal import Decimal
from typing import NamedTuple

import msgspec

from proxy import errors

CANDIDATES = 5  # parts at most that are looked at where several match, or as parts of other manufacturers


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
    image_url: str | None = None
    specs: tuple[PartSpec, ...] = ()


class PartResult(NamedTuple):
    """The first parts that match, or why there are none; `hits` counts all. `fetched`: Unix time of the request."""

    query: PartQuery
    parts: tuple[Part, ...]
    hits: int
    error: str | None
    fetched: float


class CostEstimate(NamedTuple):
    """What fetching would cost: distinct queries, those of them that are stored, parts if each finds one, and upstream
    requests. `left`: parts that the quota has left; None without a limit."""

    queries: int
    stored: int
    parts_if_one: int
    upstream_requests: int
    left: int | None = None


class BudgetExhausted(errors.BridgeError):
    """The next upstream request might exceed the budget of the run."""
