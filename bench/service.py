"""Throughput of the service compared with the floor (bench/floor.py) and with a constant body, on a canned upstream.

64 connections send the next request as soon as they have a response; the upstream responds at once. The service has its
shipped configuration, but for addresses and the settings in the name of a row: API keys, projections, ledger on disk,
metrics, request ids, shared cache, and a log at `info` to a file. The floor and the constant body have none of these.
A round starts all servers of a comparison anew and measures them in random order, there and back, so that a machine
that slows down favours none; figures are medians of rounds.

`BENCH_BESIDE=CHECKOUT python -m bench service` measures the service of another checkout, which has its own `.venv`, in
the same rounds.
"""

import os
import random
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from bench.goals import Goal
from bench.processes import (
    ALONE,
    SAME,
    TARGET,
    TREE,
    WITH_ID,
    Changes,
    LoadResult,
    Server,
    constant,
    floor,
    floor_structs,
    load,
    service,
    start_all,
    upstream,
    written,
)

ROUNDS, SECONDS, WARM = 7, 0.8, 0.6
BESIDE = os.environ.get("BENCH_BESIDE")
MISS, HIT = "distinct queries, as shipped", "cache hits, as shipped"
FLOOR, PEER, WHOLE = "floor", "floor with msgspec structs", "floor with whole parts"
CONSTANT, CONSTANT_WITH_ID = "constant body", "constant body, requests with ids"
HITS_WITH_ID = "cache hits, requests with ids"
IDENTICAL: Changes = {"cache.seconds": 0}
SINGLE: Changes = {"translation.single_query": "supSearchMpn"}
DISTINCT: tuple[Changes, ...] = (ALONE, {}, SINGLE, {"cache.shared": False})
HITS: tuple[Changes, ...] = ({}, {"log.level": "warning"})


def _distinct(changes: Changes) -> str:
    return f"distinct queries, {written(changes)}"


def _identical(changes: Changes) -> str:
    return f"identical queries, {written(changes)}"


def _hits(changes: Changes) -> str:
    return f"cache hits, {written(changes)}"


# Throughput of distinct queries has the goals of the first design, which pure Python does not reach; CPU time has those
# that it can.
GOALS = {
    f"{_distinct(ALONE)} / {FLOOR}": Goal("≥", 1.10),
    f"{_distinct(ALONE)} / {FLOOR}, by CPU": Goal("≥", 1.00),
    f"{_distinct({})} / {FLOOR}": Goal("≥", 1.30),
    f"{_distinct({})} / {WHOLE}, by CPU": Goal("≥", 0.90),
    f"{_distinct(SINGLE)} / {FLOOR}": Goal("≥", 1.25),
    f"{_identical(IDENTICAL)} / {FLOOR}": Goal("≥", 3.5),
    f"{_hits({})} / {CONSTANT}": Goal("≥", 0.80),
    f"{_hits({})} / {CONSTANT}, by CPU": Goal("≥", 1.43),
    f"{HITS_WITH_ID} / {CONSTANT_WITH_ID}, by CPU": Goal("≥", 0.90),
    f"{_hits(HITS[1])} / {CONSTANT}, by CPU": Goal("≥", 0.90),
    "response size, service / floor": Goal("≥", 0.98),
    # Above 1 the load generator, not the server, would decide the throughput of the fastest row.
    "load generator / constant body, CPU time of a response": Goal("≤", 0.9),
}

Serving = Callable[[Server], AbstractContextManager[Server]]


class Contender(NamedTuple):
    """A server of a comparison, and the target of its requests."""

    serving: Serving
    target: str


Round = Mapping[str, LoadResult]
"""Results of one round by contender, each the mean of two measurements."""


