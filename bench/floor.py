"""The floor: a minimal translator for the same requests, with aiohttp, orjson, dicts, and one constant token.

No error handling, quota, projections or shared requests. Run as `python -m bench.floor GRAPHQL_URL [NAME=VALUE …]`;
prints its port. `fields=A,B`: fetches these fields, too, as the service does. `constant=BYTES`: returns so many constant bytes
instead, the upper bound of any aiohttp server.
"""

import asyncio
import functools
import socket
import sys
import time
from typing import Any

import aiohttp
import orjson
from aiohttp import web

PART = """{ akaMpns manufacturer { homepageUrl id name } mpn octopartUrl sellers(includeBrokers: true) { company { displayFlag
homepageUrl id name } isAuthorized isBroker offers { clickUrl eligibleRegion factoryLeadDays factoryPackQuantity inventoryLevel moq
multipackQuantity onOrderQuantity orderMultiple packaging prices { currency price quantity } sku updated } } v3uid FIELDS }"""
SEARCH = """query NAME($q: String!, $country: String!, $currency: String!, $start: Int!, $limit: Int!) { NAME(q: $q, country: $country,
currency: $currency, start: $start, limit: $limit) { hits results { part PART } } }"""
PARTS = """query supParts($ids: [String!]!, $country: String!, $currency: String!) { supParts(ids: $ids, country: $country,
currency: $currency) PART }"""
MARKET = {"country": "US", "currency": "USD"}
KEYS = {"EXAMPLE_KEY"}
NAMES = ("mpn", "brand", "sku", "seller", "mpn_or_sku", "reference")
NOTHING = dict.fromkeys(NAMES) | {"q": "", "start": 0, "limit": 3}


def company(kind: Any, c: Any) -> Any:
    return {"__class__": kind, "uid": f"{int(c['id']):016x}", "name": c["name"], "homepage_url": c["homepageUrl"]}


def offer(seller: Any, s: Any, o: Any) -> Any:
    prices: dict[str, list[Any]] = {}
    for p in o["prices"]:
        prices.setdefault(p["currency"], []).append([p["quantity"], "%.5f" % p["price"]])
    return {
        "__class__": "PartOffer", "sku": o["sku"], "seller": seller, "eligible_region": o["eligibleRegion"] or "",
        "product_url": o["clickUrl"], "octopart_rfq_url": None, "prices": prices, "in_stock_quantity": o["inventoryLevel"],
        "on_order_quantity": o["onOrderQuantity"], "on_order_eta": None, "factory_lead_days": o["factoryLeadDays"],
        "factory_order_multiple": o["factoryPackQuantity"], "order_multiple": o["orderMultiple"], "moq": o["moq"],
        "packaging": o["packaging"], "is_authorized": s["isAuthorized"], "last_updated": o["updated"], "is_realtime": False,
        "multipack_quantity": None if o["multipackQuantity"] is None else str(o["multipackQuantity"]),
        "_naive_id": f"{s['company']['id']}_{o['sku']}", "_custom": {},
    }  # fmt: skip


def rank(o: Any) -> Any:
    return (not o["is_authorized"], "USD" not in o["prices"], o["in_stock_quantity"] <= 0)


def part(p: Any) -> Any:
    offers = []
    for s in p["sellers"]:
        c = s["company"]
        seller = company("Seller", c) | {"display_flag": c["displayFlag"], "has_ecommerce": None, "id": c["id"]}
        offers += [offer(seller, s, o) for o in s["offers"] if not s["isBroker"]]
    offers.sort(key=rank)
    return {
        "__class__": "Part", "uid": p["v3uid"], "mpn": p["mpn"], "manufacturer": company("Manufacturer", p["manufacturer"]),
        "brand": company("Brand", p["manufacturer"]), "octopart_url": p["octopartUrl"], "offers": offers, "redirected_uids": [],
    }  # fmt: skip


@functools.cache
def document(template: str, name: str, fields: str) -> str:
    return template.replace("NAME", name).replace("PART", PART.replace("FIELDS", fields))


async def ask(app: Any, template: str, name: str, variables: dict[str, Any]) -> Any:
    payload = orjson.dumps({"query": document(template, name, app["fields"]), "variables": variables | MARKET})
    headers = {"Authorization": "Bearer x", "Content-Type": "application/json"}
    async with app["session"].post(app["url"], data=payload, headers=headers) as answer:
        return orjson.loads(await answer.read())["data"][name]


async def match(request: Any) -> Any:
    started, results = time.monotonic(), []
    if request.query.get("apikey") not in KEYS:
        return web.json_response({"__class__": "ClientErrorResponse", "message": "Forbidden request"}, status=403)
    queries = [{**NOTHING, **q} for q in orjson.loads(request.query["queries"])]
    for q in queries:
        page = {"q": q["mpn"], "start": q["start"], "limit": q["limit"]}
        found = (await ask(request.app, SEARCH, "supSearchMpn", page))["results"]
        items = [part(each["part"]) for each in found if each["part"]["mpn"] == q["mpn"]]
        results.append({
            "__class__": "PartsMatchResult", "items": items, "hits": len(items), "error": None, "reference": q["reference"],
        })  # fmt: skip
    asked = [{"__class__": "PartsMatchQuery", **q} for q in queries]
    echo = {"__class__": "PartsMatchRequest", "exact_only": False, "queries": asked}
    msec = int((time.monotonic() - started) * 1000)
    return reply({"__class__": "PartsMatchResponse", "msec": msec, "request": echo, "results": results})


async def get_multi(request: web.Request) -> web.Response:
    uids = request.query.getall("uid[]")
    found = await ask(request.app, PARTS, "supParts", {"ids": uids})
    return reply({uid: part(each) for uid, each in zip(uids, found, strict=True) if each is not None})


async def get(request: web.Request) -> web.Response:
    return reply(part((await ask(request.app, PARTS, "supParts", {"ids": [request.match_info["uid"]]}))[0]))


async def search(request: web.Request) -> web.Response:
    page = {"q": request.query["q"], "start": 0, "limit": int(request.query.get("limit", 10))}
    found = await ask(request.app, SEARCH, "supSearch", page)
    results = [{"__class__": "SearchResult", "item": part(each["part"]), "snippet": None} for each in found["results"]]
    return reply({"__class__": "SearchResponse", "hits": found["hits"], "results": results})


def reply(body: Any) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json")


async def main(url: str, listener: Any, fields: str = "", constant: str = "0") -> None:
    app = web.Application()
    app["url"], app["fields"] = url, fields.replace(",", " ")
    body = b"x" * int(constant)

    async def always(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    app.router.add_get("/v3/parts/match", always if body else match)
    app.router.add_get("/v3/parts/get_multi", get_multi)
    app.router.add_get("/v3/parts/search", search)
    app.router.add_get("/v3/parts/{uid}", get)
    app["session"] = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=256))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    options = {each.partition("=")[0]: each.partition("=")[2] for each in sys.argv[2:]}
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(listening.getsockname()[1], flush=True)
    asyncio.run(main(sys.argv[1], listening, **options))
