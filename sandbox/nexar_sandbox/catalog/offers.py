"""Offers as records: the offers of every seller for a part, for one country.

`seller_offers` is a pure function of the part, its terms and the sellers; the store caches it. The figures
come from listings.py; order codes, packaging, currencies and the nulls of recorded offers are added here (contract
graphql.md §2.6).
"""

import hashlib
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from nexar_sandbox.catalog import listings, matching, records

_LATEST_UPDATE = datetime(2026, 11, 1, 23, 59, 59, tzinfo=UTC)
_CURRENCIES = {
    "US": "USD", "GB": "GBP", "SG": "SGD", "JP": "JPY", "CN": "CNY", "CA": "CAD", "HK": "HKD", "IN": "INR",
    "AU": "AUD", "CH": "CHF", "KR": "KRW", "DE": "EUR", "FR": "EUR", "IT": "EUR", "ES": "EUR", "NL": "EUR",
    "AT": "EUR", "BE": "EUR", "IE": "EUR", "FI": "EUR", "SE": "SEK", "NO": "NOK", "DK": "DKK", "PL": "PLN",
}  # fmt: skip
_LOOSE_PACKAGINGS = ("Cut Tape", "Bulk", "Tray", "Tube", "Bag")
_SECOND_CURRENCIES = ("EUR", "GBP", "SGD", "JPY", "HKD", "CNY")
# Order codes by seller id: Digi-Key, Mouser, Newark, Farnell, element14, RS, Future, LCSC.
_ORDER_CODES = {
    "459": "{prefix}-{id}-{package}-ND",
    "2401": "{prefix}-{norm}",
    "2402": "{newark}",
    "819": "{farnell}",
    "3702": "{farnell}",
    "3261": "{rs}",
    "2454": "{future}",
    "11779": "C{id}",
}


def seller_offers(
    part: records.Part,
    terms: listings.OfferTerms,
    sellers: Sequence[records.Company],
    country: str = "US",
) -> tuple[records.SellerOffers, ...]:
    """The offers of each seller: authorized sellers first, then those with stock and prices, then those with prices.

    A seller with regions shows its variant for `country` (ISO 3166 alpha-2), in that country's currency;
    stock and order codes are the same in all variants.
    """
    path = part.category.path if part.category else ""
    part_listings = listings.listings(int(part.id), path, terms, sellers)
    offers_by_seller = [_seller(part, terms, listing, country) for listing in part_listings]
    return tuple(sorted(offers_by_seller, key=_sort_key))


def variant_for(seller: records.Company, country: str) -> tuple[str | None, str]:
    """The eligible region and the currency of the seller's variant for `country`."""
    if country in seller.regions:
        return country, _CURRENCIES.get(country, seller.currency)
    return None, seller.currency


def order_codes(
    part_id: int, maker_id: int, mpn: str, terms: listings.OfferTerms, listing: listings.CatalogListing
) -> tuple[str, ...]:
    """The seller's order codes for the part, one a packaging; a code given by the part's line is first."""
    seller = listing.seller.id
    codes = [_order_code(seller, part_id, maker_id, mpn, variant) for variant in range(len(listing.ladders))]
    return (terms.skus.get(seller, codes[0]), *codes[1:])


def _order_code(seller: str, part_id: int, maker_id: int, mpn: str, variant: int) -> str:
    """The order code in the seller's format; most sellers use the MPN itself. `variant` counts packagings from 0."""
    lead, rest = divmod(part_id, 260_000)
    return _ORDER_CODES.get(seller, "{mpn}").format(
        mpn=mpn,
        norm=matching.normalize(mpn),
        id=part_id,
        prefix=100 + maker_id % 900,
        package=(1, 2, 6)[variant % 3],
        newark=f"{lead:02}{chr(ord('A') + rest // 10_000)}{rest % 10_000:04}",
        farnell=f"{part_id + 1_000_000}{'RL' if variant else ''}",
        rs=f"{part_id // 10_000:03}-{part_id % 10_000:04}",
        future=part_id * 3 + 7,
    )


def _seller(
    part: records.Part, terms: listings.OfferTerms, listing: listings.CatalogListing, country: str
) -> records.SellerOffers:
    company = listing.seller
    key = f"1:{part.id}:{company.id}".encode()
    draw = hashlib.blake2b(key, digest_size=16).digest()
    codes = order_codes(int(part.id), int(part.manufacturer.id), part.mpn, terms, listing)
    variant_of = variant_for(company, country)
    return records.SellerOffers(
        company=company,
        country=company.display_flag,
        is_authorized=company.is_authorized,
        is_broker=company.is_broker,
        is_rfq=listing.stock == listings.QUOTE_ONLY or (not company.is_authorized and draw[0] < 128),
        ships_to=_ships_to(company),
        offers=tuple(
            _offer(int(part.id), listing, variant, code=code, region=variant_of, draw=draw)
            for variant, code in enumerate(codes)
        ),
    )


