"""Few calls that show every field which the old service has something for: parts and lists, by what they have."""

import json
from collections.abc import Iterator
from typing import Any

import aiohttp

from proxy.compare.requests import V3Request
from support import generated_calls

PAGE = 100
MOST_OFFERS = 40  # of a part: more of them show nothing more
INCLUDED = tuple(("include[]", name) for name in generated_calls.INCLUDES)


async def of(url: str) -> list[V3Request]:
    """From the old service at a URL without `/v3`."""
    stock = await generated_calls.Stock.of(url)
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
    shown = "".join(f"&include[]={name}" for name in generated_calls.INCLUDES)
    async with aiohttp.ClientSession() as session:
        parts: list[Any] = []
        while True:
            target = f"{url}/v3/parts/search?apikey={generated_calls.KEY}&limit={PAGE}&start={len(parts)}{shown}"
            async with session.get(target) as reply:
                page = [result["item"] for result in (await reply.json())["results"]]
            parts += page
            if len(page) < PAGE or len(parts) > 900:
                return parts


def _redirected(parts: list[Any]) -> tuple[tuple[str, str], ...]:
    """The former uid of a part that has one: asked for, it leads to a part of another."""
    former = (uid for part in parts for uid in part["redirected_uids"])
    return tuple(("uid[]", uid) for uid in [next(former, None)] if uid)


def _covering(items: list[Any]) -> list[Any]:
    """The first that shows most, then whatever shows most of what those before do not."""
    shown = [(set(_facts(item, "")), item) for item in items]
    chosen, known = [], set[str]()
    while True:
        facts, item = max(shown, key=lambda each: len(each[0] - known))
        if chosen and not facts - known:
            return chosen
        chosen.append(item)
        known |= facts


def _facts(value: Any, path: str) -> Iterator[str]:
    """What a value shows: paths that have something, and paths with more than one element."""
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
