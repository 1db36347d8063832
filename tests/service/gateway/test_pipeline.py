"""Tests of query resolution: hits, misses, identical queries in flight, and failures."""

import asyncio
import json
import types
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec
import pytest

from proxy import config, errors, model
from proxy.gateway import applications, pipeline
from proxy.gateway.cache.coalescing import Coalescing
from proxy.gateway.cache.entries import CacheKey, ItemRenderer, RenderedResult, ResponseCache
from proxy.gateway.cache.lookup import QueryCache
from proxy.gateway.queries import GatewayRequest
from proxy.gateway.quota import reservations
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.kit import clock
from proxy.planning.operations import OperationResult, PlannedOperation, QueryResult
from proxy.stores.open import MemoryStore
from proxy.telemetry.metrics import Metrics

(CLIENT,) = applications.Applications(
    {"demo": config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.Digest(b"a")),))}
).all


class _Operation(NamedTuple):
    """Operation for the parts of these numbers."""

    numbers: list[str]
    positions: tuple[int, ...]
    parts_max: int = 0
    document: Any = types.SimpleNamespace(name="supMultiMatch")
    is_free: bool = False


class _Plan(NamedTuple):
    """Plan of one operation, whose results are those of `source`."""

    source: "_Source"
    operations: list[Any]

    def count_operations(self, found: dict[int, OperationResult]) -> list[PlannedOperation]:
        return []

    def results(self, found: dict[int, OperationResult], counted: dict[int, OperationResult]) -> list[QueryResult]:
        return [self.source.result(number) for number in self.operations[0].numbers]


class _Queries(NamedTuple):
    """A query for each number."""

    source: "_Source"
    numbers: tuple[str, ...]
    keys: list[CacheKey]
    renderer: ItemRenderer
    features: frozenset[str] = frozenset()
    ranged: tuple[int, ...] = ()

    def plan(self, positions: list[int], _: object) -> _Plan:
        operation = _Operation([self.numbers[n] for n in positions], tuple(range(len(positions))))
        return _Plan(self.source, [operation])


class _Source:
    """Upstream that returns a part of each number, when it is let go, and the pipeline before it."""

    def __init__(
        self,
        renderer: ItemRenderer,
        store: MemoryStore,
        time: clock.ManualClock,
        shares: bool = True,
        seconds: float = 60,
    ) -> None:
        settings = config.CacheSettings(seconds=seconds, stale_seconds=600)
        self.metrics = Metrics()
        self.pipeline = pipeline.Pipeline(
            cache=QueryCache(
                ResponseCache(settings, time) if seconds else None, Coalescing() if shares else None, self.metrics
            ),
            quota=reservations.Quota(store, [CLIENT.accounts], "worker", time, self.metrics),
            upstream=self,  # type: ignore[arg-type] # `execute` is all that is used of it
            metrics=self.metrics,
            projections=cast(Any, types.SimpleNamespace(is_whole=False)),
            **dict.fromkeys(("rate_limits", "directory", "tables", "single_query")),  # type: ignore[arg-type]
        )
        self.renderer = renderer
        self.executed: list[list[str]] = []
        self.failing: dict[str, errors.BridgeError | str] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def get(self, *numbers: str) -> tuple[list[RenderedResult], ResponseMetadata]:
        metadata = ResponseMetadata(0.0)
        here = model.MappingContext("US", "USD")
        request = GatewayRequest(CLIENT, model.Projection(), here, metadata)
        keys = [CacheKey(("demo", number), here) for number in numbers]
        return await self.pipeline.resolve(request, _Queries(self, numbers, keys, self.renderer)), metadata

    async def execute(self, operation: _Operation, *_: object) -> list[OperationResult]:
        self.executed.append(operation.numbers)
        await self.gate.wait()
        return [OperationResult([], 0)] * len(operation.numbers)

    def result(self, number: str) -> QueryResult:
        failing = self.failing.get(number)
        if isinstance(failing, errors.BridgeError):
            return QueryResult([], 0, failing.message, failing)
        if failing:
            return QueryResult([], 0, failing)
        records = msgspec.convert([{"mpn": number}], list[self.renderer.part.record])  # type: ignore[name-defined]
        parts = records if number != "none" else []
        return QueryResult(parts, 1, records=[msgspec.json.encode(part) for part in parts])


class _Picky(ItemRenderer):
    """Cannot translate a part that is called "broken"."""

    def items(self, records: list[Any], context: model.MappingContext) -> bytes:
        if any(record.mpn == "broken" for record in records):
            raise errors.UpstreamUnreadable("cannot be translated")
        return super().items(records, context)


@pytest.fixture
def source(renderer: Callable[..., ItemRenderer], store: MemoryStore, time: clock.ManualClock) -> _Source:
    return _Source(renderer("mpn"), store, time)