def run() -> dict[str, float]:
    """Return medians over all rounds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        floor_bytes, service_bytes = _response_sizes(folder)
        misses = [_round(_miss_contenders(folder)) for _ in range(ROUNDS)]
        hits = [_round(_hit_contenders(folder, service_bytes)) for _ in range(ROUNDS)]
    return {
        "floor: response size (bytes)": floor_bytes,
        "response size, service / floor": service_bytes / floor_bytes,
        "floor (requests/s)": median(results[FLOOR].rate for results in misses),
        **_ratios(misses, FLOOR),
        f"{_distinct({})} / {WHOLE}, by CPU": _by_cpu(misses, _distinct({}), WHOLE),
        "floor: p99 (ms)": median(results[FLOOR].p99 for results in misses),
        **{
            f"{_distinct(changes)}: p99 (ms)": median(results[_distinct(changes)].p99 for results in misses)
            for changes in DISTINCT
        },
        **_cpu_times(misses, (FLOOR, MISS)),
        "constant body of the same size (requests/s)": median(results[CONSTANT].rate for results in hits),
        **_ratios(hits, CONSTANT),
        f"{HITS_WITH_ID} / {CONSTANT_WITH_ID}, by CPU": _by_cpu(hits, HITS_WITH_ID, CONSTANT_WITH_ID),
        **_cpu_times(hits, (CONSTANT, HIT)),
        "load generator / constant body, CPU time of a response": median(
            results[CONSTANT].load_cpu / results[CONSTANT].cpu for results in hits
        ),
    }


def _cpu_times(rounds: list[Round], names: tuple[str, ...]) -> dict[str, float]:
    """Return the CPU time of a response of each contender, and that of the last in another checkout as a multiple."""
    figures = {f"{name}: CPU time (µs)": median(results[name].cpu for results in rounds) for name in names}
    if (other := _beside(names[-1])) in rounds[0]:
        figures[f"{other}: CPU time (µs)"] = median(results[other].cpu for results in rounds)
        figures[f"{names[-1]} / {other}, CPU time"] = _by_cpu(rounds, other, names[-1])
    return figures


def _beside(name: str) -> str:
    return f"{name}, in {BESIDE}"


def _ratios(rounds: list[Round], reference: str) -> dict[str, float]:
    """Return responses per second and per CPU second of each contender, relative to the reference."""
    figures = {}
    for name in rounds[0]:
        if name != reference:
            figures[f"{name} / {reference}"] = median(
                results[name].rate / results[reference].rate for results in rounds
            )
            figures[f"{name} / {reference}, by CPU"] = _by_cpu(rounds, name, reference)
    return figures


def _by_cpu(rounds: list[Round], name: str, reference: str) -> float:
    return median(results[reference].cpu / results[name].cpu for results in rounds)


def _miss_contenders(folder: Path) -> dict[str, Contender]:
    return {
        FLOOR: Contender(floor, TARGET),
        PEER: Contender(floor_structs, TARGET),
        WHOLE: Contender(lambda behind: floor(behind, "whole"), TARGET),
        **{_distinct(changes): Contender(_serving(folder, changes), TARGET) for changes in DISTINCT},
        _identical(IDENTICAL): Contender(_serving(folder, IDENTICAL), SAME),
        **({_beside(MISS): Contender(_serving(folder, {}, Path(BESIDE)), TARGET)} if BESIDE else {}),
    }


def _hit_contenders(folder: Path, size: int) -> dict[str, Contender]:
    return {
        CONSTANT: Contender(lambda _: constant(size), SAME),
        CONSTANT_WITH_ID: Contender(lambda _: constant(size), WITH_ID),
        HITS_WITH_ID: Contender(_serving(folder, {}), WITH_ID),
        **{_hits(changes): Contender(_serving(folder, changes), SAME) for changes in HITS},
        **({_beside(HIT): Contender(_serving(folder, {}, Path(BESIDE)), SAME)} if BESIDE else {}),
    }


def _serving(folder: Path, changes: Changes, tree: Path = TREE) -> Serving:
    return lambda behind: service(behind, folder, changes, tree=tree)


def _response_sizes(folder: Path) -> tuple[int, int]:
    """Return the bytes of a response of the floor and of the service."""
    with upstream() as behind, floor(behind) as low, service(behind, folder, ALONE) as high:
        return len(low.body(SAME)), len(high.body(SAME))


def _round(contenders: Mapping[str, Contender]) -> Round:
    with ExitStack() as stack:
        behind = stack.enter_context(upstream())
        servers = start_all(stack, {name: contender.serving(behind) for name, contender in contenders.items()})
        for name, server in servers.items():
            load(server, contenders[name].target, WARM)
        results: dict[str, list[LoadResult]] = {name: [] for name in servers}
        order = random.sample(list(servers), len(servers))
        for name in [*order, *reversed(order)]:
            results[name].append(load(servers[name], contenders[name].target, SECONDS))
    return {name: LoadResult(*map(mean, zip(*pair, strict=True))) for name, pair in results.items()}
