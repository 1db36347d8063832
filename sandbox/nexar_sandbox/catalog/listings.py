"""Listings: which seller lists a part, how much of it and at what price, drawn from the part's id.

Everything random about offers is decided here; offers.py builds records from the same figures. Each part has one stream
of random bytes with eight bytes for each seller, so that a figure never depends on the number of sellers.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from nexar_sandbox.catalog import records, units

# Bytes of the random stream: for the part itself, and for each seller.
_HEAD = 4
_WIDTH = 8


class _Table(msgspec.Struct, frozen=True):
    price_bands: tuple[tuple[str, float, float], ...]
    small_ladders: tuple[tuple[int, ...], ...]
    reel_ladders: tuple[tuple[int, ...], ...]


_TABLE = msgspec.toml.decode((Path(__file__).parent / "data/prices.toml").read_bytes(), type=_Table)
NOT_STOCKED, SOME_STOCK, UNKNOWN_STOCK, QUOTE_ONLY = -1, -2, -3, -4
_STOCK_CODES = {0: NOT_STOCKED, 1: NOT_STOCKED, 2: SOME_STOCK, 3: SOME_STOCK, 4: UNKNOWN_STOCK, 5: QUOTE_ONLY}
# Of 256 listings, those below this figure are out of stock.
_OUT_OF_STOCK = 45
# Of 256 listings, those with prices in whole units; prices below the second figure keep their decimals.
_ROUND, _ROUNDED_FROM = 12, 2.0
_STOCKS = tuple(int(10 ** (0.6 + 4.7 * size / 255)) for size in range(256))


@dataclass(frozen=True, slots=True)
class OfferTerms:
    """Offer terms of a part's line: `kind` "", "none", "brokers" or "nostock"; order codes and stock codes by seller
    id."""

    kind: str = ""
    skus: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, int] = field(default_factory=dict)


class CatalogListing(NamedTuple):
    """The figures of one seller for one part. `unit` is the USD price of one piece, `fall` the exponent by which it
    falls with the quantity; `ladders` are the quantities of its price breaks, one tuple for each packaging, () if
    unpriced. `is_round`: prices that are not small are whole numbers."""

    position: int
    seller: records.Company
    stock: int
    unit: float
    fall: float
    ladders: tuple[tuple[int, ...], ...]
    is_round: bool


def listings(
    part_id: int, path: str, terms: OfferTerms, sellers: Sequence[records.Company]
) -> tuple[CatalogListing, ...]:
    """The listings of the part with `part_id` in the category at `path`, in the order of `sellers`."""
    if terms.kind == "none":
        return ()
    draw = hashlib.shake_128(f"1:{part_id}".encode()).digest(_HEAD + _WIDTH * len(sellers))
    low, high = next((low, high) for part, low, high in _TABLE.price_bands if part in path)
    # Spread evenly over the logarithm: cheap parts are as many as dear ones.
    base = low * (high / low) ** (draw[0] / 255)
    chosen = _chosen(draw, terms, sellers)
    return tuple(_listing(position, sellers[position], terms, draw, base) for position in chosen)


def price(listing: CatalogListing, quantity: int, currency: str) -> float:
    """The unit price from `quantity` on, in `currency` with five decimals, never 0."""
    factor = units.exchange_rate("USD", currency) or 1.0
    fallen: float = listing.unit * float(quantity) ** -listing.fall * factor
    if listing.is_round and fallen >= _ROUNDED_FROM:
        return float(round(fallen))
    return max(round(fallen, 5), 0.00001)


def _chosen(draw: bytes, terms: OfferTerms, sellers: Sequence[records.Company]) -> list[int]:
    # Some parts are listed by most sellers, some by few.
    popularity = 0.4 + draw[1] / 255
    drawn = draw[_HEAD::_WIDTH]
    if terms.kind == "brokers":
        brokers = [i for i, seller in enumerate(sellers) if seller.is_broker]
        return [i for i in brokers if drawn[i] < 128] or brokers[:1]
    named = {*terms.skus, *terms.codes}
    # Recorded offers are always listed, whatever is drawn.
    if not named:
        return [i for i, seller in enumerate(sellers) if drawn[i] < seller.weight * popularity * 256]
    return [i for i, seller in enumerate(sellers) if seller.id in named or drawn[i] < seller.weight * popularity * 256]


def _listing(position: int, seller: records.Company, terms: OfferTerms, draw: bytes, base: float) -> CatalogListing:
    at = _HEAD + _WIDTH * position
    stock = terms.codes.get(seller.id)
    if stock is None:
        stock = _stock(draw[at + 1], draw[at + 2], terms.kind)
    spread = draw[at + 3] / 255
    unit = base * (0.85 + 0.4 * spread) if seller.is_authorized else base * 0.5 * 5.0**spread
    fall = 0.06 + draw[at + 4] / 255 * 0.12
    ladders = _ladders(seller, draw[at + 5], draw[at + 6], base)
    return CatalogListing(position, seller, stock, unit, fall, ladders, draw[at + 7] < _ROUND)


def _stock(kind: int, size: int, offers: str) -> int:
    if kind in _STOCK_CODES and offers != "nostock":
        return _STOCK_CODES[kind]
    return 0 if kind < _OUT_OF_STOCK or offers == "nostock" else _STOCKS[size]


def _ladders(seller: records.Company, count: int, shape: int, base: float) -> tuple[tuple[int, ...], ...]:
    if count < (68 if seller.is_authorized else 154):
        return ((),)
    small = _TABLE.small_ladders[shape % len(_TABLE.small_ladders)]
    reel = _TABLE.reel_ladders[shape // 8 % len(_TABLE.reel_ladders)]
    if not seller.is_authorized or base > 3.0:
        return (small,)
    if shape >= 215:
        return (small, reel, small) if shape >= 245 else (small, reel)
    return (reel,) if shape >= 185 else (small,)
