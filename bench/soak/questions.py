"""What the load asks, drawn with a seed from the sandbox's own catalog, and what the catalog says of an answer.

The catalog is opened here a second time, apart from the sandbox's process and from everything that the proxy does: a
witness that knows no mapping.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from proxy.sandbox.catalog import records, store

KEY = "EXAMPLE_KEY"
LIMIT = 10  # of a query: more parts than have the same number in the catalog


class Question(NamedTuple):
    """A request target, and the v3 uids of parts that must be in its answer."""

    kind: str
    target: str
    uids: frozenset[str]


class Witness:
    """The catalog, asked for questions and about answers."""

    def __init__(self, seed: int) -> None:
        self._catalog = store.open_catalog(seed=seed)
        listed = self._catalog.search("", records.SearchConditions()).ids
        self._parts = [part for part in map(self._catalog.part, listed) if part is not None]

    def questions(self, count: int, rng: random.Random) -> list[Question]:
        """So many that differ, of every kind about as many."""
        kinds: tuple[Callable[[random.Random], Question], ...] = (
            self._one_number,
            self._several_numbers,
            self._sku,
            self._number_of_a_brand,
            self._uid,
            self._several_uids,
            self._search,
        )
        drawn: dict[str, Question] = {}
        for number in range(20 * count):
            question = kinds[number % len(kinds)](rng)
            drawn.setdefault(question.target, question)
            if len(drawn) == count:
                break
        return list(drawn.values())

    def complaints(self, question: Question, body: Any) -> Iterator[str]:
        """What the catalog holds against an answer given in peace."""
        items = list(parts(body))
        missing = question.uids - {item["uid"] for item in items}
        if missing:
            yield f"{question.target} lacks {sorted(missing)}"
        for item in items:
            known = self._catalog.part_by_uid(item["uid"])
            if known is None or (item["mpn"], item["brand"]["name"]) != (known.mpn, known.manufacturer.name):
                yield f"{question.target}: {item['uid']} is not {item['brand']['name']} {item['mpn']}"
            elif not {offer["sku"] for offer in item["offers"]} <= set(self._skus(known)):
                yield f"{question.target}: {item['uid']} has offers that the catalog has not"

    def _one_number(self, rng: random.Random) -> Question:
        part = rng.choice(self._parts)
        return _match("match, one number", [{"mpn": part.mpn, "limit": LIMIT}], part)

    def _several_numbers(self, rng: random.Random) -> Question:
        some = rng.sample(self._parts, rng.randint(2, 5))
        return _match("match, several numbers", [{"mpn": part.mpn, "limit": LIMIT} for part in some], *some)

    def _sku(self, rng: random.Random) -> Question:
        part = next(part for part in iter(lambda: rng.choice(self._parts), None) if self._skus(part))
        return _match("match, a SKU", [{"sku": rng.choice(self._skus(part)), "limit": LIMIT}], part)

    def _number_of_a_brand(self, rng: random.Random) -> Question:
        part = rng.choice(self._parts)
        query = {"mpn": part.mpn, "brand": part.manufacturer.name, "limit": LIMIT}
        return _match("match, a number of a brand", [query], part)

    def _uid(self, rng: random.Random) -> Question:
        part = rng.choice(self._parts)
        return Question("a part by uid", f"/v3/parts/{part.v3uid}?apikey={KEY}", frozenset({part.v3uid}))

    def _several_uids(self, rng: random.Random) -> Question:
        uids = [part.v3uid for part in rng.sample(self._parts, rng.randint(2, 5))]
        asked = "".join(f"&uid[]={uid}" for uid in uids)
        return Question("parts by uid", f"/v3/parts/get_multi?apikey={KEY}{asked}", frozenset(uids))

    def _search(self, rng: random.Random) -> Question:
        words = quote(rng.choice(self._parts).mpn)
        return Question("search", f"/v3/parts/search?apikey={KEY}&limit=3&q={words}", frozenset())

    def _skus(self, part: records.Part) -> list[str]:
        return [offer.sku for seller in self._catalog.sellers_of(part) for offer in seller.offers]


def parts(body: Any) -> Iterator[Any]:
    """Every v3 part in an answer of whatever kind."""
    if isinstance(body, list):
        for each in body:
            yield from parts(each)
    elif isinstance(body, dict):
        if body.get("__class__") == "Part":
            yield body
        else:
            for each in body.values():
                yield from parts(each)


def _match(kind: str, queries: list[dict[str, Any]], *wanted: records.Part) -> Question:
    target = f"/v3/parts/match?apikey={KEY}&queries={quote(json.dumps(queries))}"
    return Question(kind, target, frozenset(part.v3uid for part in wanted))
