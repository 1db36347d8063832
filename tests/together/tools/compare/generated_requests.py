"""Random v3 requests of every kind, reproducible by a seed, about objects that the legacy service has.

`CatalogContents.of` reads the objects over HTTP; `RequestGenerator` makes requests, most of them for existing objects;
`covering_pairs` chooses those that differ in more than their objects.
"""

import heapq
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import aiohttp

from proxy.traffic.v3_request import V3Request

KEY = "EXAMPLE_KEY"
INCLUDES = (
    "short_description", "descriptions", "imagesets", "datasheets", "compliance_documents", "reference_designs",
    "cad_models", "specs", "category_uids", "external_links", "broker_listings",
)  # fmt: skip
SHOWN = ("uid", "mpn", "brand", "brand.name", "offers", "offers.sku", "offers.prices", "offers.seller.name", "none")
PAGE = 100
EACH = 10  # requests for an endpoint that are chosen in any case, for objects of which few features are known

Pairs = tuple[tuple[str, str], ...]


class CatalogContents(NamedTuple):
    """All objects of the legacy service, as it shows them."""

    parts: list[Any]
    brands: list[Any]
    sellers: list[Any]
    categories: list[Any]

    @classmethod
    async def of(cls, url: str) -> "CatalogContents":
        """Read everything; `url` is without `/v3`."""
        async with aiohttp.ClientSession() as session:
            shown = "&include[]=specs&include[]=category_uids"
            parts = await _all(session, f"{url}/v3/parts/search?apikey={KEY}{shown}")
            lists = [
                await _all(session, f"{url}/v3/{name}/search?apikey={KEY}")
                for name in ("brands", "sellers", "categories")
            ]
        return cls(parts, *lists)


async def _all(session: aiohttp.ClientSession, url: str) -> list[Any]:
    items: list[Any] = []
    while True:
        async with session.get(f"{url}&limit={PAGE}&start={len(items)}") as response:
            page = await response.json()
        items += [result["item"] for result in page["results"]]
        if len(page["results"]) < PAGE or len(items) > 900:
            return items


