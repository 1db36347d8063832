"""Throughput of the service compared with the floor (bench/floor.py) and with a constant body, on a canned upstream.

64 connections send the next request as soon as they have a response; the upstream responds at once. The service has its
shipped configuration, but for addresses and the settings in the name of a row: API keys, projections, ledger on disk,
metrics, request ids, and a log at `info` to a file. The floor and the constant body have none of these. Each comparison
has two new processes, measured alternately there and back, so that a machine that slows down favours neither side.
"""

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from bench.goals import Goal
from bench.processes import (
    ALONE,
    SAME,
    TARGET,
    Changes,
    LoadResult,
    Server,
    constant,
    floor,
    load,
    service,
    upstream,
    written,
)

ROUNDS, SECONDS, WARM = 9, 1.0, 1.0
COALESCING: Changes = {"cache.seconds": 0}
QUIET: Changes = {"log.level": "warning"}
GOALS = {
    f"service, {written(ALONE)} / floor": Goal("≥", 0.85),
    "the same by CPU time per response": Goal("≥", 0.85),
    f"service, {written(COALESCING)}, identical requests / floor": Goal("≥", 2.0),
    "hits, as shipped / constant body": Goal("≥", 0.7),
    "the same by CPU time per response, hits": Goal("≥", 0.7),
}

Serving = Callable[[Server], AbstractContextManager[Server]]


class Pair(NamedTuple):
    """Reference (low) and measured server (high) of a comparison, and the request target of each."""

    low: Serving
    high: Serving
    low_target: str
    target: str


class Round(NamedTuple):
    """Results of one comparison, each the mean of two measurements."""

    low: LoadResult
    high: LoadResult

    @property
    def rate(self) -> float:
        """Responses per second, relative to the reference."""
        return self.high.rate / self.low.rate

    @property
    def cpu(self) -> float:
        """Responses per CPU second, relative to the reference."""
        return self.low.cpu / self.high.cpu


def run() -> dict[str, float]:
    """Return medians over all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = _pairs(Path(folder))
        rounds = {name: [_round(pair) for _ in range(ROUNDS)] for name, pair in pairs.items()}
    alone, shipped, hits = rounds["alone"], rounds["shipped"], rounds["hits"]
    return {
        "floor (requests/s)": median(each.low.rate for each in alone),
        f"service, {written(ALONE)} (requests/s)": median(each.high.rate for each in alone),
        f"service, {written(ALONE)} / floor": median(each.rate for each in alone),
        "the same by CPU time per response": median(each.cpu for each in alone),
        "service, as shipped, distinct requests / floor": median(each.rate for each in shipped),
        f"service, {written(COALESCING)}, identical requests / floor": median(each.rate for each in rounds["same"]),
        "constant body of the same size (requests/s)": median(each.low.rate for each in hits),
        "hits, as shipped / constant body": median(each.rate for each in hits),
        "the same by CPU time per response, hits": median(each.cpu for each in hits),
        f"hits, {written(QUIET)} / constant body": median(each.rate for each in rounds["quiet"]),
        "the same by CPU time per response, hits without a log": median(each.cpu for each in rounds["quiet"]),
        "p99, floor (ms)": median(each.low.p99 for each in alone),
        f"p99, service, {written(ALONE)} (ms)": median(each.high.p99 for each in alone),
        "p99, service, as shipped (ms)": median(each.high.p99 for each in shipped),
    }


def _pairs(folder: Path) -> dict[str, Pair]:
    def serving(changes: Changes) -> Serving:
        return lambda behind: service(behind, folder, changes)

    return {
        "alone": Pair(floor, serving(ALONE), TARGET, TARGET),
        "shipped": Pair(floor, serving({}), TARGET, TARGET),
        "same": Pair(floor, serving(COALESCING), TARGET, SAME),
        "hits": Pair(lambda _: constant(len(_body(folder))), serving({}), SAME, SAME),
        "quiet": Pair(lambda _: constant(len(_body(folder))), serving(QUIET), SAME, SAME),
    }


def _body(folder: Path) -> bytes:
    """Return a response body of the service."""
    with upstream() as behind, service(behind, folder, ALONE) as server:
        return server.body(SAME)


def _round(pair: Pair) -> Round:
    with upstream() as behind, pair.low(behind) as low, pair.high(behind) as high:
        load(low, pair.low_target, WARM)
        load(high, pair.target, WARM)
        one, two = (load(low, pair.low_target, SECONDS), load(high, pair.target, SECONDS))
        three, four = (load(high, pair.target, SECONDS), load(low, pair.low_target, SECONDS))
    return Round(_mean(one, four), _mean(two, three))


def _mean(one: LoadResult, other: LoadResult) -> LoadResult:
    return LoadResult(*(mean(figures) for figures in zip(one, other, strict=True)))
