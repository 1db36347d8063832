"""The whole service beside the floor (bench/floor.py) and beside a constant body, on one canned upstream.

64 connections that ask again as soon as they are answered, an upstream that answers at once. The service does
everything it always does: keys, views, the ledger on disk, metrics, request ids; its log is set to warnings, because
the floor has none. Each comparison has two fresh processes of its own and takes turns, there and back: a machine that
grows slower meanwhile, or has more to hold in memory, shall not tell for one side.
"""

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from bench.processes import SAME, TARGET, Load, Server, constant, floor, load, service, upstream

ROUNDS, SECONDS, WARM = 9, 1.0, 1.0

Serving = Callable[[Server], AbstractContextManager[Server]]


class Pair(NamedTuple):
    """What is the measure, what is measured, and what each is asked for."""

    low: Serving
    high: Serving
    low_target: str
    target: str


class Round(NamedTuple):
    """Both sides of one comparison, each the mean of its turns."""

    low: Load
    high: Load

    @property
    def rate(self) -> float:
        """Replies a second, as a share of the measure's."""
        return self.high.rate / self.low.rate

    @property
    def cpu(self) -> float:
        """The same by CPU time a reply."""
        return self.low.cpu / self.high.cpu


def run() -> dict[str, float]:
    """Medians over all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = _pairs(Path(folder))
        rounds = {name: [_round(pair) for _ in range(ROUNDS)] for name, pair in pairs.items()}
    alone, hits = rounds["alone"], rounds["hits"]
    return {
        "floor (requests/s)": median(each.low.rate for each in alone),
        "service, answers and sharing off (requests/s)": median(each.high.rate for each in alone),
        "service, answers and sharing off / floor": median(each.rate for each in alone),
        "the same by CPU time a reply": median(each.cpu for each in alone),
        "sharing on, every question different / floor": median(each.rate for each in rounds["together"]),
        "sharing on, all ask the same / floor": median(each.rate for each in rounds["same"]),
        "constant body of the same size (requests/s)": median(each.low.rate for each in hits),
        "hits / constant body": median(each.rate for each in hits),
        "the same by CPU time a reply, hits": median(each.cpu for each in hits),
        "p99, floor (ms)": median(each.low.p99 for each in alone),
        "p99, service (ms)": median(each.high.p99 for each in alone),
    }


def _pairs(folder: Path) -> dict[str, Pair]:
    def serving(sharing: bool, seconds: int) -> Serving:
        return lambda behind: service(behind, folder, sharing=sharing, seconds=seconds)

    return {
        "alone": Pair(floor, serving(sharing=False, seconds=0), TARGET, TARGET),
        "together": Pair(floor, serving(sharing=True, seconds=0), TARGET, TARGET),
        "same": Pair(floor, serving(sharing=True, seconds=0), TARGET, SAME),
        "hits": Pair(lambda _: constant(len(_body(folder))), serving(sharing=True, seconds=300), SAME, SAME),
    }


def _body(folder: Path) -> bytes:
    """A reply of the service."""
    with upstream() as behind, service(behind, folder, sharing=False, seconds=0) as one:
        return one.body(SAME)


def _round(pair: Pair) -> Round:
    with upstream() as behind, pair.low(behind) as low, pair.high(behind) as high:
        load(low, pair.low_target, WARM)
        load(high, pair.target, WARM)
        one, two = (load(low, pair.low_target, SECONDS), load(high, pair.target, SECONDS))
        three, four = (load(high, pair.target, SECONDS), load(low, pair.low_target, SECONDS))
    return Round(_mean(one, four), _mean(two, three))


def _mean(one: Load, other: Load) -> Load:
    return Load(*(mean(figures) for figures in zip(one, other, strict=True)))
