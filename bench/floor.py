"""The floor: a minimal translator for the same requests, with aiohttp, orjson, dicts, and one constant token.

No error handling, quota, projections or request coalescing. Run as `python -m bench.floor GRAPHQL_URL [whole] [forked]`; prints its port. `whole`: fetches all fields that the service
fetches as shipped. `forked`: in two processes.
"""

import asyncio
import os
import socket
import sys
import threading
import time
from typing import Any

import aiohttp
import orjson
from aiohttp import web

DOCUMENT = """query supSearchMpn($q: String!, $country: String!, $currency: String!, $start: Int!, $limit: Int!) { supSearchMpn(q: $q,
country: $country, currency: $currency, start: $start, limit: $limit) { hits results { part { akaMpns manufacturer { homepageUrl id
name } mpn octopartUrl sellers(includeBrokers: true) { company { displayFlag homepageUrl id name } isAuthorized isBroker offers {
clickUrl eligibleRegion factoryLeadDays factoryPackQuantity inventoryLevel moq multipackQuantity onOrderQuantity orderMultiple
packaging prices { currency price quantity } sku updated } } v3uid } } } }"""
# What the service fetches beside these as shipped, so that both receive the same bytes.
WHOLE = """category { ancestors { id name } id name } descriptions { creditString text } freeSampleUrl id images { creditString
creditUrl url55px url75px url90px urlLargest } manufacturerUrl shortDescription slug totalAvail"""
KEYS = {"EXAMPLE_KEY"}
NOTHING = {
    "mpn": None,
    "brand": None,
    "sku": None,
    "seller": None,
    "mpn_or_sku": None,
    "q": "",
    "start": 0,
    "limit": 3,
    "reference": None,
}


def company(kind: Any, c: Any) -> Any:
    return {
        "__class__": kind,
        "uid": f"{int(c['id']):016x}",
        "name": c["name"],
        "homepage_url": c["homepageUrl"],
    }


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
        seller = {
            **company("Seller", c),
            "display_flag": c["displayFlag"],
            "has_ecommerce": None,
            "id": c["id"],
        }
        offers += [offer(seller, s, o) for o in s["offers"] if not s["isBroker"]]
    offers.sort(key=rank)
    return {
        "__class__": "Part", "uid": p["v3uid"], "mpn": p["mpn"], "manufacturer": company("Manufacturer", p["manufacturer"]),
        "brand": company("Brand", p["manufacturer"]), "octopart_url": p["octopartUrl"], "offers": offers, "redirected_uids": [],
    }  # fmt: skip


async def search(app: Any, q: Any) -> Any:
    variables = {"q": q["mpn"], "start": q["start"], "limit": q["limit"], "country": "US", "currency": "USD"}
    payload = orjson.dumps({"query": app["document"], "variables": variables})
    headers = {"Authorization": "Bearer x", "Content-Type": "application/json"}
    async with app["session"].post(app["url"], data=payload, headers=headers) as answer:
        found = orjson.loads(await answer.read())["data"]["supSearchMpn"]["results"]
    return [each["part"] for each in found if each["part"]["mpn"] == q["mpn"]]


async def match(request: Any) -> Any:
    started = time.monotonic()
    if request.query.get("apikey") not in KEYS:
        return web.json_response({"__class__": "ClientErrorResponse", "message": "Forbidden request"}, status=403)
    queries = [{**NOTHING, **q} for q in orjson.loads(request.query["queries"])]
    results = [
        {"__class__": "PartsMatchResult", "items": [part(p) for p in parts], "hits": len(parts), "error": None,
         "reference": q["reference"]} for q in queries for parts in [await search(request.app, q)]
    ]  # fmt: skip
    echo = {
        "__class__": "PartsMatchRequest",
        "exact_only": False,
        "queries": [{"__class__": "PartsMatchQuery", **q} for q in queries],
    }
    body = {
        "__class__": "PartsMatchResponse",
        "msec": int((time.monotonic() - started) * 1000),
        "request": echo,
        "results": results,
    }
    return web.Response(body=orjson.dumps(body), content_type="application/json")


async def start(app: Any) -> Any:
    app["session"] = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=256))
    yield
    await app["session"].close()


async def main(url: Any, match: Any = match, whole: bool = False, listener: Any = None) -> None:
    application = web.Application()
    if whole:
        application["document"] = DOCUMENT.replace("part {", f"part {{ {WHOLE}")
    application.router.add_get("/v3/parts/match", match)
    await serve(application, url, listener)


async def serve(application: Any, url: Any, listener: Any = None) -> None:
    application["url"] = url
    application.setdefault("document", DOCUMENT)
    application.cleanup_ctx.append(start)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    if listener is None:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
    else:
        await web.SockSite(runner, listener).start()
    await asyncio.Event().wait()


def fork() -> None:
    """Start a second process, which inherits the listening socket and ends with this one."""
    end, ours = os.pipe()
    if os.fork():
        os.close(end)
        return
    os.close(ours)
    threading.Thread(target=lambda: (os.read(end, 1), os._exit(0)), daemon=True).start()


if __name__ == "__main__":
    shared = None
    if "forked" in sys.argv:
        shared = socket.create_server(("127.0.0.1", 0), backlog=256)
        print(shared.getsockname()[1], flush=True)
        fork()
    asyncio.run(main(sys.argv[1], whole="whole" in sys.argv, listener=shared))
