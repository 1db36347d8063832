"""Parts as spreadsheets use them, and the interface that fetches them. No I/O.

The structs cannot be in cycles, so that the garbage collector need not visit the hundreds of thousands of a long list.
"""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple, Protocol

import msgspec

from proxy import errors

# What is fetched although the cache has it: nothing, what has no part, or everything. A part that was paid for is
# fetched again only in the last case.
Refresh = Literal["nothing", "failures", "everything"]
STALE_SECONDS = 86_400  # the vendor's terms allow to keep data for 24 hours (contract workbook.md, Files)


SOURCES_MAX = 5  # manufacturers of a number that are looked up


class PartQuery(NamedTuple):
    """One part to look up; equal queries are executed once. Costs one part at most.

    `mpn` or `sku` is not empty; an empty `manufacturer` means any. Prices are converted to `currency` (ISO 4217). With
    `sources`, the manufacturers that have the number are looked up instead, for their part each; with `similar`, the
    parts that may replace it, too.
    """

    mpn: str
    manufacturer: str = ""
    sku: str = ""
    currency: str = "USD"
    sources: bool = False
    similar: bool = False

    @property
    def parts_max(self) -> int:
        """The most parts that it costs."""
        return SOURCES_MAX if self.sources else 1


class Price(msgspec.Struct, frozen=True, gc=False):
    """Price of one piece from this quantity on, in the offer's currency, and converted to that of the query (None: the
    service has no rate)."""

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


class SimilarPart(msgspec.Struct, frozen=True, gc=False):
    """A part that may replace another."""

    mpn: str
    manufacturer: str


class PartOfSource(msgspec.Struct, frozen=True, gc=False):
    """Part of one of the manufacturers that have a number, and parts that may replace it."""

    mpn: str
    manufacturer: str
    similar: tuple[SimilarPart, ...] = ()


class PartResult(NamedTuple):
    """Result of a query: a part, or why there is none. `hits` counts all parts that match: with several, the number
    alone is ambiguous. `fetched` is Unix time; a result from the cache keeps that of its upstream request. `sources`
    are those that the query asks for, instead of the part."""

    query: PartQuery
    part: Part | None
    hits: int
    error: str | None
    fetched: float
    sources: tuple[PartOfSource, ...] = ()


class CostEstimate(NamedTuple):
    """What fetching would cost: distinct queries, those of them in the cache, and parts and upstream requests at
    most. `left`: parts that the quota has left; None without a limit."""

    queries: int
    cached: int
    parts: int
    upstream_requests: int
    left: int | None = None


class BudgetExhausted(errors.BridgeError):
    """The next upstream request might exceed the budget of the run."""


class PartSource(Protocol):
    """Where parts come from."""

    async def estimate(self, queries: Sequence[PartQuery], *, refresh: Refresh = "nothing") -> CostEstimate:
        """Estimate the cost of queries, without any upstream request."""

    def fetch(
        self, queries: Sequence[PartQuery], *, budget: int | None = None, refresh: Refresh = "nothing"
    ) -> AsyncGenerator[PartResult, None]:
        """Yield a result for each distinct query, as they arrive. Results that were yielded are kept: a second run
        gets them from the cache. Raises BudgetExhausted before an upstream request that might exceed `budget` parts.
        Closing the generator waits for requests in flight, whose parts are billed, and keeps their results.
        """

    async def unknown_distributors(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """Return those names and ids that no distributor has, with the names nearest to them. Costs nothing."""

    async def unknown_specs(self, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """Return those names that no spec has, with the names nearest to them. Costs nothing."""

    @property
    def notes(self) -> Sequence[str]:
        """What the user should know before a run: why results are not kept for a later one, if they are not."""

    @property
    def parts_spent(self) -> int:
        """Parts billed so far."""

    @property
    def upstream_requests(self) -> int:
        """Upstream requests sent so far."""
