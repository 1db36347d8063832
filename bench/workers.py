"""Throughput of two workers compared with one, for distinct queries: of the service as shipped, and of a bare aiohttp
program (bench/floor.py) in one and in two processes.

Nothing is pinned to a core: the load generator and the canned upstream take their share of both, so that two workers
cannot be twice as fast. Rounds start all servers anew and measure them in random order.
"""

import random
import tempfile
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from statistics import median

from bench.goals import Goal
from bench.processes import TARGET, Server, floor, load, service, start_all, upstream

ROUNDS, SECONDS, WARM = 5, 2.0, 0.8
SERVICE, BARE = "service", "bare aiohttp program"
# The goal is what the bare program reaches in the same run.
RATIO = "two workers / one, distinct queries, of the bare program's ratio"
GOALS = {RATIO: Goal("≥", 1.0)}


def run() -> dict[str, float]:
    """Return throughput by number of processes, and the ratios, as medians of rounds."""
    with tempfile.TemporaryDirectory() as name:
        rounds = [_round(Path(name)) for _ in range(ROUNDS)]
    figures = {f"{name}, {number}": median(each[name, number] for each in rounds) for name, number in rounds[0]}
    ratios = {name: median(each[name, 2] / each[name, 1] for each in rounds) for name in (SERVICE, BARE)}
    return {
        **{f"{what} (requests/s)": rate for what, rate in figures.items()},
        **{f"two processes / one, distinct queries: {name}": ratio for name, ratio in ratios.items()},
        RATIO: ratios[SERVICE] / ratios[BARE],
    }


def _round(folder: Path) -> dict[tuple[str, int], float]:
    rates = {}
    with ExitStack() as stack:
        behind = stack.enter_context(upstream(core=None))
        servers: dict[str, AbstractContextManager[Server]] = {
            f"{SERVICE} 1": service(behind, folder, core=None),
            f"{SERVICE} 2": service(behind, folder, {"listen.workers": 2}, core=None),
            f"{BARE} 1": floor(behind, core=None),
            f"{BARE} 2": floor(behind, "forked", core=None),
        }
        started = list(start_all(stack, servers).items())
        random.shuffle(started)
        for _, server in started:
            load(server, TARGET, WARM, core=None)
        for name, server in started:
            what, _, number = name.rpartition(" ")
            rates[what, int(number)] = load(server, TARGET, SECONDS, core=None).rate
    return dict(sorted(rates.items(), reverse=True))
