"""Metrics of several workers on one page: each worker writes its own to a file; a scrape adds up all files.

Needed because workers share an address, so that a scrape reaches any one of them. No counter ever decreases: a worker
writes its file before it serves a scrape, and a replacement of a worker that ended continues from that worker's file.
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

WRITE_SECONDS = 1.0  # between two writes
SUFFIX = ".metrics"

log = structlog.get_logger()


class WorkerSlot(NamedTuple):
    """Position of a worker: the folder that all workers share, and a number that is unique at any time."""

    folder: Path
    number: int

    @property
    def metrics_file(self) -> Path:
        """The file of the worker's metrics."""
        return self.folder / f"worker-{self.number}{SUFFIX}"


def last_write(slot: WorkerSlot) -> float | None:
    """Return when the event loop of a worker last wrote its metrics, or tried to; None if it never could."""
    try:
        return slot.metrics_file.stat().st_mtime
    except OSError:
        return None


class Snapshot(msgspec.Struct, frozen=True):
    """Metrics of a process at the time `at`. `values` and `times` map the name of a metric to its values by labels."""

    at: float
    values: dict[str, list[tuple[Labels, float]]]
    times: dict[str, dict[str, tuple[list[int], float]]]


def snapshot(metrics: Metrics) -> Snapshot:
    """Return the current values of `metrics`."""
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
    """Add a snapshot of another process. Metrics that this version does not have are ignored."""
    for name, measure in metrics.measures().items():
        if isinstance(measure, Histogram):
            for value, (counts, total) in other.times.get(name, {}).items():
                measure.merge(value, counts, total)
        elif gauges or isinstance(measure, Counter):
            for labels, number in other.values.get(name, []):
                measure.merge(labels, number)


class MergedMetrics:
    """Metrics of this worker together with those of the others."""

    def __init__(self, metrics: Metrics, slot: WorkerSlot) -> None:
        self._metrics = metrics
        self._folder = slot.folder
        self._file = slot.metrics_file
        with contextlib.suppress(FileNotFoundError):
            # Counters of a worker that ended with this number; its gauges say nothing about this process.
            merge(metrics, _read(self._file), gauges=False)

    def text(self) -> bytes:
        """Return the metrics of all workers in Prometheus' text format."""
        self.write()
        everything = Metrics(CollectorRegistry(), self._metrics.clock)
        # Oldest first, so that gauges of which the last counts take the latest.
        for each in sorted(self._all(), key=lambda each: each.at):
            merge(everything, each)
        return everything.text()

    def write(self) -> None:
        """Write the metrics of this worker for the others, atomically."""
        new = self._file.with_suffix(".new")
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(snapshot(self._metrics)))
            # Atomic: a scrape at this moment reads the old file or the new one, never half of one.
            new.replace(self._file)
        except OSError as error:  # such as a full disk; requests are served all the same
            log.warning("metrics sharing failed", exc_info=error)
            with contextlib.suppress(OSError):
                os.utime(self._file)  # a sign of life for the supervisor all the same

    async def write_regularly(self) -> None:
        """Write once a second until cancelled, and once more at the end."""
        try:
            while True:
                self.write()
                await asyncio.sleep(WRITE_SECONDS)
        finally:
            self.write()

    def _all(self) -> Iterator[Snapshot]:
        """Yield the current snapshot of this worker and the files of the others."""
        yield snapshot(self._metrics)
        for file in self._folder.glob(f"*{SUFFIX}"):
            if file != self._file:
                # A worker may end, and its file go, between the listing and the reading.
                with contextlib.suppress(OSError):
                    yield _read(file)


def _read(file: Path) -> Snapshot:
    return msgspec.json.decode(file.read_bytes(), type=Snapshot)
