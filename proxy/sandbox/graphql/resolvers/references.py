"""Queries around parts: offers by reference, cart links, and the internal ones that the sandbox has no
data for.

The internal queries answer that they know nothing: null, or a list of nulls as long as what was asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graphql import GraphQLFieldResolver

from proxy.sandbox.catalog import records
from proxy.sandbox.graphql import context, views


class PartOffer(NamedTuple):
    """An offer with what it belongs to."""

    part_id: str
    seller_id: str
    offer: views.OfferView


class CartLink(NamedTuple):
    """A link to a filled cart; None where the seller takes none."""

    seller_id: str
    cart_url: str | None


class ErrorPayload(NamedTuple):
    """What went wrong, as a value."""

    message: str


def part_offers(
    _root: None,
    info: context.Info,
    *,
    country: str,
    currency: str,
    references: list[dict[str, str]],
    **_live: object,
) -> list[PartOffer | None]:
    """Offers by part and offer id; null for one that does not exist. Offers are not billed, parts are."""
    market = views.Market(country, currency)
    return [_part_offer(info, market, one["partId"], one["offerId"]) for one in references]


def _part_offer(info: context.Info, market: views.Market, part_id: str, offer_id: str) -> PartOffer | None:
    record = info.context.catalog.part(part_id)
    if record is None:
        return None
    part = views.PartView(record, market)
    for seller, offer in _offers(info, record, market.country):
        if offer.id == offer_id:
            view = views.OfferView(offer, views.SellerView(seller, part), offer.prices)
            return PartOffer(part_id, seller.company.id, view)
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
    """A link a seller. The form of the link is ours."""
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
    return CartLink(seller_id, f"{info.context.site_url}/octocart/{seller_id}?currency={currency}&items={lines}")


def unknown(_root: None, _info: context.Info, **_arguments: object) -> None:
    """The sandbox has no Ciiva ids and no extras."""


def all_unknown(_root: None, _info: context.Info, **arguments: Sequence[str]) -> list[None]:
    """Null for each id that was asked for."""
    return [None for ids in arguments.values() for _ in ids]


def extras(
    _root: None,
    _info: context.Info,
    partIds: list[str],  # noqa: N803 (the schema's argument name)
) -> list[ErrorPayload]:
    """An error as value for each part."""
    return [ErrorPayload(f"no extras for part {part_id}") for part_id in partIds]


def payload_type(_value: object, _info: context.Info, _kind: object) -> str:
    """The sandbox only ever has the error branch of the union."""
    return "SupErrorPayload"


ATTRIBUTES: dict[str, str] = {}
RESOLVERS: dict[str, GraphQLFieldResolver] = {
    "Query.supPartOffers": part_offers,
    "Query.supOctocart": octocart,
    "Query.supOctopartIdFromCiivaId": unknown,
    "Query.supPartIdFromCiivaId": unknown,
    "Query.supPartIdsFromCiivaIds": all_unknown,
    "Query.supCiivaIdFromPartId": unknown,
    "Query.supCiivaIdsFromPartIds": all_unknown,
    "Query.supPartExtrasByPartId": unknown,
    "Query.supPartExtrasByPartIds": extras,
}
