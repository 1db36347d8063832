"""Sellers, offers and prices of parts in the market of the query; offers by reference (contract graphql.md §2.5 and
§2.6)."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graphql import GraphQLFieldResolver

from nexar_sandbox.catalog import records, units
from nexar_sandbox.graphql import context, limits

SITE = "https://octopart.com"


def market(arguments: Mapping[str, Any]) -> context.Market:
    """Return the market of the arguments of a root field. Those about live data of sellers have no effect."""
    return context.Market(arguments["country"], arguments["currency"])


def listed(part: context.PartView, info: context.Info) -> tuple[records.SellerOffers, ...]:
    """All sellers of a part, brokers too, as seen from the market's country."""
    return info.context.catalog.sellers_of(part.record, part.market.country)


def sellers(
    part: context.PartView,
    info: context.Info,
    *,
    includeBrokers: bool,  # noqa: N803 (the schema's argument names)
    authorizedOnly: bool,  # noqa: N803
    limit: int | None = None,
    start: int | None = None,
) -> list[context.SellerView]:
    """Return the sellers that pass, then the slice of them; a negative limit or start counts as absent."""
    passing = [
        context.SellerView(seller, part)
        for seller in listed(part, info)
        if (includeBrokers or not seller.is_broker) and (seller.is_authorized or not authorizedOnly)
    ]
    first = max(start or 0, 0)
    return passing[first:] if limit is None or limit < 0 else passing[first : first + limit]


def offers(
    seller: context.SellerView,
    _info: context.Info,
    priceBreaks: list[int] | None = None,  # noqa: N803
) -> list[context.OfferView]:
    """Return the offers. With `priceBreaks` an offer shows only the breaks that hold at one of these quantities:
    the contract names the argument and not its effect."""
    return [context.OfferView(record, seller, breaks_at(record.prices, priceBreaks)) for record in seller.record.offers]


def breaks_at(breaks: Sequence[records.PriceBreak], quantities: Sequence[int] | None) -> tuple[records.PriceBreak, ...]:
    """Return the breaks valid at one of `quantities`, in every currency; all breaks for None."""
    if quantities is None:
        return tuple(breaks)
    steps = {step.quantity for step in breaks}
    # A quantity pays the price of the highest break that it reaches.
    valid_steps = {max((step for step in steps if step <= quantity), default=None) for quantity in quantities}
    return tuple(step for step in breaks if step.quantity in valid_steps)


def prices(offer: context.OfferView, _info: context.Info) -> list[context.PriceView]:
    key = (offer.record.id, offer.record.eligible_region)
    return [price(step, offer.seller.part.market, key) for step in offer.breaks]


def price(step: records.PriceBreak, market: context.Market, key: tuple[object, ...]) -> context.PriceView:
    """One price in the market's currency: the plain product of price and rate (contract graphql.md §1.5).
    A price without currency is taken for USD, as the recorded ones are."""
    rate = units.exchange_rate(step.currency or "USD", market.currency) or 1.0
    place = (*key, step.quantity, step.currency, market.currency)
    converted = step.price * rate
    return context.PriceView(place, step.quantity, step.price, step.currency, converted, market.currency, rate)


def _opaque(kind: str, offer: context.OfferView) -> str:
    raw = f"{kind}:{offer.seller.part.record.id}:{offer.record.id}".encode()
    return base64.urlsafe_b64encode(hashlib.blake2b(raw, digest_size=36).digest()).decode()


class SupPartOffer(NamedTuple):
    part_id: str
    seller_id: str
    offer: context.OfferView


def part_offers(
    _root: None, info: context.Info, *, references: list[dict[str, str]], **arguments: Any
) -> list[SupPartOffer | None]:
    """Offers by part and offer id; null for one that does not exist."""
    offer_market = market(arguments)
    return [_part_offer(info, offer_market, reference["partId"], reference["offerId"]) for reference in references]


def _part_offer(info: context.Info, market: context.Market, part_id: str, offer_id: str) -> SupPartOffer | None:
    record = info.context.catalog.part(part_id)
    if record is None:
        return None
    part = context.PartView(record, market)
    for seller in listed(part, info):
        for listed_offer in seller.offers:
            if listed_offer.id == offer_id:
                view = context.OfferView(listed_offer, context.SellerView(seller, part), listed_offer.prices)
                return SupPartOffer(part_id, seller.company.id, view)
    return None


def country_of(code: str) -> dict[str, str]:
    """Return the country with this code; an unknown one has its code as name and no continent."""
    name, continent = limits.COUNTRIES["known"].get(code, (code, ""))
    return {"name": name, "countryCode": code, "continentCode": continent}


RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "SupPart.sellers": sellers,
    "SupPartSeller._cacheId": lambda seller, _: context.cache_id(
        "seller", seller.part.record.id, seller.record.company.id, *seller.part.market
    ),
    "SupPartSeller.shipsToCountries": lambda seller, _: [country_of(code) for code in seller.record.ships_to],
    "SupPartSeller.offers": offers,
    "SupOffer._cacheId": lambda offer, _: context.cache_id("offer", offer.record.id, *offer.seller.part.market),
    "SupOffer.isCustomPricing": lambda _offer, _: False,
    "SupOffer.prices": prices,
    # In the form of recorded links; their targets do not exist.
    "SupOffer.clickUrl": lambda offer, _: f"{SITE}/opatz8j6/a1?t={_opaque('click', offer)}",
    "SupOffer.internalUrl": lambda offer, _: f"{SITE}/opatz8j6/i1?t={_opaque('internal', offer)}",
    "SupPricePoint._cacheId": lambda price, _: context.cache_id("price", *price.key),
    "Query.supPartOffers": part_offers,
    # Sellers of the sandbox have no carts.
    "Query.supOctocart": lambda _root, _info, **given: [
        {"sellerId": cart["sellerId"], "cartUrl": None} for cart in given["items"]
    ],
}
