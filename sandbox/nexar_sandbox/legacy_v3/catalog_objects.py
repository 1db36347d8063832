"""Brands, manufacturers, sellers, categories and offers as v3 objects (contract v3-rest.md §3.2 to §3.4).

Objects of companies and categories are cached and shared by responses, so they must not be modified.

Recorded uids are in data/uids.jsonl, by numeric id if known, else by name. Of several uids of an object the newest is
sent, and all are accepted. Other uids are keyed digests.
"""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from nexar_sandbox.catalog import listings, records, store
from nexar_sandbox.legacy_v3 import synthetic_values

Object = dict[str, Any]
# Those of all clients; v3 presumably told them by address.
COUNTRY, CURRENCY = "US", "USD"
# v3's names of sellers that had several or that the catalog calls otherwise, by numeric id: the name that was shown
# last, then others on record (recordings of 2015 to 2018, and the names by which KiCost picks offers).
_SELLERS = {
    "14": ("Allied Electronics & Automation", "Allied Electronics"),
    "1106": ("Arrow Electronics", "Arrow Electronics, Inc.", "Arrow"),
    "3261": ("RS Components",),
    "4089": ("Chip One Stop Japan",),
}


RECORDED = Path(__file__).parent / "data" / "uids.jsonl"
Kind = Literal["Seller", "Brand", "Manufacturer", "Category", "Source"]
# v3 kept a feed's own words for a few sellers (contract v3-rest.md §3.3).
_CUSTOM_SELLERS = frozenset({"2402", "819"})
_KEY = b"octopart v3, 2012 to 2022"


