"""Latency added by the service, compared with the floor, at 200 requests a second and an upstream of 50 ms."""

import tempfile
from pathlib import Path
from statistics import median

from bench.goals import Goal
from bench.processes import ALONE, TARGET, LoadResult, floor, load, service, upstream, written

GOALS: dict[str, Goal] = {}
ROUNDS, SECONDS, RATE, UPSTREAM_MS = 5, 5.0, 200, 50


def run() -> dict[str, float]:
    """Return milliseconds above the floor, medians over all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [_round(Path(folder)) for _ in range(ROUNDS)]
    return {
        "latency at 200 requests/s, upstream 50 ms: floor p50 (ms)": median(low.p50 for low, _, _ in rounds),
        "floor p99 (ms)": median(low.p99 for low, _, _ in rounds),
        f"added by the service, {written(ALONE)}: p50 (ms)": median(alone.p50 - low.p50 for low, alone, _ in rounds),
        f"added by the service, {written(ALONE)}: p99 (ms)": median(alone.p99 - low.p99 for low, alone, _ in rounds),
        "added by the service, as shipped: p50 (ms)": median(shipped.p50 - low.p50 for low, _, shipped in rounds),
        "added by the service, as shipped: p99 (ms)": median(shipped.p99 - low.p99 for low, _, shipped in rounds),
    }


def _round(folder: Path) -> list[LoadResult]:
    with (
        upstream(UPSTREAM_MS) as behind,
        floor(behind) as low,
        service(behind, folder, ALONE) as alone,
        service(behind, folder) as shipped,
    ):
        servers = (low, alone, shipped)
        for server in servers:
            load(server, TARGET, 1.0, 1 / RATE)
        return [load(server, TARGET, SECONDS, 1 / RATE) for server in servers]
