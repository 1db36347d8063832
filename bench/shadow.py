"""Latency that shadowing adds: 200 requests a second, an upstream of 50 ms, alternating with a service without shadow.

All requests are selected, at the default rate limit; the old service responds, stalls or aborts connections.
"Unbounded" is without the rate limit: as many as four connections allow. "Off again" is a second service without a
shadow; the difference of these two is chance, and the bound of the goals. All else is as shipped. The judge process is
on the same core as the service, as on a machine with one core.
"""

import random
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench.goals import Goal
from bench.processes import TARGET, Changes, LoadResult, load, old_service, service, start_all, upstream

# Largest ratio of two services without a shadow, which is chance.
CHANCE = "p99, off again and off, furthest apart in a round"
ROUNDS, SECONDS, WARM, RATE, UPSTREAM_MS = 4, 2.5, 1.0, 200, 50
KINDS: dict[str, tuple[str, Changes] | None] = {
    "off": None,
    "off again": None,
    "on": ("answering", {}),
    "stalled": ("stalled", {}),
    "crashing": ("crashing", {}),
    "unbounded": ("answering", {"shadow.rate": 0}),
}


GOALS = {f"p99, shadow {kind} / off": Goal("≤", CHANCE) for kind in ("on", "stalled", "crashing")}


def run() -> dict[str, float]:
    """Return ratios and milliseconds, medians over all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [_round(Path(folder)) for _ in range(ROUNDS)]
    figures = {
        "shadow off, 200 requests/s, upstream 50 ms: p50 (ms)": median(each["off"].p50 for each in rounds),
        "shadow off: p99 (ms)": median(each["off"].p99 for each in rounds),
    }
    for kind in list(KINDS)[1:]:
        name = kind if kind == "off again" else f"shadow {kind}"
        figures[f"p99, {name} / off"] = median(each[kind].p99 / each["off"].p99 for each in rounds)
        if kind == "off again":
            figures[CHANCE] = max(_ratio(each[kind].p99, each["off"].p99) for each in rounds)
        figures[f"CPU time per response, {name} / off"] = median(each[kind].cpu / each["off"].cpu for each in rounds)
    return figures


def _ratio(one: float, other: float) -> float:
    return max(one, other) / min(one, other)


def _round(folder: Path) -> dict[str, LoadResult]:
    with ExitStack() as stack:
        behind = stack.enter_context(upstream(UPSTREAM_MS))
        services = {}
        for kind, chosen in KINDS.items():
            changes: Changes = {}
            if chosen is not None:
                old = stack.enter_context(old_service(chosen[0]))
                url = f"http://127.0.0.1:{old.port}/v3"
                changes = {"shadow.baseline_url": url, "applications.demo.shadow.share": 1, **chosen[1]}
            services[kind] = service(behind, folder, changes)
        servers = start_all(stack, services)
        for server in servers.values():
            load(server, TARGET, WARM, 1 / RATE)
        order = random.sample(list(servers), len(servers))  # the first one has an advantage, so it changes
        return {kind: load(servers[kind], TARGET, SECONDS, 1 / RATE) for kind in order}
