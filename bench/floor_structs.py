"""Peer of the floor: the same minimal translator with msgspec structs instead of dicts, and the same response.

Run as `python -m bench.floor_structs GRAPHQL_URL`; prints its port.
"""

import asyncio
import sys
import time
from typing import Any

import msgspec
import orjson
from aiohttp import web

from bench import floor


class _Company(msgspec.Struct, rename="camel"):
    id: str
    name: str
    homepage_url: str | None
    display_flag: str | None = None


class _Price(msgspec.Struct, rename="camel"):
    quantity: int
    price: float
    currency: str


class _Offer(msgspec.Struct, rename="camel"):
    sku: str
    eligible_region: str | None
    inventory_level: int
    packaging: str | None
    moq: int | None
    prices: list[_Price]
    click_url: str
    updated: str
    factory_lead_days: int | None
    on_order_quantity: int | None
    factory_pack_quantity: int | None
    order_multiple: int | None
    multipack_quantity: int | None


class _Seller(msgspec.Struct, rename="camel"):
    company: _Company
    is_authorized: bool
    is_broker: bool
    offers: list[_Offer]


class _Part(msgspec.Struct, rename="camel"):
    v3uid: str
    mpn: str
    manufacturer: _Company
    octopart_url: str
    sellers: list[_Seller]


class _Hit(msgspec.Struct, rename="camel"):
    part: _Part


class _Search(msgspec.Struct, rename="camel"):
    results: list[_Hit]


class _Data(msgspec.Struct, rename="camel"):
    sup_search_mpn: _Search


class _Document(msgspec.Struct, rename="camel"):
    data: _Data


class _V3Company(msgspec.Struct, tag_field="__class__", tag="Manufacturer"):
    uid: str
    name: str
    homepage_url: str | None


class _V3Brand(_V3Company, tag_field="__class__", tag="Brand"):
    pass


class _V3Seller(_V3Company, tag_field="__class__", tag="Seller"):
    display_flag: str | None
    has_ecommerce: None
    id: str


class _V3Offer(
    msgspec.Struct, tag_field="__class__", tag="PartOffer", rename={"naive_id": "_naive_id", "custom": "_custom"}
):
    sku: str
    seller: _V3Seller
    eligible_region: str
    product_url: str
    prices: dict[str, list[tuple[int, str]]]
    in_stock_quantity: int
    on_order_quantity: int | None
    factory_lead_days: int | None
    factory_order_multiple: int | None
    order_multiple: int | None
    moq: int | None
    packaging: str | None
    is_authorized: bool
    last_updated: str
    multipack_quantity: str | None
    naive_id: str
    octopart_rfq_url: None = None
    on_order_eta: None = None
    is_realtime: bool = False
    custom: dict[str, str] = {}


class _V3Part(msgspec.Struct, tag_field="__class__", tag="Part"):
    uid: str
    mpn: str
    manufacturer: _V3Company
    brand: _V3Brand
    octopart_url: str
    offers: list[_V3Offer]
    redirected_uids: list[str] = []


class _V3Result(msgspec.Struct, tag_field="__class__", tag="PartsMatchResult"):
    items: list[_V3Part]
    hits: int
    error: None
    reference: str | None


decode = msgspec.json.Decoder(_Document).decode
encode = msgspec.json.Encoder().encode


def offer(seller: _V3Seller, s: _Seller, o: _Offer) -> _V3Offer:
    prices: dict[str, list[tuple[int, str]]] = {}
    for p in o.prices:
        prices.setdefault(p.currency, []).append((p.quantity, f"{p.price:.5f}"))
    return _V3Offer(
        o.sku, seller, o.eligible_region or "", o.click_url, prices, o.inventory_level, o.on_order_quantity,
        o.factory_lead_days, o.factory_pack_quantity, o.order_multiple, o.moq, o.packaging, s.is_authorized, o.updated,
        None if o.multipack_quantity is None else str(o.multipack_quantity), f"{s.company.id}_{o.sku}",
    )  # fmt: skip


def rank(o: _V3Offer) -> tuple[bool, bool, bool]:
    return (not o.is_authorized, "USD" not in o.prices, o.in_stock_quantity <= 0)


def part(p: _Part) -> _V3Part:
    offers = []
    for s in p.sellers:
        c = s.company
        seller = _V3Seller(f"{int(c.id):016x}", c.name, c.homepage_url, c.display_flag, None, c.id)
        offers += [offer(seller, s, o) for o in s.offers if not s.is_broker]
    offers.sort(key=rank)
    m = p.manufacturer
    maker = (f"{int(m.id):016x}", m.name, m.homepage_url)
    return _V3Part(p.v3uid, p.mpn, _V3Company(*maker), _V3Brand(*maker), p.octopart_url, offers)


async def search(app: Any, q: Any) -> list[_Part]:
    variables = {"q": q["mpn"], "start": q["start"], "limit": q["limit"], "country": "US", "currency": "USD"}
    payload = encode({"query": floor.DOCUMENT, "variables": variables})
    headers = {"Authorization": "Bearer x", "Content-Type": "application/json"}
    async with app["session"].post(app["url"], data=payload, headers=headers) as answer:
        hits = decode(await answer.read()).data.sup_search_mpn.results
    return [hit.part for hit in hits if hit.part.mpn == q["mpn"]]


async def match(request: web.Request) -> web.Response:
    started = time.monotonic()
    if request.query.get("apikey") not in floor.KEYS:
        return web.json_response({"__class__": "ClientErrorResponse", "message": "Forbidden request"}, status=403)
    queries = [{**floor.NOTHING, **q} for q in orjson.loads(request.query["queries"])]
    found = [(await search(request.app, q), q["reference"]) for q in queries]
    body = {
        "__class__": "PartsMatchResponse",
        "msec": int((time.monotonic() - started) * 1000),
        "request": {
            "__class__": "PartsMatchRequest",
            "exact_only": False,
            "queries": [{"__class__": "PartsMatchQuery", **q} for q in queries],
        },
        "results": [_V3Result([part(p) for p in parts], len(parts), None, reference) for parts, reference in found],
    }
    return web.Response(body=encode(body), content_type="application/json")


if __name__ == "__main__":
    asyncio.run(floor.main(sys.argv[1], match))