def _offer(
    part_id: int,
    listing: listings.CatalogListing,
    variant: int,
    *,
    code: str,
    region: tuple[str | None, str],
    draw: bytes,
) -> records.Offer:
    eligible_region, currency = region
    ladder = listing.ladders[variant]
    reel = bool(ladder) and ladder[0] >= 1000
    return records.Offer(
        id=_id(part_id, listing.position, variant),
        sku=code,
        eligible_region=eligible_region,
        inventory_level=listing.stock,
        packaging=_packaging(listing, variant, reel, draw),
        moq=ladder[0] if ladder and draw[2] < 235 else None,
        prices=_prices(listing, ladder, currency, draw),
        updated=_updated(listing.seller, draw),
        factory_lead_days=7 * (2 + draw[5] % 24) if draw[6] < 100 else None,
        on_order_quantity=100 * (1 + draw[8]) if draw[7] < 8 else None,
        factory_pack_quantity=ladder[0] if reel and draw[9] < 128 else None,
        order_multiple=_multiple(listing, variant, draw) if listing.seller.order_multiple else None,
        multipack_quantity=(1, 10, 100)[draw[10] % 3] if draw[11] < 16 else None,
    )


def _prices(
    listing: listings.CatalogListing, ladder: tuple[int, ...], currency: str, draw: bytes
) -> tuple[records.PriceBreak, ...]:
    """The breaks by quantity. A few listings have every price twice: in a second currency, or once without any."""
    second = _second_currency(currency, draw)
    breaks: list[records.PriceBreak] = []
    for quantity in ladder:
        first_price = listings.price(listing, quantity, currency)
        breaks.append(records.PriceBreak(quantity, first_price, currency))
        if second is not None:
            second_price = listings.price(listing, quantity, second) if second else first_price
            breaks.append(records.PriceBreak(quantity, second_price, second))
    return tuple(breaks)


def _second_currency(currency: str, draw: bytes) -> str | None:
    if draw[3] == 0 and draw[4] < 64:
        return ""
    if 0 < draw[3] < 17:
        return "USD" if currency != "USD" else _SECOND_CURRENCIES[draw[4] % len(_SECOND_CURRENCIES)]
    return None


def _packaging(listing: listings.CatalogListing, variant: int, reel: bool, draw: bytes) -> str | None:
    if not listing.seller.is_authorized or (len(listing.ladders) == 1 and draw[1] < 222):
        return None
    if reel:
        return "Tape & Reel"
    if len(listing.ladders) == 1:
        return _LOOSE_PACKAGINGS[draw[12] % len(_LOOSE_PACKAGINGS)]
    return "Custom Reel" if variant else "Cut Tape"


def _id(part_id: int, position: int, variant: int) -> str:
    """The offer's id, the same in every country: a number, and for one seller in sixteen a GUID.

    The service has ids that are no numbers since 2026-01; their form is the sandbox's own choice."""
    # Four packagings for each seller, a thousand sellers for each part.
    number = part_id * 4096 + position * 4 + variant
    if (part_id + position) % 16:
        return str(number)
    return str(uuid.UUID(bytes=hashlib.blake2b(str(number).encode(), digest_size=16).digest(), version=4))


def _multiple(listing: listings.CatalogListing, variant: int, draw: bytes) -> int:
    """The order multiple: mostly the minimum order quantity, for some reels that of single pieces."""
    ladder = listing.ladders[0 if draw[13] < 128 else variant]
    return ladder[0] if ladder else 1


def _updated(seller: records.Company, draw: bytes) -> str:
    # Authorized sellers send a feed every day, the others within a month.
    span = 86_400 if seller.is_authorized else 30 * 86_400
    age = int.from_bytes(draw[13:16]) % span
    return (_LATEST_UPDATE - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ships_to(seller: records.Company) -> tuple[str, ...]:
    """Countries that the seller ships to; () for all. A few independent sellers ship to their own country only."""
    if seller.is_authorized or seller.display_flag is None or int(seller.id) % 8:
        return ()
    return (seller.display_flag,)


def _sort_key(seller: records.SellerOffers) -> tuple[bool, bool, bool]:
    stock = any(offer.inventory_level > 0 for offer in seller.offers)
    priced = any(offer.prices for offer in seller.offers)
    return not seller.is_authorized, not (stock and priced), not priced
