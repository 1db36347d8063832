"""`python -m bench ablation`: gain of each optimization, measured by removing it alone.

Each is measured with the workload that it is for (bench/ablated.py). A round starts a service as shipped and one
without the optimization, and measures them in turn, there and back. The figure is CPU time per response without it, as
a multiple of that with it, and the median of rounds. The goal is a gain of 3 %: a fast path that misses it goes, with
its code.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, median

from bench.ablated import OPTIMIZATIONS, Workload
from bench.goals import Goal
from bench.processes import SAME, TARGET, Server, load, service, start_all, upstream

ROUNDS, SECONDS, WARM = 3, 0.5, 0.3
SHIPPED = "as shipped"
TARGETS: dict[Workload, str] = {
    "distinct queries": TARGET,
    "cache hits": SAME,
    "a new query by all clients at once": TARGET.replace("NUMBER", "BURST"),
}


def _row(name: str) -> str:
    return f"without {name}: CPU time of a response, {OPTIMIZATIONS[name].workload}"


GOALS = {_row(name): Goal("≥", 1.03) for name in OPTIMIZATIONS}


def run() -> dict[str, float]:
    """Return CPU time ratios, medians of rounds."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [{name: _ratio(name, Path(folder)) for name in OPTIMIZATIONS} for _ in range(ROUNDS)]
    return {_row(name): median(ratios[name] for ratios in rounds) for name in OPTIMIZATIONS}


def _ratio(name: str, folder: Path) -> float:
    with ExitStack() as stack:
        behind = stack.enter_context(upstream())
        servers = start_all(
            stack, {SHIPPED: service(behind, folder), name: service(behind, folder, through=("bench.ablated", name))}
        )
        times = _measure(servers, TARGETS[OPTIMIZATIONS[name].workload])
    return times[name] / times[SHIPPED]


def _measure(servers: dict[str, Server], target: str) -> dict[str, float]:
    """Return microseconds of CPU time per response, by server."""
    for server in servers.values():
        load(server, target, WARM)
    times: dict[str, list[float]] = {name: [] for name in servers}
    for name in [*servers, *reversed(servers)] * 2:
        times[name].append(load(servers[name], target, SECONDS).cpu)
    return {name: mean(measured) for name, measured in times.items()}
