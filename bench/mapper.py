"""The compiled mapper compared with a mapping written by hand on dicts (bench/floor.py), from body to v3 objects.

Goal: at most 1.3 times its time. Both map the same response of 13 KB to the same 3 parts, alternately.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import orjson

from bench import canned, floor
from bench.goals import Goal
from proxy import model
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import projection_cache

ROUNDS, REPEATS = 40, 200
GOALS = {"mapper, compiled / by hand": Goal("≤", 1.3)}


def run() -> dict[str, float]:
    """Return microseconds per body, and compiled / by hand, each the median of all rounds."""
    projection = projection_cache.ProjectionCache(loader.load(shipped.path("mappings"))).match(
        model.Projection(features=frozenset({"LEAD_TIME"}))
    )
    body, market = canned.body(), model.MappingContext("US", "USD")
    decode, to_v3 = projection.documents.multi_match.operation({}, 0).decode, projection.part.map

    def compiled() -> list[dict[str, Any]]:
        return [to_v3(part, market) for part in decode(body).data.supMultiMatch[0].parts]

    def by_hand() -> list[dict[str, Any]]:
        return [floor.part(part) for part in orjson.loads(body)["data"]["supMultiMatch"][0]["parts"]]

    assert [len(part["offers"]) for part in compiled()] == [len(part["offers"]) for part in by_hand()]
    times = [(_time(compiled), _time(by_hand)) for _ in range(ROUNDS)]
    return {
        "mapper, compiled (µs)": statistics.median(t for t, _ in times),
        "mapper, by hand (µs)": statistics.median(t for _, t in times),
        "mapper, compiled / by hand": statistics.median(ours / theirs for ours, theirs in times),
    }


def _time(job: Callable[[], object]) -> float:
    started = time.perf_counter()
    for _ in range(REPEATS):
        job()
    return (time.perf_counter() - started) / REPEATS * 1e6
