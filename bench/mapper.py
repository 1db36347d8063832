"""The compiled mapper compared with a mapping written by hand on dicts (bench/floor.py), from body to encoded v3 parts.

Both translate the same response of 14 KB into the same 3 parts, alternately; times are CPU times.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import msgspec
import orjson

from bench import canned, floor
from bench.goals import Goal
from proxy import model
from proxy.gateway.cache.entries import ItemRenderer
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import projection_cache
from proxy.planning.operations import join_records

ROUNDS, REPEATS = 30, 100
GOALS = {"mapper, compiled / by hand": Goal("≤", 0.8)}
MARKET = model.MappingContext("US", "USD")


def run() -> dict[str, float]:
    """Return microseconds per body by step, and ratios to the mapping by hand, each the median of all rounds."""
    projection = projection_cache.ProjectionCache(loader.load(shipped.path("mappings"))).match(
        model.Projection(features=frozenset({"LEAD_TIME"}))
    )
    body, renderer = canned.body(), ItemRenderer("default", projection.part, projection.fetched.fields)
    read = projection.documents.multi_match.operation({}, 0).decode

    def records() -> list[Any]:
        return projection.part.decode_list(join_records(read(body).data.supMultiMatch[0].parts))

    def by_hand() -> bytes:
        return orjson.dumps([floor.part(part) for part in orjson.loads(body)["data"]["supMultiMatch"][0]["parts"]])

    decoded = records()
    mapped = [projection.part.map(part, MARKET) for part in decoded]
    jobs: dict[str, Callable[[], Any]] = {
        "decode": records,
        "map": lambda: [projection.part.map(part, MARKET) for part in decoded],
        "encode": lambda: msgspec.json.encode(mapped),
        "compiled": lambda: renderer.items(records(), MARKET),
        "by hand": by_hand,
    }
    assert [len(part["offers"]) for part in orjson.loads(jobs["compiled"]())] == [
        len(part["offers"]) for part in orjson.loads(by_hand())
    ]
    times = [{name: _time(job) for name, job in jobs.items()} for _ in range(ROUNDS)]
    figures = {f"mapper, {name} (µs)": statistics.median(each[name] for each in times) for name in jobs}
    ratio = statistics.median(each["compiled"] / each["by hand"] for each in times)
    return {**figures, "mapper, compiled / by hand": ratio}


def _time(job: Callable[[], object]) -> float:
    started = time.process_time()
    for _ in range(REPEATS):
        job()
    return (time.process_time() - started) / REPEATS * 1e6
