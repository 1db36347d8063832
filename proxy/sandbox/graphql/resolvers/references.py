"""Queries that name offers: offers by their references, and links that fill carts with them.

Neither returns part objects, so neither is billed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graphql import GraphQLFieldResolver

from proxy.sandbox.catalog import records
from proxy.sandbox.graphql import context, problems, views
from proxy.sandbox.graphql.resolvers import offers


class PartOffer(NamedTuple):
    """An offer with what it belongs to."""

    part_id: str
    seller_id: str
    offer: views.OfferView


class CartLink(NamedTuple):
    """A link to a filled cart; None where the seller takes none."""

    seller_id: str
    cart_url: str | None


def part_offers(
    _root: None, info: context.Info, *, references: list[dict[str, str]], **arguments: Any
) -> list[PartOffer | None]:
    """Offers by part and offer id; null for one that does not exist."""
    market = offers.market(info, arguments)
    return [_part_offer(info, market, one["partId"], one["offerId"]) for one in references]


def _part_offer(info: context.Info, market: views.Market, part_id: str, offer_id: str) -> PartOffer | None:
    record = info.context.catalog.part(part_id)
    if record is None:
        return None
    part = views.PartView(record, market)
    for seller, offer in _offers(info, record, market.country):
        if offer.id == offer_id:
            return PartOffer(part_id, seller.company.id, offers.offer(offer, views.SellerView(seller, part)))
    return None


def _offers(
    info: context.Info, part: records.Part, country: str
) -> Iterator[tuple[records.SellerOffers, records.Offer]]:
    for seller in info.context.catalog.sellers_of(part, country):
        for offer in seller.offers:
            yield seller, offer


def octocart(
    _root: None,
    info: context.Info,
    items: list[dict[str, Any]],
    country: str | None = None,
    currency: str | None = None,
) -> list[CartLink]:
    """A link a seller. The form of the link is ours. Raises ServiceError for a quantity that nobody can order."""
    for one in items:
        for item in one["items"]:
            if item["quantity"] < 1:
                raise problems.ServiceError(f"quantity must be at least 1, not {item['quantity']}")
    return [_cart(info, one["sellerId"], one["items"], country or "US", currency or "USD") for one in items]


def _cart(
    info: context.Info, seller_id: str, items: Sequence[Mapping[str, Any]], country: str, currency: str
) -> CartLink:
    seller = info.context.catalog.company(seller_id)
    if seller is None or not seller.is_octocart_supported or not items:
        return CartLink(seller_id, None)
    market = views.Market(country, currency)
    found = [_part_offer(info, market, item["partId"], item["offerId"]) for item in items]
    if any(offer is None or offer.seller_id != seller_id for offer in found):
        return CartLink(seller_id, None)
    lines = ",".join(f"{item['offerId']}:{item['quantity']}" for item in items)
    return CartLink(
        seller_id, f"{info.context.site_url}/octocart/{seller_id}?country={country}&currency={currency}&items={lines}"
    )


ATTRIBUTES: dict[str, str] = {}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.supPartOffers": part_offers,
    "Query.supOctocart": octocart,
}