class RequestGenerator:
    """Generates requests: the same ones for the same contents and seed."""

    def __init__(self, stock: CatalogContents, seed: int, whole: bool = False) -> None:
        """`whole`: without show[], hide[] and slice[], which remove the fields that identify elements."""
        self._stock = stock
        self._whole = whole
        self._rng = random.Random(seed)
        self._kinds: list[tuple[int, Callable[[], tuple[str, Pairs]]]] = [
            (40, self._match),
            (20, self._search),
            (8, self._part),
            (8, self._parts),
            *((3, lambda name=name: self._list(name)) for name in ("brands", "sellers", "categories")),
            *((2, lambda name=name: self._object(name)) for name in ("brands", "sellers", "categories")),
            *((2, lambda name=name: self._objects(name)) for name in ("brands", "sellers", "categories")),
            (3, self._mistaken),
        ]

    def requests(self, number: int) -> list[V3Request]:
        """Generate a number of distinct requests."""
        made: dict[str, V3Request] = {}
        weights, kinds = [weight for weight, _ in self._kinds], [kind for _, kind in self._kinds]
        while len(made) < number:
            path, query = self._rng.choices(kinds, weights)[0]()
            request = V3Request(path, query, "generated", origin=f"generated:{len(made) + 1}")
            made.setdefault(request.id, request)
        return list(made.values())

    def _match(self) -> tuple[str, Pairs]:
        number = self._rng.choice((1, 1, 1, 2, 3, 8, 20))
        queries = [self._query(place) for place in range(number)]
        pairs = [("queries", json.dumps(queries, ensure_ascii=self._chance(0.5)))]
        if self._chance(0.3):
            pairs.append(("exact_only", self._rng.choice(("true", "false", "1"))))
        return "/parts/match", (*pairs, *self._view())

    def _query(self, place: int) -> dict[str, Any]:
        part = self._rng.choice(self._stock.parts)
        mpn = self._spelt(part["mpn"])
        query: dict[str, Any] = {"mpn": mpn}
        kind = self._rng.random()
        if kind < 0.1 and part["offers"]:
            offer = self._rng.choice(part["offers"])
            query = {"sku": offer["sku"], **({"seller": offer["seller"]["name"]} if self._chance(0.5) else {})}
        elif kind < 0.2:
            query = {"mpn_or_sku": mpn}
        elif kind < 0.3:
            query["brand"] = part["brand"]["name"]
        elif kind < 0.34:
            query = {"mpn": part["mpn"][: max(4, len(part["mpn"]) // 2)] + "*"}
        elif kind < 0.4:
            query = {"mpn": "NO-SUCH-" + str(self._rng.randrange(10**6))}
        if self._chance(0.2):
            query["limit"] = self._rng.randrange(0, 21)
        if self._chance(0.1):
            query["start"] = self._rng.randrange(0, 4)
        if self._chance(0.5):
            query["reference"] = self._rng.choice((place, f"line {place}", str(place)))
        return query

    def _spelt(self, mpn: str) -> str:
        """A spelling that clients use for the part number."""
        return self._rng.choice((mpn, mpn, mpn, mpn.lower(), mpn.replace("-", "")))

    def _search(self) -> tuple[str, Pairs]:
        part = self._rng.choice(self._stock.parts)
        q = self._rng.choice((part["mpn"], part["mpn"][:5], part["brand"]["name"], "resistor", "op amp", ""))
        pairs = [
            ("q", q),
            ("limit", str(self._rng.choice((1, 3, 10, 20)))),
            ("start", str(self._rng.choice((0, 0, 5)))),
        ]
        if self._chance(0.2):
            pairs.append(("filter[fields][brand.name][]", part["brand"]["name"]))
        if self._chance(0.15) and part["offers"]:
            pairs.append(("filter[fields][offers.seller.name][]", part["offers"][0]["seller"]["name"]))
        if self._chance(0.15) and part["category_uids"]:
            pairs.append(("filter[fields][category_uids][]", part["category_uids"][-1]))
        if self._chance(0.15):
            pairs += [("facet[fields][brand.name][include]", "true"), ("facet[fields][brand.name][limit]", "5")]
        return "/parts/search", (*pairs, *self._view())

    def _part(self) -> tuple[str, Pairs]:
        return f"/parts/{self._uid('parts')}", self._view()

    def _parts(self) -> tuple[str, Pairs]:
        return "/parts/get_multi", (
            *(("uid[]", self._uid("parts")) for _ in range(self._rng.choice((1, 2, 5)))),
            *self._view(),
        )

    def _list(self, name: str) -> tuple[str, Pairs]:
        words = self._rng.choice(self._named(name))["name"].split()
        q = self._rng.choice((words[0], words[-1].lower(), " ".join(words), "", words[0][:4] + "*"))
        pairs = [("q", q), ("limit", str(self._rng.choice((1, 5, 10)))), ("start", str(self._rng.choice((0, 0, 2))))]
        if self._chance(0.3):
            pairs.append(("sortby", self._rng.choice(("name asc", "name desc", "score desc"))))
        return f"/{name}/search", tuple(pairs)

    def _object(self, name: str) -> tuple[str, Pairs]:
        return f"/{name}/{self._uid(name)}", ()

    def _objects(self, name: str) -> tuple[str, Pairs]:
        return f"/{name}/get_multi", tuple(("uid[]", self._uid(name)) for _ in range(self._rng.choice((1, 3))))

    def _mistaken(self) -> tuple[str, Pairs]:
        return self._rng.choice(
            [
                ("/parts/match", ()),
                ("/parts/match", (("queries", "[{"),)),
                ("/parts/match", (("queries", json.dumps([{"mpn": str(self._rng.random())}] * 21)),)),
                ("/parts/match", (("queries", json.dumps([{"mpn": "LM324", "limit": 21 + self._rng.randrange(50)}])),)),
                ("/parts/search", (("q", "LM324"), ("limit", str(101 + self._rng.randrange(500))))),
                (f"/parts/{self._rng.randrange(16**15):016x}", ()),
                ("/brands/get_multi", (("pretty_print", str(self._rng.choice((0, 1)))),)),
            ]
        )

    def _view(self) -> Pairs:
        """include[], sometimes with show[], hide[] or slice[]."""
        pairs = [
            ("include[]", name) for name in self._rng.sample(INCLUDES, self._rng.choice((0, 0, 1, 3, len(INCLUDES))))
        ]
        kind = 1.0 if self._whole else self._rng.random()
        if kind < 0.08:
            pairs += [("show[]", name) for name in self._rng.sample(SHOWN, 2)]
        elif kind < 0.14:
            pairs.append(("hide[]", self._rng.choice(("offers", "brand", "offers.prices"))))
        elif kind < 0.2:
            pairs.append(("slice[offers]", self._rng.choice(("[0:1]", ":2", "1:5"))))
        return tuple(pairs)

    def _uid(self, name: str) -> str:
        """A uid, mostly of an existing object."""
        return (
            f"{self._rng.randrange(16**15):016x}" if self._chance(0.05) else self._rng.choice(self._named(name))["uid"]
        )

    def _named(self, name: str) -> list[Any]:
        found: list[Any] = getattr(self._stock, name)
        return found

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share


def covering_pairs(requests: Sequence[V3Request]) -> list[V3Request]:
    """Choose few requests that have, of all pairs of features, each at least once, and some for each endpoint.

    A mistake that depends on more than two features is rare; the other requests repeat what these prove.
    """
    pairs = [set(itertools.combinations(sorted({each.endpoint, *_features(each)}), 2)) for each in requests]
    by_endpoint: defaultdict[str, list[int]] = defaultdict(list)
    for number, request in enumerate(requests):
        by_endpoint[request.endpoint].append(number)
    chosen = {number for numbers in by_endpoint.values() for number in numbers[:EACH]}
    known = set().union(*(pairs[number] for number in chosen))
    waiting = [(-len(pairs[number]), number) for number in range(len(requests))]
    heapq.heapify(waiting)
    while waiting:
        most, number = heapq.heappop(waiting)
        if (more := len(pairs[number] - known)) < -most:  # others have what it had when it was counted
            if more:
                heapq.heappush(waiting, (-more, number))
        elif more:
            chosen.add(number)
            known |= pairs[number]
    return [requests[number] for number in sorted(chosen)]


def _features(request: V3Request) -> Iterator[str]:
    """Names with values, except values that are taken from an object."""
    for name, value in request.query:
        if name == "queries" and value.endswith("]"):
            queries = json.loads(value)
            yield f"queries {min(len(queries), 3)}"
            yield from (f"query {' '.join(sorted(query))} {'*' in query.get('mpn', '')}" for query in queries)
        elif name == "q":
            yield f"q {len(value.split())} {'*' in value}"
        elif name in ("uid[]", "queries") or name.startswith("filter"):
            yield name
        else:
            yield f"{name} {value}"
