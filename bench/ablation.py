"""`python -m bench ablation`: gain of each optimisation, measured by removing it alone.

For each row two new services serve the same requests alternately, one as shipped and one without the optimisation
(bench/ablated.py). The figure is CPU time per response without it, as a multiple of that with it; below 1.03 the gain
is less than 3 % of a request.
"""

import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.ablated import CHANGES
from bench.goals import Goal
from bench.processes import ALONE, SAME, TARGET, Changes, Server, load, service, upstream

ROUNDS, SECONDS, WARM = 5, 1.0, 1.0
GOALS: dict[str, Goal] = {}
# A target that ends the request line itself, and adds an X-Request-Id: such requests are parsed.
IDENTIFIED = f"{SAME} HTTP/1.1\r\nX-Request-Id: id-NUMBER\r\nX-Rest-Of-Line:"


class Workload(NamedTuple):
    """Requests of a row, and the settings of the service."""

    target: str
    changes: Changes


WORKLOADS = {
    "distinct queries": Workload(TARGET, ALONE),
    "cache hits": Workload(SAME, {}),
    "cache hits with request ids": Workload(IDENTIFIED, {}),
    "equal requests": Workload(SAME, {"cache.seconds": 0}),
}


def run() -> dict[str, float]:
    """Return CPU time ratios, medians of alternating rounds."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            f"without {name}, {kind} (CPU time a response)": median(
                _round(name, workload, Path(folder)) for _ in range(ROUNDS)
            )
            for name in CHANGES
            for kind, workload in WORKLOADS.items()
        }


def _round(name: str, workload: Workload, folder: Path) -> float:
    with (
        upstream() as canned,
        service(canned, folder, workload.changes) as shipped,
        service(canned, folder, workload.changes, without=name) as ablated,
    ):
        for server in (shipped, ablated):
            load(server, workload.target, WARM)
        turns = [
            (server, load(server, workload.target, SECONDS).cpu) for server in (shipped, ablated, ablated, shipped)
        ]
    return _mean(turns, ablated) / _mean(turns, shipped)


def _mean(turns: list[tuple[Server, float]], server: Server) -> float:
    figures = [cpu for one, cpu in turns if one is server]
    return sum(figures) / len(figures)
