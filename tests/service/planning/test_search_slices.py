"""Tests of the slices of a list search, in executed lines, so that they do not depend on the machine."""

import functools
import random
from types import SimpleNamespace
from typing import Any

from service import executed_lines

from proxy.kit import slices
from proxy.model import FacetField, SearchRequest
from proxy.planning.listing import Listing

LINES = 15 * slices.SIZE  # of one slice: some for each of the objects or values in it
SLICES = 400  # of one search of 10 000 objects
WORDS = ("north", "south", "east", "west", "micro", "nano", "volt", "ohm")
FIELDS = ("uid", "name", "homepage_url", "ancestor_uids", "num_parts")


@functools.cache
def a_listing(count: int) -> Listing:
    names = [f"{WORDS[n % 8]} {WORDS[n // 8 % 8]} {n}" for n in range(count)]
    records = [SimpleNamespace(id=str(n), name=name, aliases=[f"{name} inc"]) for n, name in enumerate(names)]

    def to_v3(record: Any) -> dict[str, Any]:
        number = int(record.id)
        return {
            "__class__": "Category",
            "uid": f"{number:016x}",
            "name": record.name,
            "homepage_url": f"http://{number}" if number % 3 else None,
            "ancestor_uids": [f"{number // 10:016x}", f"{number // 100:016x}"],
            "num_parts": number * 37 % 1000,
        }

    return Listing(records, to_v3, lambda number, _: [f"computed-{number}"])


SMALL, LARGE = 10_000, 20_000  # objects


def a_request() -> SearchRequest:
    """Return a request at every bound."""
    rng = random.Random(3)
    pick = rng.choice
    names = tuple(f"{pick(WORDS)} {pick(WORDS)} {rng.randrange(10_000)}" for _ in range(190))
    queries = [
        f'{pick(FIELDS)}:("{pick(names)}" OR "{pick(names)}")',
        f"{pick(FIELDS)}:[1 TO 5]",
        "name:*9*9*",
        "uid:*0",
    ]
    return SearchRequest(
        q=pick(["", "n", "north inc", "*o*t*", " ".join(WORDS), "n s"]),
        limit=100,
        start=pick([0, 1000]),
        sortby=",".join(f"{pick(FIELDS)} {pick(['asc', 'desc'])}" for _ in range(10)),
        filters=tuple((field, (*names, pick(["*", "*1*", "x"]))) for field in rng.sample(FIELDS, 2)),
        filter_queries=tuple(pick(queries) for _ in range(pick([0, 4]))),
        facets=tuple(FacetField(field, True, pick([True, False]), 1000, 100) for field in FIELDS),
        facet_queries=tuple(dict.fromkeys(f"{pick(queries)} AND name:[a TO {n}]" for n in range(4))),
        stats=(("num_parts", True),),
    )


def test_time_slice_is_independent_of_the_list_length() -> None:
    request = a_request()
    small, large = (
        executed_lines.count_per_slice(a_listing(SMALL).search(request)),
        executed_lines.count_per_slice(a_listing(LARGE).search(request)),
    )
    assert max(small) <= LINES
    assert max(large) <= 1.1 * max(small)
    assert len(small) <= SLICES


def test_long_list_takes_more_time_slices() -> None:
    request = SearchRequest(q="*o*t*", limit=1)
    assert (
        len(executed_lines.count_per_slice(a_listing(LARGE).search(request)))
        >= 1.8 * len(executed_lines.count_per_slice(a_listing(SMALL).search(request)))
        > 20
    )


def test_sliced_search_equals_a_plain_search() -> None:
    """Against filters written out here."""
    request = SearchRequest(
        q="north",
        limit=100,
        sortby="num_parts desc, name asc",
        filters=(("num_parts", tuple(map(str, range(40)))),),
        filter_queries=("homepage_url:*",),
        facet_queries=("name:*inc* OR name:north*",),
        facets=(FacetField("num_parts", include=True, exclude_filter=True, limit=3),),
    )
    found = slices.run_to_end(a_listing(SMALL).search(request))
    north = [n for n in range(10_000) if "north" in (WORDS[n % 8], WORDS[n // 8 % 8]) and n % 3]
    passing = [n for n in north if n * 37 % 1000 < 40]
    by_name = sorted(passing, key=lambda n: f"{WORDS[n % 8]} {WORDS[n // 8 % 8]} {n}")
    wanted = sorted(by_name, key=lambda n: -(n * 37 % 1000))
    assert (found.hits, [int(record.id) for record in found.records]) == (len(passing), wanted[:100])
    starting = sum(WORDS[n % 8] == "north" for n in passing)
    assert found.facet_results["queries"] == {"name:*inc* OR name:north*": {"count": starting}}
    counts = [each["count"] for each in found.facet_results["fields"]["num_parts"]["facets"]]
    values = [n * 37 % 1000 for n in north]
    assert counts == sorted((values.count(value) for value in set(values)), reverse=True)[:3]
