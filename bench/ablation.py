"""`python -m bench ablation`: gain of each optimisation, measured by removing it alone.

A round starts one service as shipped and one without each optimisation (bench/ablated.py), and measures them in random
order, there and back, with the same workloads. The figure is CPU time per response without the optimisation, as a
multiple of that with it, and the median of rounds; where it is below 1.03 for all workloads the gain is less than 3 %,
and the row says so.
"""

import random
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, median

from bench.ablated import CHANGES
from bench.goals import Goal
from bench.processes import SAME, TARGET, Server, load, service, start_all, upstream

ROUNDS, SECONDS, WARM = 4, 0.3, 0.2
SHIPPED = "as shipped"
# A target that ends the request line itself, and adds an X-Request-Id: such requests are parsed, also cache hits.
IDENTIFIED = f"{SAME} HTTP/1.1\r\nX-Request-Id: id-NUMBER\r\nX-Rest-Of-Line:"
WORKLOADS = {
    "distinct queries": TARGET,
    "cache hits": SAME,
    "cache hits with request ids": IDENTIFIED,
    "a new query by all clients at once": TARGET.replace("NUMBER", "BURST"),
}
LARGEST = "the largest"


def _row(name: str, kind: str) -> str:
    return f"without {name}: CPU time of a response, {kind}"


GOALS = {_row(name, LARGEST): Goal("≥", 1.03, otherwise="gains less than 3 %") for name in CHANGES}


def run() -> dict[str, float]:
    """Return CPU time ratios, medians of rounds."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [_round(Path(folder)) for _ in range(ROUNDS)]
    figures = {}
    for name in CHANGES:
        by_kind = {kind: median(ratios[kind][name] / ratios[kind][SHIPPED] for ratios in rounds) for kind in WORKLOADS}
        for kind, ratio in (by_kind | {LARGEST: max(by_kind.values())}).items():
            figures[_row(name, kind)] = ratio
    return figures


def _round(folder: Path) -> dict[str, dict[str, float]]:
    """Return microseconds of CPU time per response by workload and removed optimisation."""
    with ExitStack() as stack:
        behind = stack.enter_context(upstream())
        ablated = {name: service(behind, folder, without=name) for name in CHANGES}
        servers = start_all(stack, {SHIPPED: service(behind, folder), **ablated})
        return {kind: _measure(servers, target) for kind, target in WORKLOADS.items()}


def _measure(servers: dict[str, Server], target: str) -> dict[str, float]:
    for server in servers.values():
        load(server, target, WARM)
    times: dict[str, list[float]] = {name: [] for name in servers}
    order = random.sample(list(servers), len(servers))
    for name in [*order, *reversed(order)]:
        times[name].append(load(servers[name], target, SECONDS).cpu)
    return {name: mean(pair) for name, pair in times.items()}
