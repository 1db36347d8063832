"""Catalog records in the market of one request: with its country and currency.

Fields that a view does not have itself are read from its `record`.
"""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from nexar_sandbox.catalog import records


class Market(NamedTuple):
    """Country whose offers are shown (ISO 3166 alpha-2) and currency of converted prices (ISO 4217)."""

    country: str
    currency: str


def cache_id(*parts: object) -> str:
    """Return an opaque id that is the same for the same object."""
    return hashlib.blake2b(":".join(map(str, parts)).encode(), digest_size=12).hexdigest()


@dataclass(slots=True, eq=False)
class PartView:
    """A part in a market. Two views of one part are two part objects of a response, and billed twice."""

    record: records.Part
    market: Market


@dataclass(slots=True, eq=False)
class SellerView:
    record: records.SellerOffers
    part: PartView


@dataclass(slots=True, eq=False)
class OfferView:
    """One offer of a seller. `breaks` are the price breaks to show."""

    record: records.Offer
    seller: SellerView
    breaks: tuple[records.PriceBreak, ...]


class PriceView(NamedTuple):
    """A price break with its converted price; `key` identifies it in cache ids."""

    key: tuple[object, ...]
    quantity: int
    price: float
    currency: str
    converted_price: float
    converted_currency: str
    conversion_rate: float


@dataclass(slots=True, eq=False)
class SupPartMatch:
    reference: str | None
    hits: int
    parts: tuple[PartView, ...] = ()
    error: str | None = None


@dataclass(slots=True, eq=False)
class SupPartResult:
    part: PartView
    aka_mpn: str | None
    query: str


@dataclass(slots=True, eq=False)
class SupPartResultSet:
    hits: records.SearchHits
    page: tuple[SupPartResult, ...]
    query: str
    conditions: records.SearchConditions
    warnings: tuple[str, ...] = ()