class RecordedUid(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A recorded uid. `name` is the object's newest in v3, `also` are others; `year` that of the newest response."""

    kind: Kind
    uid: str
    name: str
    also: tuple[str, ...] = ()
    id: str | None = None
    year: int = 0


class LegacyUids:
    """Uids of all objects but parts, whose uids are in the catalog."""

    def __init__(self, path: Path = RECORDED) -> None:
        decode = msgspec.json.Decoder(RecordedUid).decode
        lines = sorted((decode(line) for line in path.read_bytes().splitlines()), key=lambda line: line.year)
        self._newest = {(line.kind, key): line for line in lines for key in _keys(line)}
        self._current = {
            line.uid: self._newest[line.kind, _keys(line)[0]].uid for line in lines if line.kind != "Source"
        }

    def of(self, kind: Kind, number: str, name: str) -> str:
        recorded = self._newest.get((kind, number)) or self._newest.get((kind, name.casefold()))
        return recorded.uid if recorded else _digest(kind, number)

    def current(self, uid: str) -> str:
        return self._current.get(uid, uid)


def _keys(line: RecordedUid) -> tuple[str, ...]:
    """Lookup keys of a recorded uid: the numeric id, or case-folded names."""
    return (line.id,) if line.id else tuple(name.casefold() for name in (line.name, *line.also))


def _digest(kind: Kind, key: str) -> str:
    return hashlib.blake2b(f"{kind} {key}".encode(), key=_KEY, digest_size=8).hexdigest()


class CompanyObjects:
    def __init__(self, catalog: store.Catalog, company_objects: LegacyUids) -> None:
        self._catalog, self.uids = catalog, company_objects
        self.brand = lru_cache(maxsize=None)(self._brand)
        self.manufacturer = lru_cache(maxsize=None)(self._manufacturer)
        self.seller = lru_cache(maxsize=None)(self._seller)
        self.category = lru_cache(maxsize=None)(self._category)
        self.credited = lru_cache(maxsize=1024)(self._credited)
        self._sellers = {
            name: seller
            for seller in catalog.reference.sellers
            for name in (*self.other_names(seller), self.seller_name(seller))
        }

    def category_uid(self, category: records.Category) -> str:
        return self.uids.of("Category", category.id, category.name)

    def seller_name(self, company: records.Company) -> str:
        return _SELLERS.get(company.id, (company.name,))[0]

    def other_names(self, company: records.Company) -> tuple[str, ...]:
        """Other names of the seller in filters."""
        return (company.name, *_SELLERS.get(company.id, ())[1:])

    def category_line(self, category: records.Category) -> list[str]:
        """Return the uids from the root to the category itself."""
        return [self.category_uid(each) for each in (*self._catalog.reference.ancestors(category.id), category)]

    def _brand(self, company: records.Company) -> Object:
        return {**_named(company), "__class__": "Brand", "uid": self.uids.of("Brand", company.id, company.name)}

    def _manufacturer(self, company: records.Company) -> Object:
        uid = self.uids.of("Manufacturer", company.id, company.name)
        return {**_named(company), "__class__": "Manufacturer", "uid": uid}

    def _seller(self, company: records.Company) -> Object:
        return {
            "display_flag": company.display_flag,
            "has_ecommerce": not company.is_broker,
            **_named(company),
            "name": self.seller_name(company),
            "__class__": "Seller",
            "id": company.id,
            "uid": self.uids.of("Seller", company.id, company.name),
        }

    def _category(self, category: records.Category) -> Object:
        *line, uid = self.category_line(category)
        return {
            "parent_uid": line[-1] if line else None,
            "name": category.name,
            "num_parts": self._catalog.num_parts(category.id),
            "ancestor_uids": line,
            "uid": uid,
            "children_uids": [self.category_uid(child) for child in self._catalog.reference.children(category.id)],
            "__class__": "Category",
            "ancestor_names": [each.name for each in self._catalog.reference.ancestors(category.id)],
        }

    def _credited(self, name: str) -> Object:
        """Return an Attribution: one source, or none without a name. A source that is a seller has its name and uid."""
        seller = self._seller(self._sellers[name]) if name in self._sellers else None
        uid = seller["uid"] if seller else self.uids.of("Source", name, name)
        sources = [{"uid": uid, "__class__": "Source", "name": seller["name"] if seller else name}] if name else []
        return {"sources": sources, "__class__": "Attribution", "first_acquired": None}


class OfferObjects:
    """Offers and broker listings of a part."""

    def __init__(self, company_objects: CompanyObjects) -> None:
        self._company_objects = company_objects

    def of(self, part_id: str, sellers: Iterable[records.SellerOffers], apikey: str) -> list[Object]:
        """All offers but those of brokers, in v3's order."""
        offers = [(seller, offer) for seller in sellers if not seller.is_broker for offer in seller.offers]
        offers.sort(key=lambda pair: _rank(*pair))
        return [self._offer(part_id, seller, offer, apikey) for seller, offer in offers]

    def broker_listings(self, part_id: str, sellers: Iterable[records.SellerOffers], apikey: str) -> list[Object]:
        return [self._listing(part_id, seller, apikey) for seller in sellers if seller.is_broker]

    def _offer(self, part_id: str, seller: records.SellerOffers, offer: records.Offer, apikey: str) -> Object:
        company, region = seller.company, offer.eligible_region
        return {
            "sku": offer.sku,
            "packaging": offer.packaging,
            "on_order_eta": synthetic_values.on_order_eta(offer),
            "last_updated": offer.updated,
            "order_multiple": offer.order_multiple,
            "in_stock_quantity": offer.inventory_level,
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
            "prices": _prices(offer.prices),
            "multipack_quantity": None if offer.multipack_quantity is None else str(offer.multipack_quantity),
            "_custom": {"item_id": offer.id, "source_code": "feed"} if company.id in _CUSTOM_SELLERS else {},
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
            f"https://octopart.com/click/track?country={COUNTRY}&ak={apikey}&sig={signed}"
            f"&sid={seller_id}&ppid={part_id}&vpid={offer_id}&ct=offers"
        )


def _named(company: records.Company) -> Object:
    return {"homepage_url": company.homepage_url, "name": company.name}


def _rank(seller: records.SellerOffers, offer: records.Offer) -> tuple[bool, int]:
    """Sort offers: authorized first; in each group what is in stock, nothing in stock, foreign currency, without a
    price."""
    named = {step.currency for step in offer.prices}
    if not named:
        group = 3
    elif CURRENCY not in named:
        group = 2
    else:
        group = 0 if offer.inventory_level > 0 or offer.inventory_level == listings.SOME_STOCK else 1
    return not seller.is_authorized, group


def _prices(steps: Iterable[records.PriceBreak]) -> dict[str, list[list[int | str]]]:
    """Return breaks by currency, amounts with five decimals; v3 had no place for a price without a currency."""
    table: dict[str, list[list[int | str]]] = {}
    for step in steps:
        if step.currency:
            table.setdefault(step.currency, []).append([step.quantity, f"{step.price:.5f}"])
    return table
