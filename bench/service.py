"""The whole service beside the floor (bench/floor.py) and beside a constant body, on one canned upstream, in turns.

64 connections that ask again as soon as they are answered, an upstream that answers at once. The service does
everything it always does: keys, views, the ledger on disk, metrics, request ids; its log is set to warnings, because
the floor has none.
"""

import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.processes import SAME, TARGET, Load, constant, floor, load, service, upstream

ROUNDS, SECONDS, WARM = 9, 2.0, 1.0


class Round(NamedTuple):
    """One of each, made in one go."""

    floor: Load
    alone: Load
    together: Load
    same: Load
    constant: Load
    hits: Load


def run() -> dict[str, float]:
    """Medians over all rounds."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = [_round(Path(folder)) for _ in range(ROUNDS)]
    return {
        "floor (requests/s)": median(each.floor.rate for each in rounds),
        "service, answers and sharing off (requests/s)": median(each.alone.rate for each in rounds),
        "service, answers and sharing off / floor": median(each.alone.rate / each.floor.rate for each in rounds),
        "the same by CPU time a reply": median(each.floor.cpu / each.alone.cpu for each in rounds),
        "sharing on, every question different / floor": median(e.together.rate / e.floor.rate for e in rounds),
        "sharing on, all ask the same / floor": median(each.same.rate / each.floor.rate for each in rounds),
        "constant body of the same size (requests/s)": median(each.constant.rate for each in rounds),
        "hits / constant body": median(each.hits.rate / each.constant.rate for each in rounds),
        "the same by CPU time a reply, hits": median(each.constant.cpu / each.hits.cpu for each in rounds),
        "p99, floor (ms)": median(each.floor.p99 for each in rounds),
        "p99, service (ms)": median(each.alone.p99 for each in rounds),
    }


def _round(folder: Path) -> Round:
    with (
        upstream() as behind,
        floor(behind) as low,
        service(behind, folder, sharing=False, seconds=0) as alone,
        service(behind, folder, sharing=True, seconds=0) as sharing,
        service(behind, folder, sharing=True, seconds=300) as keeping,
        constant(len(keeping.body(SAME))) as fixed,
    ):
        runs = ((low, TARGET), (alone, TARGET), (sharing, TARGET), (sharing, SAME), (fixed, SAME), (keeping, SAME))
        for server, target in runs:
            load(server, target, WARM)
        return Round(*(load(server, target, SECONDS) for server, target in runs))
