"""One page of metrics for several workers: each writes its sums to a file, and whoever is asked adds up all files.

Used where workers share an address, because a scrape reaches any one of them. No sum ever goes back: a worker writes
its own file before it shows a page, so whatever was shown is in a file; and who takes a dead worker's place goes on
from that worker's file. Files hold what the page holds: names and numbers, never a key.
"""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from proxy.telemetry.metrics import Counter, Gauge, Histogram, Labels, Metrics

EVERY = 1.0  # seconds between two writes
SUFFIX = ".metrics"

log = structlog.get_logger()


class Place(NamedTuple):
    """One worker's among its fellows: a folder of theirs alone, and a number that no two have at a time."""

    folder: Path
    number: int


class Snapshot(msgspec.Struct, frozen=True):
    """A process's sums at a moment. `values` and `times` map a measure's name to its values by label."""

    at: float
    values: dict[str, list[tuple[Labels, float]]]
    times: dict[str, dict[str, tuple[list[int], float]]]


def snapshot(metrics: Metrics) -> Snapshot:
    """What the `metrics` of this process stand at."""
    metrics.sample()
    measures = metrics.measures()
    return Snapshot(
        metrics.clock.now(),
        {name: list(each.items()) for name, each in measures.items() if isinstance(each, Counter | Gauge)},
        {
            name: {value: (counts, each.sums[value]) for value, counts in each.counts.items()}
            for name, each in measures.items()
            if isinstance(each, Histogram)
        },
    )


def merge(metrics: Metrics, other: Snapshot, gauges: bool = True) -> None:
    """Add another process's sums. Measures that this version does not have are left out."""
    for name, measure in metrics.measures().items():
        if isinstance(measure, Histogram):
            for value, (counts, total) in other.times.get(name, {}).items():
                measure.merge(value, counts, total)
        elif gauges or isinstance(measure, Counter):
            for labels, number in other.values.get(name, []):
                measure.merge(labels, number)


class Merged:
    """The metrics of this worker together with its fellows'."""

    def __init__(self, metrics: Metrics, place: Place) -> None:
        self._metrics = metrics
        self._folder = place.folder
        self._file = place.folder / f"worker-{place.number}{SUFFIX}"
        with contextlib.suppress(FileNotFoundError):
            merge(metrics, _read(self._file), gauges=False)

    def text(self) -> bytes:
        """Everybody's sums in Prometheus' text format."""
        self.write()
        everything = Metrics(CollectorRegistry(), self._metrics.clock)
        for each in sorted(self._all(), key=lambda found: found.at):
            merge(everything, each)
        return everything.text()

    def write(self) -> None:
        """Put this worker's sums where its fellows find them, whole or not at all."""
        new = self._file.with_suffix(".new")
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(snapshot(self._metrics)))
            new.replace(self._file)
        except OSError as error:  # a full disk costs the others a second of numbers, and nobody an answer
            log.warning("metrics sharing failed", exc_info=error)

    async def keep_writing(self) -> None:
        """Write once a second until cancelled, and once more then."""
        try:
            while True:
                self.write()
                await asyncio.sleep(EVERY)
        finally:
            self.write()

    def _all(self) -> Iterator[Snapshot]:
        """This worker's, as it is now, and the others' files."""
        yield snapshot(self._metrics)
        for file in self._folder.glob(f"*{SUFFIX}"):
            if file != self._file:
                with contextlib.suppress(OSError):
                    yield _read(file)


def _read(file: Path) -> Snapshot:
    return msgspec.json.decode(file.read_bytes(), type=Snapshot)
