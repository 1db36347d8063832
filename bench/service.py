"""The service beside the floor (bench/floor.py) and beside a constant body, on a canned upstream.

The service has its shipped configuration but for addresses, with an SQLite store and a log in files. The floor fetches
the same fields of a part. A round starts the servers of a comparison anew and measures each twice, in random order,
there and back; figures are medians of the quieter half of the rounds. By CPU: per second of CPU time of the server.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from statistics import mean, median
from typing import NamedTuple

from bench import canned
from bench.processes import LoadResult, Server, floor, load, service, target, upstream

ROUNDS, SECONDS, WARM = 8, 0.8, 0.6
RATE, UPSTREAM_MS = 200, 50
SLOW_MS, CALLERS = 13_000, 6
REQUESTS = 100_000
SAME, NEW = target(canned.mpn(1)), target("TDNUMBER")
TWENTY = target(*(f"TDNUMBER{place:02}" for place in range(20)))
# A target may end the request line itself, and add an id to the request.
WITH_ID = SAME + " HTTP/1.1\r\nX-Request-Id: id-NUMBER\r\nX-Rest-Of-Line:"
SERVICE, FLOOR = "service", "floor"

Serving = Callable[[Server], AbstractContextManager[Server]]
Round = Mapping[str, Sequence[LoadResult]]  # two results of each server


class Measured(NamedTuple):
    """What servers are asked for, over how many connections, and by one request every so often instead of as many as
    possible; the core of load and upstream."""

    target: str
    connections: int = 64
    every: float = 0.0
    core: int | None = 1


COMPARISONS = {
    "new request as shipped, 64 connections / floor with whole parts, by CPU": Measured(NEW),
    "new request as shipped, one connection / floor with whole parts, by CPU": Measured(NEW, 1),
    "20 queries a request / floor with whole parts, by CPU": Measured(TWENTY),
    "repeated request / constant aiohttp body, by CPU": Measured(SAME),
    "with an X-Request-Id of its own / constant aiohttp body with one, by CPU": Measured(WITH_ID),
}
WORKERS = "two workers / one, new requests"
ADDED = "p50 added to the floor at 200/s, upstream of 50 ms (ms)"
SLOW = "slow upstream (13 s), six equal callers, two workers: parts billed"
IDLE, GROWN = "memory, idle (MB)", "memory after 10^5 requests (MB)"
GOALS = {
    **dict(zip(COMPARISONS, (1.10, 0.75, 3.2, 0.75, 0.75), strict=True)),
    **{WORKERS: 1.45, ADDED: -0.40, SLOW: -1, IDLE: -75, GROWN: -160},
}


def run() -> dict[str, float]:
    """Return medians over rounds."""
    figures: dict[str, float] = {}
    with upstream() as behind, service(behind) as server:
        constant = f"constant={len(server.get(SAME))}"
        fields = f"fields={','.join(behind.counts()['fields'])}"
    for row, measured in COMPARISONS.items():
        rounds = _rounds(_beside(constant if "constant" in row else fields), measured)
        figures[row] = median(each[FLOOR].cpu / each[SERVICE].cpu for each in rounds)
        for name in (SERVICE, FLOOR):
            figures[f"{row.partition(' /')[0]}: CPU time of {name} (µs)"] = median(each[name].cpu for each in rounds)
    rounds = _rounds(_beside(fields), Measured(NEW, every=1 / RATE), UPSTREAM_MS)
    figures[ADDED] = median(each[SERVICE].p50 - each[FLOOR].p50 for each in rounds)
    return figures | _workers() | _memory() | {SLOW: _slow()}


def _beside(option: str) -> dict[str, Serving]:
    return {SERVICE: service, FLOOR: lambda behind: floor(behind, option)}


def _rounds(
    servers: Mapping[str, Serving], measured: Measured, milliseconds: float = 0.0
) -> list[dict[str, LoadResult]]:
    """Return the quieter half of some rounds, in which no server's two results differ much: the mean of each."""

    def noise(results: Round) -> float:
        return max(abs(there.cpu - back.cpu) / there.cpu for there, back in results.values())

    rounds = sorted((_round(servers, measured, milliseconds) for _ in range(ROUNDS)), key=noise)
    half = rounds[: (ROUNDS + 1) // 2]
    return [{name: LoadResult(*map(mean, zip(*both, strict=True))) for name, both in each.items()} for each in half]


def _round(servers: Mapping[str, Serving], measured: Measured, milliseconds: float) -> Round:
    with ExitStack() as stack:
        behind = stack.enter_context(upstream(milliseconds, core=measured.core))
        started = {name: stack.enter_context(serving(behind)) for name, serving in servers.items()}
        results: dict[str, list[LoadResult]] = {name: [] for name in started}
        for server in started.values():
            load(server, WARM, *measured)
        order = random.sample(list(started), len(started))
        for name in [*order, *reversed(order)]:
            results[name].append(load(started[name], SECONDS, *measured))
    return results


def _workers() -> dict[str, float]:
    """Measure the throughput of one and two processes. Nothing is pinned to a core: the load generator and the upstream
    take their share of both, so that two workers cannot be twice as fast."""
    servers: dict[str, Serving] = {
        "one": lambda behind: service(behind, core=None),
        "two": lambda behind: service(behind, {"listen.workers": 2}, core=None),
    }
    rounds = _rounds(servers, Measured(NEW, core=None))
    return {WORKERS: median(each["two"].rate / each["one"].rate for each in rounds)}


def _memory() -> dict[str, float]:
    with upstream() as behind, service(behind) as server:
        idle, sent = server.memory(), 0.0
        while sent < REQUESTS:
            sent += load(server, 5.0, NEW).responses
        return {IDLE: idle, GROWN: server.memory()}


def _slow() -> float:
    """Return the parts that equal requests cost which wait for one another."""
    with upstream(SLOW_MS, 1) as behind, service(behind, {"listen.workers": 2}, core=None) as server:
        with ThreadPoolExecutor(CALLERS) as callers:
            list(callers.map(server.get, [SAME] * CALLERS))
        return float(behind.counts()["parts"])
