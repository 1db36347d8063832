"""Shrinks requests that show a difference: parameters are dropped, then values simplified, while the difference
remains: one of the same endpoint, path, kind and cause."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proxy.kit.wording import counted
from proxy.tools.compare.judging import tally
from proxy.tools.compare.judging.counting import GroupCount, KeptSample
from proxy.tools.compare.judging.findings import Comparison
from proxy.traffic.v3_request import V3Request

GROUPS = 50  # differences that are shrunk, those of most requests first
STEPS = 60  # requests to shrink one
QUERIES = "queries"

Examine = Callable[[V3Request], Awaitable[Comparison]]


class Shrinker:
    """Shrinks the requests of groups of differences, `at_once` groups at a time. `examine` compares a request."""

    def __init__(self, examine: Examine, at_once: int) -> None:
        self._examine = examine
        self._at_once = at_once
        self._smallest: dict[str, tuple[V3Request, GroupCount]] = {}
        self._tried: set[str] = set()  # ids of requests

    async def shrink(self, groups: Mapping[str, GroupCount]) -> dict[str, GroupCount]:
        """Return groups with the shrunk request as their only sample. `groups` are by their digest."""
        found = {key: [sample.request for sample in group.samples.values()] for key, group in groups.items()}
        largest = {key: max(map(parameters, requests)) for key, requests in found.items() if requests}
        self._smallest = {key: (min(found[key], key=_order), groups[key]) for key in largest}
        queue = iter([*self._smallest])
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._at_once):
                tasks.create_task(self._work(queue), name=f"differences to shrink, {number + 1}")
        return {
            key: msgspec.structs.replace(groups[key], samples=_shrunk(request, group, largest[key]))
            for key, (request, group) in self._smallest.items()
        }

    async def _work(self, queue: Iterator[str]) -> None:
        for key in queue:
            await self._shrink(key)

    async def _shrink(self, key: str) -> None:
        """Try smaller requests for one group, each of which may be one for other groups, too."""
        steps = 0
        while steps < STEPS:
            before = self._smallest[key][0]
            for smaller in reductions(before):
                if smaller.id in self._tried:
                    continue
                steps += 1
                await self._try(smaller)
                if self._smallest[key][0] != before or steps >= STEPS:
                    break
            if self._smallest[key][0] == before:
                return

    async def _try(self, request: V3Request) -> None:
        """Compare a request, and note for which groups it is the smallest so far."""
        self._tried.add(request.id)
        comparison = await self._examine(request)
        found = tally.grouped(comparison, comparison.findings)
        for key in found.keys() & self._smallest.keys():
            if _order(request) < _order(self._smallest[key][0]):
                self._smallest[key] = request, found[key]


def _shrunk(request: V3Request, group: GroupCount, before: int) -> dict[str, KeptSample]:
    """Return the sample of the shrunk request, which says how it came about."""
    key, sample = next((key, each) for key, each in group.samples.items() if each.request.id == request.id)
    origin = f"{request.origin}, shrunk from {counted(before, 'parameter')} to {parameters(request)}"
    return {key: msgspec.structs.replace(sample, request=msgspec.structs.replace(sample.request, origin=origin))}


def parameters(request: V3Request) -> int:
    """Count the parameters of a request: those of its query, of `queries` the keys, and the uid in its path."""
    queries = match_queries(request)
    in_path = request.path != request.endpoint
    inside = max(1, sum(map(len, queries))) if queries else 0
    return in_path + inside + sum(name != QUERIES or not queries for name, _ in request.query)


def reductions(request: V3Request) -> Iterator[V3Request]:
    """Yield smaller requests: first without half of the parameters, then without each, then with simpler values."""
    queries, query = match_queries(request), request.query
    for some in _shorter(queries) if len(queries) > 1 else ():
        yield _with_queries(request, some)
    for shorter in _shorter(query):
        yield msgspec.structs.replace(request, query=tuple(shorter))
    for at, each in enumerate(queries):
        for key in each if len(each) > 1 else ():
            fewer = {name: value for name, value in each.items() if name != key}
            yield _with_queries(request, [*queries[:at], fewer, *queries[at + 1 :]])
    for at, (name, value) in enumerate(query):
        for simpler in () if name == QUERIES and queries else _simpler(value):
            yield msgspec.structs.replace(request, query=(*query[:at], (name, simpler), *query[at + 1 :]))
    for at, each in enumerate(queries):
        for key, value in each.items():
            for simpler in _simpler(value):
                yield _with_queries(request, [*queries[:at], {**each, key: simpler}, *queries[at + 1 :]])


def _shorter(items: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield each half, then the list without each element."""
    half = len(items) // 2
    if half > 1:
        yield list(items[:half])
        yield list(items[half:])
    for at in range(len(items)):
        yield [*items[:at], *items[at + 1 :]]


def _simpler(value: Any) -> Iterator[Any]:
    """Yield simpler values: fewer words, smaller numbers."""
    if type(value) is int:
        yield from (number for number in (0, 1) if number < value)
    elif isinstance(value, str):
        if value.isascii() and value.isdigit():
            yield from (number for number in ("0", "1") if int(number) < int(value))
            return
        pieces = (*value.split(" AND "), *value.split(","), *value.split())
        yield from (piece for piece in dict.fromkeys(pieces) if 0 < len(piece) < len(value))


def _order(request: V3Request) -> tuple[int, int, str]:
    return parameters(request), len(request.target()), request.target()


def match_queries(request: V3Request) -> list[dict[str, Any]]:
    """Return the queries of a match; empty where they are no list of objects."""
    try:
        queries = json.loads("".join(request.values(QUERIES)) or "[]")
    except ValueError:
        return []
    return queries if isinstance(queries, list) and all(isinstance(each, dict) for each in queries) else []


def _with_queries(request: V3Request, queries: list[dict[str, Any]]) -> V3Request:
    text = json.dumps(queries, ensure_ascii=False)
    pairs = tuple((name, text if name == QUERIES else value) for name, value in request.query)
    return msgspec.structs.replace(request, query=pairs)
