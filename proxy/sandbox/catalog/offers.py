"""Offers as records: what every seller lists of a part, seen from one country.

`seller_offers` is a pure function of the part, its terms, the sellers and the seed; the store caches it. The
figures come from `listing.py`; here they get order codes, packaging, currencies and the nulls that recorded
offers have (contract graphql.md §2.6).
"""

import hashlib
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from proxy.sandbox.catalog import listing, records, skus

_LATEST = datetime(2026, 11, 1, 23, 59, 59, tzinfo=UTC)
_CURRENCIES = {
    "US": "USD", "GB": "GBP", "SG": "SGD", "JP": "JPY", "CN": "CNY", "CA": "CAD", "HK": "HKD", "IN": "INR",
    "AU": "AUD", "CH": "CHF", "KR": "KRW", "DE": "EUR", "FR": "EUR", "IT": "EUR", "ES": "EUR", "NL": "EUR",
    "AT": "EUR", "BE": "EUR", "IE": "EUR", "FI": "EUR", "SE": "SEK", "NO": "NOK", "DK": "DKK", "PL": "PLN",
}  # fmt: skip
_LOOSE = ("Cut Tape", "Bulk", "Tray", "Tube", "Bag")
_SECOND = ("EUR", "GBP", "SGD", "JPY", "HKD", "CNY")


def seller_offers(
    part: records.Part,
    terms: listing.Terms,
    sellers: Sequence[listing.Seller],
    seed: int,
    country: str = "US",
) -> tuple[records.SellerOffers, ...]:
    """What each seller lists: authorised sellers first, then those in stock, then those that price at all.

    A seller with regions shows its variant for `country` (ISO 3166 alpha-2), in that country's currency;
    stock and order codes are the same in all variants.
    """
    path = part.category.path if part.category else ""
    found = listing.listings(int(part.id), path, terms, sellers, seed)
    shown = [_seller(part, terms, one, seed, country) for one in found]
    return tuple(sorted(shown, key=_place))


def variant_for(seller: listing.Seller, country: str) -> tuple[str | None, str]:
    """The eligible region and the currency of the seller's variant for `country`."""
    if country in seller.regions:
        return country, _CURRENCIES.get(country, seller.currency)
    return None, seller.currency


def order_codes(part_id: int, maker_id: int, mpn: str, terms: listing.Terms, one: listing.Listing) -> tuple[str, ...]:
    """The seller's order codes for the part, one a packaging; a code named by the part's line stands
    first."""
    made = [
        skus.sku(one.seller.company.id, skus.Numbered(part_id, maker_id, mpn, variant))
        for variant in range(len(one.ladders))
    ]
    return (terms.skus.get(one.seller.company.id, made[0]), *made[1:])


def _seller(
    part: records.Part, terms: listing.Terms, one: listing.Listing, seed: int, country: str
) -> records.SellerOffers:
    company = one.seller.company
    key = f"{seed}:{part.id}:{company.id}".encode()
    draw = hashlib.blake2b(key, digest_size=16).digest()
    codes = order_codes(int(part.id), int(part.manufacturer.id), part.mpn, terms, one)
    at_home = variant_for(one.seller, country)
    return records.SellerOffers(
        company=company,
        country=company.display_flag,
        is_authorized=one.seller.authorized,
        is_broker=company.is_broker,
        is_rfq=one.stock == listing.QUOTE_ONLY or (not one.seller.authorized and draw[0] < 128),
        ships_to=_ships_to(company, one.seller),
        offers=tuple(
            _offer(int(part.id), one, variant, code=code, home=at_home, draw=draw) for variant, code in enumerate(codes)
        ),
    )


def _offer(
    part_id: int, one: listing.Listing, variant: int, *, code: str, home: tuple[str | None, str], draw: bytes
) -> records.Offer:
    region, currency = home
    ladder = one.ladders[variant]
    reel = bool(ladder) and ladder[0] >= 1000
    return records.Offer(
        id=_id(part_id, one.position, variant),
        sku=code,
        eligible_region=region,
        inventory_level=one.stock,
        packaging=_packaging(one, variant, reel, draw),
        moq=ladder[0] if ladder and draw[2] < 235 else None,
        prices=_prices(one, ladder, currency, draw),
        updated=_updated(one.seller, draw),
        factory_lead_days=7 * (2 + draw[5] % 24) if draw[6] < 100 else None,
        on_order_quantity=100 * (1 + draw[8]) if draw[7] < 8 else None,
        factory_pack_quantity=ladder[0] if reel and draw[9] < 128 else None,
        order_multiple=_multiple(one, variant, draw) if one.seller.order_multiple else None,
        multipack_quantity=(1, 10, 100)[draw[10] % 3] if draw[11] < 16 else None,
    )


def _prices(
    one: listing.Listing, ladder: tuple[int, ...], currency: str, draw: bytes
) -> tuple[records.PriceBreak, ...]:
    """The breaks by quantity. A few lists name every price twice: in a second currency, or once without
    any."""
    second = _second_currency(currency, draw)
    breaks: list[records.PriceBreak] = []
    for quantity in ladder:
        first = listing.price(one, quantity, currency)
        breaks.append(records.PriceBreak(quantity, first, currency))
        if second is not None:
            other = listing.price(one, quantity, second) if second else first
            breaks.append(records.PriceBreak(quantity, other, second))
    return tuple(breaks)


def _second_currency(currency: str, draw: bytes) -> str | None:
    if draw[3] == 0 and draw[4] < 64:
        return ""
    if 0 < draw[3] < 17:
        return "USD" if currency != "USD" else _SECOND[draw[4] % len(_SECOND)]
    return None


def _packaging(one: listing.Listing, variant: int, reel: bool, draw: bytes) -> str | None:
    if not one.seller.authorized or (len(one.ladders) == 1 and draw[1] < 222):
        return None
    if reel:
        return "Tape & Reel"
    if len(one.ladders) == 1:
        return _LOOSE[draw[12] % len(_LOOSE)]
    return "Custom Reel" if variant else "Cut Tape"


def _id(part_id: int, position: int, variant: int) -> str:
    """The offer's id, the same in every country: a number, and for one seller in sixteen a GUID.

    The service has ids that are no numbers since 2026-01; their form is the sandbox's own choice."""
    # Room for four packagings a seller, a thousand sellers a part.
    number = part_id * 4096 + position * 4 + variant
    if (part_id + position) % 16:
        return str(number)
    return str(uuid.UUID(bytes=hashlib.blake2b(str(number).encode(), digest_size=16).digest(), version=4))


def _multiple(one: listing.Listing, variant: int, draw: bytes) -> int:
    """As many pieces as the least order, mostly; a reel that is cut to length is sold in the loose pieces' steps."""
    ladder = one.ladders[0 if draw[13] < 128 else variant]
    return ladder[0] if ladder else 1


def _updated(seller: listing.Seller, draw: bytes) -> str:
    # Authorised sellers send a feed a day, the others when they come to it.
    span = 86_400 if seller.authorized else 30 * 86_400
    age = int.from_bytes(draw[13:16]) % span
    return (_LATEST - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ships_to(company: records.Company, seller: listing.Seller) -> tuple[str, ...]:
    """Most sellers ship everywhere; a few independent ones stay at home."""
    if seller.authorized or company.display_flag is None or int(company.id) % 8:
        return ()
    return (company.display_flag,)


def _place(seller: records.SellerOffers) -> tuple[bool, bool, bool]:
    stock = any(offer.inventory_level > 0 for offer in seller.offers)
    priced = any(offer.prices for offer in seller.offers)
    return not seller.is_authorized, not (stock and priced), not priced
