"""Requests of the load, drawn with a seed from the sandbox's catalog, and the results that the catalog expects.

The catalog is opened a second time, outside the sandbox's process and without the proxy's mapping, so that a mapping
error cannot hide itself.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import nexar_sandbox

KEY = "EXAMPLE_KEY"
LIMIT = 10  # of a query; no part number of the catalog has as many parts


class SoakRequest(NamedTuple):
    """Request target, and the v3 uids of the parts that its response must contain."""

    kind: str
    target: str
    uids: frozenset[str]


class ExpectedResults:
    """Source of requests, and of the results expected for them, read from the catalog."""

    def __init__(self, seed: int) -> None:
        self._catalog = nexar_sandbox.open_catalog(seed=seed)
        self._parts = list(self._catalog.parts())

    def draw_requests(self, count: int, rng: random.Random) -> list[SoakRequest]:
        """Draw distinct requests, about as many of each kind."""
        kinds: tuple[Callable[[random.Random], SoakRequest], ...] = (
            self._one_mpn,
            self._several_mpns,
            self._sku,
            self._mpn_and_brand,
            self._uid,
            self._several_uids,
            self._search,
        )
        drawn: dict[str, SoakRequest] = {}
        for number in range(20 * count):
            request = kinds[number % len(kinds)](rng)
            drawn.setdefault(request.target, request)
            if len(drawn) == count:
                break
        return list(drawn.values())

    def check(self, request: SoakRequest, body: Any) -> Iterator[str]:
        """Compare a response without faults with the catalog; yields errors."""
        items = list(parts(body))
        missing = request.uids - {item["uid"] for item in items}
        if missing:
            yield f"{request.target} lacks {sorted(missing)}"
        for item in items:
            part = self._catalog.part_by_uid(item["uid"])
            if part is None or (item["mpn"], item["brand"]["name"]) != (part.mpn, part.manufacturer.name):
                yield f"{request.target}: {item['uid']} is not {item['brand']['name']} {item['mpn']}"
            elif not {offer["sku"] for offer in item["offers"]} <= set(self._skus(part)):
                yield f"{request.target}: {item['uid']} has offers that are not in the catalog"

    def _one_mpn(self, rng: random.Random) -> SoakRequest:
        part = rng.choice(self._parts)
        return _match("match, one MPN", [{"mpn": part.mpn, "limit": LIMIT}], part)

    def _several_mpns(self, rng: random.Random) -> SoakRequest:
        chosen = rng.sample(self._parts, rng.randint(2, 5))
        return _match("match, several MPNs", [{"mpn": part.mpn, "limit": LIMIT} for part in chosen], *chosen)

    def _sku(self, rng: random.Random) -> SoakRequest:
        part = next(part for part in iter(lambda: rng.choice(self._parts), None) if self._skus(part))
        return _match("match, SKU", [{"sku": rng.choice(self._skus(part)), "limit": LIMIT}], part)

    def _mpn_and_brand(self, rng: random.Random) -> SoakRequest:
        part = rng.choice(self._parts)
        query = {"mpn": part.mpn, "brand": part.manufacturer.name, "limit": LIMIT}
        return _match("match, MPN and brand", [query], part)

    def _uid(self, rng: random.Random) -> SoakRequest:
        part = rng.choice(self._parts)
        return SoakRequest("part by uid", f"/v3/parts/{part.v3uid}?apikey={KEY}", frozenset({part.v3uid}))

    def _several_uids(self, rng: random.Random) -> SoakRequest:
        uids = [part.v3uid for part in rng.sample(self._parts, rng.randint(2, 5))]
        parameters = "".join(f"&uid[]={uid}" for uid in uids)
        return SoakRequest("parts by uid", f"/v3/parts/get_multi?apikey={KEY}{parameters}", frozenset(uids))

    def _search(self, rng: random.Random) -> SoakRequest:
        words = quote(rng.choice(self._parts).mpn)
        return SoakRequest("search", f"/v3/parts/search?apikey={KEY}&limit=3&q={words}", frozenset())

    def _skus(self, part: nexar_sandbox.Part) -> list[str]:
        return [offer.sku for seller in self._catalog.sellers_of(part) for offer in seller.offers]


def parts(body: Any) -> Iterator[Any]:
    """Find the v3 parts in a response body of any shape."""
    if isinstance(body, list):
        for element in body:
            yield from parts(element)
    elif isinstance(body, dict):
        if body.get("__class__") == "Part":
            yield body
        else:
            for value in body.values():
                yield from parts(value)


def _match(kind: str, queries: list[dict[str, Any]], *expected: nexar_sandbox.Part) -> SoakRequest:
    target = f"/v3/parts/match?apikey={KEY}&queries={quote(json.dumps(queries))}"
    return SoakRequest(kind, target, frozenset(part.v3uid for part in expected))
