"""Latency added by the service, compared with the floor, at 200 requests a second and an upstream of 50 ms.

Every query is another one. Servers are measured in turn, there and back; figures are medians of rounds.
"""

import tempfile
from pathlib import Path
from statistics import mean, median

from bench.goals import Goal
from bench.processes import TARGET, Changes, LoadResult, floor, load, service, upstream, written

ROUNDS, SECONDS, WARM, RATE, UPSTREAM_MS = 5, 2.0, 0.7, 200, 50
OFF: Changes = {"coalescing.enabled": False}
COALESCING = f"latency of coalescing, as shipped above {written(OFF)}: p50 (ms)"
ADDED = "added by the service, as shipped: p50 (ms)"
GOALS = {ADDED: Goal("≤", 0.4), COALESCING: Goal("≤", 0.2)}


def run() -> dict[str, float]:
    """Return milliseconds, medians over all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [_round(Path(folder)) for _ in range(ROUNDS)]
    return {
        "latency at 200 requests/s, upstream 50 ms: floor p50 (ms)": median(low.p50 for low, _, _ in rounds),
        "floor p99 (ms)": median(low.p99 for low, _, _ in rounds),
        f"added by the service, {written(OFF)}: p50 (ms)": median(off.p50 - low.p50 for low, off, _ in rounds),
        f"added by the service, {written(OFF)}: p99 (ms)": median(off.p99 - low.p99 for low, off, _ in rounds),
        ADDED: median(shipped.p50 - low.p50 for low, _, shipped in rounds),
        "added by the service, as shipped: p99 (ms)": median(shipped.p99 - low.p99 for low, _, shipped in rounds),
        COALESCING: median(shipped.p50 - off.p50 for _, off, shipped in rounds),
    }


def _round(folder: Path) -> list[LoadResult]:
    with (
        upstream(UPSTREAM_MS) as behind,
        floor(behind) as low,
        service(behind, folder, OFF) as off,
        service(behind, folder) as shipped,
    ):
        servers = (low, off, shipped)
        for server in servers:
            load(server, TARGET, WARM, 1 / RATE)
        there = [load(server, TARGET, SECONDS, 1 / RATE) for server in servers]
        back = [load(server, TARGET, SECONDS, 1 / RATE) for server in reversed(servers)][::-1]
    return [LoadResult(*map(mean, zip(*pair, strict=True))) for pair in zip(there, back, strict=True)]
