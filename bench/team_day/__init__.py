"""A team's day: what twelve programs request between two midnights, by the service, the floor, and the floor with an
LRU cache of responses.

The trace is data (bench/team_day/trace.jsonl); the clock of the service moves with it. The servers are measured in
turn, each new; figures are medians of rounds.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.goals import Goal
from bench.moved_clock import moving
from bench.processes import Server, day_floor, day_upstream, pin, service
from bench.team_day import programs

ROUNDS = 3
DAY_SECONDS = 600.0  # that a day may take at most
CACHE_BYTES = 64 * 1024 * 1024  # as cache.bytes of the service
SERVICE, FLOOR, CACHED = "v3bridge", "floor", "floor with an LRU cache"
FEWEST = "fewest parts with which any program can serve the day"
GOALS = {
    f"{SERVICE} / {FLOOR}: CPU time": Goal("≤", 0.25),
    f"{SERVICE} / {FLOOR}: parts": Goal("≤", 0.15),
    f"{SERVICE} / {CACHED}: CPU time": Goal("≤", 1.0),
    f"{SERVICE} / {CACHED}: parts": Goal("≤", 0.5),
}


class Day(NamedTuple):
    """Figures of a day: CPU seconds, parts, upstream requests, percentiles of response times in ms."""

    cpu: float
    parts: float
    requests: float
    p50: float
    p95: float
    p99: float


def run() -> dict[str, float]:
    """Return medians over all rounds."""
    with tempfile.TemporaryDirectory() as name:
        rounds = [_round(Path(name)) for _ in range(ROUNDS)]
    days = {name: Day(*map(median, zip(*(days[name] for days in rounds), strict=True))) for name in rounds[0]}
    return {
        **{f"{name}: {figure}": value for name, day in days.items() for figure, value in _figures(day).items()},
        FEWEST: programs.fewest_parts(),
        **{
            f"{SERVICE} / {other}: {figure}": median(read(days[SERVICE]) / read(days[other]) for days in rounds)
            for other in (FLOOR, CACHED)
            for figure, read in RATIOS.items()
        },
    }


RATIOS: dict[str, Callable[[Day], float]] = {"CPU time": lambda day: day.cpu, "parts": lambda day: day.parts}


def _figures(day: Day) -> dict[str, float]:
    return {
        "CPU time of the day (s)": day.cpu,
        "parts of the day": day.parts,
        "upstream requests of the day": day.requests,
        "p50 (ms)": day.p50,
        "p95 (ms)": day.p95,
        "p99 (ms)": day.p99,
    }


def _round(folder: Path) -> dict[str, Day]:
    servers: dict[str, Callable[[Server], AbstractContextManager[Server]]] = {
        SERVICE: lambda behind: service(behind, folder),
        FLOOR: day_floor,
        CACHED: lambda behind: day_floor(behind, CACHE_BYTES),
    }
    days = {}
    for name in random.sample(list(servers), len(servers)):
        with moving(folder), day_upstream() as behind, servers[name](behind) as server:
            behind.body("/count")
            days[name] = _day(server, behind)
    return days


def _day(server: Server, behind: Server) -> Day:
    command = [sys.executable, "-m", "bench.team_day.load", str(server.port)]
    before = server.cpu()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as load:
        pin(load.pid, 1)
        try:
            printed, _ = load.communicate(timeout=DAY_SECONDS)
        finally:
            load.kill()
    if load.returncode:
        raise RuntimeError("the load of the day ended with an error")
    requests, parts = json.loads(behind.body("/count"))
    return Day(server.cpu() - before, parts, requests, **json.loads(printed))
