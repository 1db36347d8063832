"""Records of the catalog as one request sees them: with its country and currency, and the links that the
site adds.

Fields that a view does not have itself are read from its `record`. Made by resolvers, never kept.
"""

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from proxy.sandbox.catalog import records
from proxy.sandbox.catalog import search_hits as ranking
from proxy.sandbox.graphql import distributors


class Market(NamedTuple):
    """Whose offers are shown (ISO 3166 alpha-2) and what prices are converted to (ISO 4217). `live`: sellers are asked
    for data of this moment."""

    country: str
    currency: str
    live: distributors.LiveDataRequest | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from other markets, whatever the time."""
        return (self.country, self.currency, *(self.live.customer_of if self.live else ()))


def cache_id(*parts: object) -> str:
    """An opaque key, the same for the same object."""
    return hashlib.blake2b(":".join(map(str, parts)).encode(), digest_size=12).hexdigest()


@dataclass(slots=True, eq=False)
class PartView:
    """A part in a market. Two views of one part are two part objects of an answer."""

    record: records.Part
    market: Market


@dataclass(slots=True, eq=False)
class SellerView:
    """What a seller lists of a part."""

    record: records.SellerOffers
    part: PartView


@dataclass(slots=True, eq=False)
class OfferView:
    """One offer of a seller. `breaks` are the price breaks to show; `is_custom_pricing`: they are the caller's own."""

    record: records.Offer
    seller: SellerView
    breaks: tuple[records.PriceBreak, ...]
    is_custom_pricing: bool


class PriceView(NamedTuple):
    """A price break with its conversion; `key` tells it from all others."""

    key: tuple[object, ...]
    quantity: int
    price: float
    currency: str
    converted_price: float
    converted_currency: str
    conversion_rate: float


@dataclass(slots=True, eq=False)
class SupPartMatch:
    """The answer to one query of supMultiMatch."""

    reference: str | None
    hits: int
    parts: tuple[PartView, ...] = ()
    error: str | None = None


@dataclass(slots=True, eq=False)
class SupPartResult:
    """One result of a search."""

    part: PartView
    aka_mpn: str | None
    query: str


@dataclass(slots=True, eq=False)
class SupPartResultSet:
    """The answer to a search: all hits ranked, the page of them, and what was asked."""

    ranked: ranking.SearchHits
    page: tuple[SupPartResult, ...]
    query: str
    conditions: records.SearchConditions
    warnings: tuple[str, ...] = field(default=())
