"""Offers and broker listings of a part as v3 objects (contract v3-rest.md §3.3, §3.4)."""

import hashlib
from collections.abc import Iterable
from typing import Any

from proxy.sandbox.catalog import listings, records
from proxy.sandbox.legacy_v3 import companies, disturbances, synthetic_values

Object = dict[str, Any]


class OfferObjects:
    """Builds offers. `country` is part of click URLs, `currency` is the home currency."""

    def __init__(self, company_objects: companies.CompanyObjects, country: str, currency: str) -> None:
        self._company_objects, self._country, self._currency = company_objects, country, currency

    def of(
        self,
        part_id: str,
        sellers: Iterable[records.SellerOffers],
        apikey: str,
        draws: disturbances.RequestDisturbances,
    ) -> list[Object]:
        """All offers but those of brokers, in v3's order."""
        offers = [(seller, offer) for seller in sellers if not seller.is_broker for offer in seller.offers]
        offers.sort(key=lambda pair: _rank(pair[0], pair[1], self._currency))
        if draws.active:
            offers.sort(key=lambda pair: draws.place(part_id, pair[1].id) or 0.0)
        return [self._offer(part_id, seller, offer, apikey, draws) for seller, offer in offers]

    def broker_listings(self, part_id: str, sellers: Iterable[records.SellerOffers], apikey: str) -> list[Object]:
        """One listing per broker."""
        return [self._listing(part_id, seller, apikey) for seller in sellers if seller.is_broker]

    def _offer(
        self,
        part_id: str,
        seller: records.SellerOffers,
        offer: records.Offer,
        apikey: str,
        draws: disturbances.RequestDisturbances,
    ) -> Object:
        company, region = seller.company, offer.eligible_region
        factor = draws.price(offer.id) if draws.active else 1.0
        pieces = draws.stock(offer.id, offer.inventory_level) if draws.active else offer.inventory_level
        return {
            "sku": offer.sku,
            "packaging": offer.packaging,
            "on_order_eta": synthetic_values.on_order_eta(offer),
            "last_updated": offer.updated,
            "order_multiple": offer.order_multiple,
            "in_stock_quantity": pieces,
            "eligible_region": region or "",
            "moq": offer.moq,
            "on_order_quantity": offer.on_order_quantity,
            "octopart_rfq_url": synthetic_values.rfq_url(part_id, offer.id, seller.is_rfq),
            "__class__": "PartOffer",
            "seller": self._company_objects.seller(company),
            "product_url": self._click_url(part_id, company.id, offer.id, apikey),
            "factory_order_multiple": offer.factory_pack_quantity,
            "_naive_id": "_".join(filter(None, (company.id, offer.sku, region))),
            "factory_lead_days": offer.factory_lead_days,
            "prices": _prices(offer.prices, factor),
            "multipack_quantity": None if offer.multipack_quantity is None else str(offer.multipack_quantity),
            "_custom": synthetic_values.custom(company.id, offer),
            "is_authorized": seller.is_authorized,
            "is_realtime": False,
        }

    def _listing(self, part_id: str, seller: records.SellerOffers, apikey: str) -> Object:
        first = seller.offers[0].id if seller.offers else None
        return {
            "octopart_rfq_url": synthetic_values.rfq_url(part_id, first or "", seller.is_rfq),
            "__class__": "BrokerListing",
            "seller": self._company_objects.seller(seller.company),
            "listing_url": first and self._click_url(part_id, seller.company.id, first, apikey),
        }

    def _click_url(self, part_id: str, seller_id: str, offer_id: str, apikey: str) -> str:
        """URL of v3's click tracker, signed with the API key."""
        signed = hashlib.blake2b(f"{offer_id}:{apikey}".encode(), digest_size=4).hexdigest()[:7]
        return (
            f"https://octopart.com/click/track?country={self._country}&ak={apikey}&sig={signed}"
            f"&sid={seller_id}&ppid={part_id}&vpid={offer_id}&ct=offers"
        )


def _rank(seller: records.SellerOffers, offer: records.Offer, currency: str) -> tuple[bool, int]:
    """Authorized first; in each group what is in stock, nothing in stock, foreign currency, without a price."""
    named = {step.currency for step in offer.prices}
    if not named:
        group = 3
    elif currency not in named:
        group = 2
    else:
        group = 0 if offer.inventory_level > 0 or offer.inventory_level == listings.SOME_STOCK else 1
    return not seller.is_authorized, group


def _prices(steps: Iterable[records.PriceBreak], factor: float) -> dict[str, list[list[int | str]]]:
    """Breaks by currency, amounts with five decimals; v3 had no place for a price without a currency."""
    table: dict[str, list[list[int | str]]] = {}
    for step in steps:
        if step.currency:
            table.setdefault(step.currency, []).append([step.quantity, f"{step.price * factor:.5f}"])
    return table
