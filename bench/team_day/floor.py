"""The floor (bench/floor.py) with the other requests of the team's day: parts by uid, and searches.

Run as `python -m bench.team_day.floor GRAPHQL_URL [BYTES]`; prints its port. With BYTES, responses are kept in an LRU
cache of this size, by request target: what a good engineer adds in the evening.
"""

import asyncio
import re
import sys
from typing import Any

import cachetools
import orjson
from aiohttp import web

from bench import floor

PART = re.search(r"part (\{.*\}) \} \} \}$", floor.DOCUMENT, re.DOTALL).group(1)  # type: ignore[union-attr]
MARKET = {"country": "US", "currency": "USD"}
PARTS = f"query supParts($ids: [String!]!, $country: String!, $currency: String!) {{ supParts(ids: $ids, country: $country, currency: $currency) {PART} }}"  # noqa: E501
SEARCH = floor.DOCUMENT.replace("supSearchMpn", "supSearch")


async def query(app: Any, document: str, variables: dict[str, Any]) -> Any:
    payload = orjson.dumps({"query": document, "variables": variables | MARKET})
    headers = {"Authorization": "Bearer x", "Content-Type": "application/json"}
    async with app["session"].post(app["url"], data=payload, headers=headers) as answer:
        return orjson.loads(await answer.read())["data"]


async def objects(app: Any, uids: list[str]) -> dict[str, Any]:
    found = (await query(app, PARTS, {"ids": uids}))["supParts"]
    return {uid: floor.part(each) for uid, each in zip(uids, found, strict=True) if each is not None}


async def get_multi(request: web.Request) -> web.Response:
    return reply(request, await objects(request.app, request.query.getall("uid[]")))


async def get(request: web.Request) -> web.Response:
    uid = request.match_info["uid"]
    return reply(request, (await objects(request.app, [uid]))[uid])


async def search(request: web.Request) -> web.Response:
    limit = int(request.query.get("limit", 10))
    found = (await query(request.app, SEARCH, {"q": request.query["q"], "start": 0, "limit": limit}))["supSearch"]
    results = [
        {"__class__": "SearchResult", "item": floor.part(each["part"]), "snippet": None} for each in found["results"]
    ]
    return reply(request, {"__class__": "SearchResponse", "hits": found["hits"], "results": results})


async def match(request: web.Request) -> web.Response:
    response: web.Response = await floor.match(request)
    return reply(request, response.body)


def reply(request: web.Request, body: Any) -> web.Response:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    callback = request.query.get("callback")
    if callback:
        return web.Response(body=b"%s(%s);" % (callback.encode(), data), content_type="application/javascript")
    return web.Response(body=data, content_type="application/json")


def caching(size: int) -> Any:
    responses: cachetools.LRUCache[str, tuple[bytes, str]] = cachetools.LRUCache(size, lambda kept: len(kept[0]))

    @web.middleware
    async def cached(request: web.Request, handler: Any) -> web.Response:
        kept = responses.get(request.path_qs)
        if kept is None:
            made = await handler(request)
            kept = responses[request.path_qs] = (made.body, made.content_type)
        return web.Response(body=kept[0], content_type=kept[1])

    return cached


def application(size: int) -> web.Application:
    app = web.Application(middlewares=[caching(size)] if size else [])
    app.router.add_get("/v3/parts/match", match)
    app.router.add_get("/v3/parts/get_multi", get_multi)
    app.router.add_get("/v3/parts/search", search)
    app.router.add_get("/v3/parts/{uid}", get)
    return app


async def main(url: str, size: int = 0) -> None:
    await floor.serve(application(size), url)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