def numbers(results: list[RenderedResult]) -> list[Any]:
    return [[part["mpn"] for part in json.loads(result.items)] for result in results]


async def test_metadata_has_the_freshness_of_a_response(source: _Source, time: clock.ManualClock) -> None:
    await source.get("a")
    time.advance(20)
    _, metadata = await source.get("a", "b")
    assert metadata.until == time.monotonic() + 40
    source.failing = {"c": "no"}
    _, metadata = await source.get("a", "c")
    assert metadata.until == 0.0


async def test_an_empty_result_is_cached(source: _Source) -> None:
    for _ in range(2):
        results, _ = await source.get("none")
        assert numbers(results) == [[]]
    assert source.executed == [["none"]]


async def test_the_error_of_a_query_is_not_cached(source: _Source) -> None:
    source.failing = {"a": "no such maker"}
    results, _ = await source.get("a", "b")
    assert [(result.error, result.failure) for result in results] == [("no such maker", None), (None, None)]
    source.failing = {}
    results, _ = await source.get("a", "b")
    assert numbers(results) == [["a"], ["b"]]
    assert source.executed == [["a", "b"], ["a"]]


async def test_a_stale_result_is_served_while_upstream_fails(source: _Source, time: clock.ManualClock) -> None:
    await source.get("a")
    time.advance(100)
    trouble = source.failing["a"] = source.failing["b"] = errors.UpstreamUnreachable("gone")
    results, metadata = await source.get("a", "b")
    assert numbers(results) == [["a"], []]
    assert [result.failure for result in results] == [None, trouble]
    stale = source.metrics.registry.get_sample_value("v3bridge_queries_total", {"source": "stale"})
    assert (metadata.source, metadata.until, stale) == ("stale", 0.0, 1)
    time.advance(600)
    results, _ = await source.get("a")
    assert results[0].failure is trouble


async def test_no_stale_result_is_served_for_an_exhausted_quota(source: _Source, time: clock.ManualClock) -> None:
    await source.get("a")
    time.advance(100)
    source.failing["a"] = errors.QuotaExhausted("spent", retry_after=10)
    results, _ = await source.get("a")
    assert results[0].failure is source.failing["a"]


async def test_a_failure_is_shared_and_not_cached(source: _Source) -> None:
    source.failing["a"] = errors.UpstreamUnreachable("gone")
    source.gate.clear()
    tasks = [asyncio.create_task(source.get("a")) for _ in range(3)]
    await asyncio.sleep(0)
    source.gate.set()
    assert [results[0].error for results, _ in await asyncio.gather(*tasks)] == ["gone"] * 3
    source.failing = {}
    results, _ = await source.get("a")
    assert (numbers(results), len(source.executed)) == ([["a"]], 2)


async def test_an_untranslatable_result_fails_alone_and_the_others_are_cached(source: _Source) -> None:
    source.renderer = _Picky("picky", source.renderer.part, source.renderer.fetched)
    results, metadata = await source.get("a", "broken", "b")
    assert numbers(results) == [["a"], [], ["b"]]
    assert [result.error for result in results] == [None, "cannot be translated", None]
    assert (type(results[1].failure), metadata.until) == (errors.UpstreamUnreadable, 0.0)
    results, _ = await source.get("a", "b")
    assert numbers(results) == [["a"], ["b"]]
    assert source.executed == [["a", "broken", "b"]]


async def test_a_cached_result_that_another_projection_cannot_translate_fails_alone(
    source: _Source, time: clock.ManualClock
) -> None:
    await source.get("a", "broken")
    source.renderer = _Picky("picky", source.renderer.part, source.renderer.fetched)
    results, _ = await source.get("a", "broken")
    assert numbers(results) == [["a"], []]
    assert isinstance(results[1].failure, errors.UpstreamUnreadable)
    assert len(source.executed) == 1
    time.advance(100)
    gone = source.failing["broken"] = errors.UpstreamUnreachable("gone")
    results, _ = await source.get("a", "broken")
    assert [result.failure for result in results] == [None, gone]


async def test_an_exhausted_quota_of_another_key_is_not_shared(source: _Source) -> None:
    source.gate.clear()
    source.failing["a"] = errors.QuotaExhausted("spent by another key", retry_after=10)
    first = asyncio.create_task(source.get("a"))
    await asyncio.sleep(0)
    second = asyncio.create_task(source.get("a", "b"))
    third = asyncio.create_task(source.get("a"))
    await asyncio.sleep(0)
    source.gate.set()
    refused, _ = await first
    source.failing = {}
    results, metadata = await second
    assert isinstance(refused[0].failure, errors.QuotaExhausted)
    assert numbers(results) == [["a"], ["b"]]
    assert numbers((await third)[0]) == [["a"]]
    assert source.executed[:3] == [["a"], ["b"], ["a"]]
    assert metadata.source == "miss"
