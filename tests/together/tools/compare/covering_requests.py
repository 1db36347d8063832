"""A small set of v3 requests whose responses cover every field that the legacy service has values for."""

import json
from collections.abc import Iterator
from typing import Any

import aiohttp
from together.tools.compare import generated_requests

from proxy.traffic.v3_request import V3Request

PAGE = 100
MOST_OFFERS = 40  # per part: more offers cover no more fields
INCLUDED = tuple(("include[]", name) for name in generated_requests.INCLUDES)


async def covering_requests(url: str) -> list[V3Request]:
    """The requests, chosen from the data of the legacy service at a URL without `/v3`."""
    stock = await generated_requests.CatalogContents.of(url)
    parts = [part for part in await _parts(url) if len(part["offers"]) <= MOST_OFFERS]
    chosen = _covering(parts)
    rare = [part["uid"] for part in chosen]
    queries = json.dumps([{"mpn": part["mpn"], "limit": 2} for part in chosen])
    made = [
        ("/parts/match", (("queries", queries), *INCLUDED)),
        ("/parts/search", (("q", chosen[0]["mpn"]), ("limit", "2"), *INCLUDED)),
        ("/parts/get_multi", (*(("uid[]", uid) for uid in rare), *_redirected(parts), *INCLUDED)),
        (f"/parts/{rare[0]}", INCLUDED),
    ]
    for name in ("brands", "sellers", "categories"):
        items = _covering(getattr(stock, name))
        made.append((f"/{name}/get_multi", (*(("uid[]", each["uid"]) for each in items), *INCLUDED)))
        made.append((f"/{name}/search", (("q", items[0]["name"]), ("limit", "3"))))
        made.append((f"/{name}/{items[0]['uid']}", ()))
    return [V3Request(path, query, "covering", origin=f"made:{at}") for at, (path, query) in enumerate(made, 1)]


async def _parts(url: str) -> list[Any]:
    """All parts, with everything that can be included."""
    shown = "".join(f"&include[]={name}" for name in generated_requests.INCLUDES)
    async with aiohttp.ClientSession() as session:
        parts: list[Any] = []
        while True:
            target = f"{url}/v3/parts/search?apikey={generated_requests.KEY}&limit={PAGE}&start={len(parts)}{shown}"
            async with session.get(target) as response:
                page = [result["item"] for result in (await response.json())["results"]]
            parts += page
            if len(page) < PAGE or len(parts) > 900:
                return parts


def _redirected(parts: list[Any]) -> tuple[tuple[str, str], ...]:
    """The former uid of a merged part, which leads to another part."""
    former = (uid for part in parts for uid in part["redirected_uids"])
    return tuple(("uid[]", uid) for uid in [next(former, None)] if uid)


def _covering(items: list[Any]) -> list[Any]:
    """Greedy set cover: the item with most facts, then repeatedly the one with most new facts."""
    shown = [(set(_facts(item, "")), item) for item in items]
    chosen: list[Any] = []
    known = set[str]()
    while True:
        facts, item = max(shown, key=lambda each: len(each[0] - known))
        if chosen and not facts - known:
            return chosen
        chosen.append(item)
        known |= facts


def _facts(value: Any, path: str) -> Iterator[str]:
    """Facts of a value: paths with a value, and paths with more than one element."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _facts(inner, f"{path}.*" if path.endswith(".specs") else f"{path}.{name}")
    elif isinstance(value, list):
        if len(value) > 1:
            yield f"{path} several"
        for inner in value:
            yield from _facts(inner, path)
    elif value not in (None, "", False):
        yield path
