"""Metrics of several workers as one: each worker writes its own to a file, and `/metrics` adds up all files.

Needed because workers share an address, so that a scrape reaches any one of them. No counter ever decreases: a worker
writes its file before it serves a scrape, and a replacement of a worker that ended continues from that worker's file.
"""

import asyncio
import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from proxy.kit.periodic import PeriodicTask
from proxy.telemetry.metrics import Counter, Gauge, Histogram, Labels, Metrics

WRITE_SECONDS = 1.0  # between two writes
LAG_SECONDS = 0.1  # slept to measure the lag of the event loop, once a second
SUFFIX = ".metrics"  # of the files

log = structlog.get_logger()


class WorkerSlot(NamedTuple):
    """Position of a worker: the folder that all workers share, and a number that is unique at any time."""

    folder: Path
    number: int

    @property
    def file(self) -> Path:
        """The file with the worker's metrics."""
        return self.folder / f"worker-{self.number}{SUFFIX}"

    def last_write(self) -> float | None:
        """Return when the event loop of the worker last wrote its metrics, or tried to; None if it never could."""
        try:
            return self.file.stat().st_mtime
        except OSError:
            return None


class Snapshot(msgspec.Struct, frozen=True):
    """Metrics of a process at the time `at`. `values` and `times` map the name of a metric to its values by labels."""

    at: float
    values: dict[str, list[tuple[Labels, float]]]
    times: dict[str, dict[str, tuple[list[int], float]]]


def snapshot(metrics: Metrics) -> Snapshot:
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
    """Add a snapshot of another process."""
    for name, measure in metrics.measures().items():
        if isinstance(measure, Histogram):
            for value, (counts, total) in other.times[name].items():
                measure.merge(value, counts, total)
        elif gauges or isinstance(measure, Counter):
            for labels, number in other.values[name]:
                measure.merge(labels, number)


def merged(metrics: Metrics, snapshots: Iterable[Snapshot]) -> Metrics:
    """Return the metrics of several processes as those of one, with the clock of `metrics`."""
    everything = Metrics(CollectorRegistry(), metrics.clock)
    # Oldest first, so that gauges of which the last counts take the latest.
    for each in sorted(snapshots, key=lambda each: each.at):
        merge(everything, each)
    return everything


class WorkerMetrics:
    """Metrics of this worker together with those of the others; `slot` is None where there are no others."""

    def __init__(self, metrics: Metrics, slot: WorkerSlot | None = None) -> None:
        self._metrics = metrics
        self._slot = slot
        self._writing = PeriodicTask("metrics of this worker", self._share, WRITE_SECONDS)
        self._measuring = PeriodicTask("lag of the event loop", self.measure_lag, 1.0 - LAG_SECONDS)
        if slot is not None:
            with contextlib.suppress(FileNotFoundError):
                # Counters of a worker that ended with this number; its gauges say nothing about this process.
                merge(metrics, _read(slot.file), gauges=False)

    def start(self) -> None:
        """Begin to measure, and to share the metrics of this worker."""
        self._measuring.start()
        if self._slot is not None:
            self._writing.start()

    async def close(self) -> None:
        """Share the metrics of this worker a last time."""
        for task in (self._measuring, self._writing):
            await task.close()
        await self._writing.call()

    def text(self) -> bytes:
        """Return the metrics of all workers in Prometheus' text format."""
        self.write()
        return merged(self._metrics, [self._snapshot(), *self._others()]).text()

    def write(self) -> None:
        if self._slot is not None:
            _write(self._slot.file, msgspec.json.encode(self._snapshot()))

    async def measure_lag(self) -> None:
        """Measure by how much the event loop is late."""
        due = asyncio.get_running_loop().time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        self._metrics.event_loop_lag[()] = max(0.0, asyncio.get_running_loop().time() - due)

    async def _share(self) -> None:
        self.write()

    def _snapshot(self) -> Snapshot:
        self._metrics.sample()
        return snapshot(self._metrics)

    def _others(self) -> Iterator[Snapshot]:
        """Yield what the files of the other workers hold."""
        if self._slot is None:
            return
        for file in self._slot.folder.glob(f"*{SUFFIX}"):
            if file != self._slot.file:
                # A worker may end, and its file go, between the listing and the reading.
                with contextlib.suppress(OSError):
                    yield _read(file)


def _write(file: Path, content: bytes) -> None:
    """Write a file atomically, readable by its owner only."""
    new = file.with_name(f"{file.name}.new")
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(content)
        # Atomic: a reader at this moment reads the old file or the new one, never half of one.
        new.replace(file)
    except OSError as error:  # such as a full disk; requests are served all the same
        log.warning("metrics sharing failed", exc_info=error)
        with contextlib.suppress(OSError):
            os.utime(file)  # a sign of life for the supervisor all the same


def _read(file: Path) -> Snapshot:
    return msgspec.json.decode(file.read_bytes(), type=Snapshot)
