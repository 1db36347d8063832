"""The response cache: look-ups in the shared cache, responses from it, and memory of the cache in a worker.

Look-ups are timed at the interface of the shared cache, each alone, beside SQLite and in Redis; a miss includes its
claim. Responses are timed from outside, one at a time, as shipped: a service that was restarted has them in its shared
cache, and the second time in memory.

Memory is what a worker grows by until `cache.bytes` is full. Distinct queries, half as many again as fit, are each
requested three times in a row, because a response is kept in encoded form from the third time on, and the limit holds
for both forms together.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterable
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import NamedTuple

import yaml

from bench import canned, processes
from bench.goals import Goal
from bench.processes import TARGET, TIMEOUT, Changes, Server, service, upstream
from proxy import config, model
from proxy.config import loader
from proxy.gateway.applications import Application, Applications
from proxy.gateway.cache import shared
from proxy.gateway.cache.cached_records import CachedRecords
from proxy.gateway.cache.entries import CacheKey
from proxy.kit import clock, event_loop
from proxy.stores import open as opening
from proxy.telemetry.metrics import Metrics

ENTRIES, TIMES, OVERFILL = 500, 3, 1.5
MEMORY = "memory growth of a worker until cache.bytes, 64 MiB, is full (MB)"
STORES = ("SQLite", "Redis")


def _row(store: str, outcome: str) -> str:
    return f"look-up in the shared cache, {store}, {outcome}: median (ms)"


GOALS = {
    **{_row(store, outcome): Goal("≤", 0.3) for store in STORES for outcome in ("hit", "miss")},
    MEMORY: Goal("≤", 80),
}


def run() -> dict[str, float]:
    """Return milliseconds, microseconds of CPU time, and MB."""
    with tempfile.TemporaryDirectory() as folder, processes.redis() as redis:
        figures: dict[str, float] = {}
        for store, url in zip(STORES, (f"sqlite:{folder}/look-ups.sqlite", redis), strict=True):
            hit, miss = event_loop.run(_look_ups(url, Path(folder)))
            figures |= {_row(store, "hit"): hit, _row(store, "miss"): miss}
        return figures | _responses(Path(folder)) | {MEMORY: _memory(Path(folder))}


async def _look_ups(url: str, folder: Path) -> tuple[float, float]:
    """Return the median milliseconds of a hit and of a miss."""
    file = folder / "look-ups.yaml"
    file.write_text(yaml.safe_dump(processes.configuration(9, folder, {"store": url})), encoding="utf-8")
    settings = loader.load(file, os.environ)
    (application,) = Applications(settings.applications).applications.values()
    parts = canned.document()["data"]["supMultiMatch"][0]["parts"]
    records = CachedRecords(frozenset({"mpn"}), json.dumps(parts).encode(), 3, None, clock.SystemClock().now())
    queries = [CacheKey((number,), model.MappingContext("US", "USD")) for number in range(2 * ENTRIES)]
    stored, others = queries[:ENTRIES], queries[ENTRIES:]
    writer = _open(settings)
    for key in _keys(writer, application, stored):
        writer.put(application, key, [records])
    await writer.close()
    reader = _open(settings)
    times: list[list[float]] = []
    for group, is_hit in ((stored, True), (others, False)):
        keys = _keys(reader, application, group)
        times.append([await _timed(reader, key, is_hit) for key in keys])
        reader.release(keys)
    await reader.close()
    hit, miss = map(median, times)
    return hit, miss


def _keys(cache: shared.SharedCache, application: Application, queries: Iterable[CacheKey]) -> list[bytes]:
    return [key for query in queries if (key := cache.key(application, query)) is not None]


def _open(settings: config.Config) -> shared.SharedCache:
    time_source = clock.SystemClock()
    store = opening.open_cache(settings.store, settings.cache.shared_bytes, shared.CLAIM_SECONDS, time_source)
    assert store is not None
    metrics = Metrics()
    return shared.SharedCache(store, settings.cache, b"bench", claims=True, metrics=metrics)


async def _timed(cache: shared.SharedCache, key: bytes, is_hit: bool) -> float:
    start = time.perf_counter()
    (looked_up,) = await cache.look_up([key])
    milliseconds = (time.perf_counter() - start) * 1e3
    if bool(looked_up.records) is not is_hit or looked_up.claimed is is_hit:
        raise RuntimeError(f"a look-up gave {looked_up}")
    return milliseconds


class _Timing(NamedTuple):
    """Median milliseconds of a response, and microseconds of CPU time of the service."""

    p50: float
    cpu: float


def _responses(folder: Path) -> dict[str, float]:
    """Measure responses that a restarted service has in its shared cache, then in memory."""
    changes: Changes = {"store": f"sqlite:{folder}/responses.sqlite"}
    with upstream() as behind:
        with service(behind, folder, changes) as server:
            upstreams = _sent(server, range(ENTRIES))
        behind.body("/count")
        with service(behind, folder, changes) as server:
            server.body(TARGET.replace("NUMBER", "0"))
            from_store, from_memory = _sent(server, range(1, ENTRIES)), _sent(server, range(1, ENTRIES))
        _, parts = json.loads(behind.body("/count"))
    timings = {"upstream": upstreams, "the shared cache after a restart": from_store, "memory": from_memory}
    return {
        **{f"response from {source}: p50 (ms)": timing.p50 for source, timing in timings.items()},
        **{f"response from {source}: CPU time (µs)": timing.cpu for source, timing in timings.items()},
        "parts of the responses after a restart": parts,
    }


def _sent(server: Server, numbers: Iterable[int]) -> _Timing:
    """Request queries one after the other over one connection."""
    connection, times, before = HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT), [], server.cpu()
    for number in numbers:
        start = time.perf_counter()
        _request(connection, number)
        times.append(time.perf_counter() - start)
    connection.close()
    return _Timing(median(times) * 1e3, (server.cpu() - before) / len(times) * 1e6)


def _request(connection: HTTPConnection, number: int) -> bytes:
    connection.request("GET", TARGET.replace("NUMBER", str(number)))
    return connection.getresponse().read()


def _memory(folder: Path) -> float:
    limit = config.CacheSettings().bytes
    with upstream() as behind, service(behind, folder) as server:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
        size = len(_request(connection, 0))
        before = server.memory()
        for number in range(1, int(OVERFILL * limit / size)):
            for _ in range(TIMES):
                _request(connection, number)
        growth = server.memory() - before
        connection.close()
    return growth
