"""Figures of several workers as one: metrics and recent activity. Each worker writes its own to files; a reader adds up
all files.

Needed because workers share an address, so that a scrape or a page reaches any one of them. No counter ever decreases:
a worker writes its files before it serves a scrape, and a replacement of a worker that ended continues from that
worker's file.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from proxy.telemetry import activity as activities
from proxy.telemetry.metrics import Counter, Gauge, Histogram, Labels, Metrics

STATM = Path("/proc/self/statm")
WRITE_SECONDS = 1.0  # between two writes
METRICS, ACTIVITY = ".metrics", ".activity"  # suffixes of the files

T = TypeVar("T")

log = structlog.get_logger()


class WorkerSlot(NamedTuple):
    """Position of a worker: the folder that all workers share, and a number that is unique at any time."""

    folder: Path
    number: int

    def file(self, suffix: str) -> Path:
        """Return the worker's file of a kind."""
        return self.folder / f"worker-{self.number}{suffix}"

    def last_write(self) -> float | None:
        """Return when the event loop of the worker last wrote its metrics, or tried to; None if it never could."""
        try:
            return self.file(METRICS).stat().st_mtime
        except OSError:
            return None


class WorkerState(msgspec.Struct, frozen=True):
    """State of a worker at the time `at`. `started` is in seconds since 1970, `memory` in bytes, 0 where
    the system does not say, `event_loop_lag` in seconds, None before its first measurement."""

    number: int
    pid: int
    at: float
    started: float
    memory: int
    event_loop_lag: float | None


class Snapshot(msgspec.Struct, frozen=True):
    """Metrics of a process at the time `at`. `values` and `times` map the name of a metric to its values by labels;
    `worker` is None for the sum of several."""

    at: float
    values: dict[str, list[tuple[Labels, float]]]
    times: dict[str, dict[str, tuple[list[int], float]]]
    worker: WorkerState | None = None


def snapshot(metrics: Metrics, worker: WorkerState | None = None) -> Snapshot:
    measures = metrics.measures()
    return Snapshot(
        metrics.clock.now(),
        {name: list(each.items()) for name, each in measures.items() if isinstance(each, Counter | Gauge)},
        {
            name: {value: (counts, each.sums[value]) for value, counts in each.counts.items()}
            for name, each in measures.items()
            if isinstance(each, Histogram)
        },
        worker,
    )


def merge(metrics: Metrics, other: Snapshot, gauges: bool = True) -> None:
    """Add a snapshot of another process. Metrics that this version does not have are ignored."""
    for name, measure in metrics.measures().items():
        if isinstance(measure, Histogram):
            for value, (counts, total) in other.times.get(name, {}).items():
                # Another version on another machine may have other bounds.
                if len(counts) == measure.size:
                    measure.merge(value, counts, total)
        elif gauges or isinstance(measure, Counter):
            for labels, number in other.values.get(name, []):
                measure.merge(labels, number)


def merged(metrics: Metrics, snapshots: Iterable[Snapshot]) -> Metrics:
    """Return the metrics of several processes as those of one, with the clock of `metrics`."""
    everything = Metrics(CollectorRegistry(), metrics.clock)
    # Oldest first, so that gauges of which the last counts take the latest.
    for each in sorted(snapshots, key=lambda each: each.at):
        merge(everything, each)
    return everything


def memory_used() -> int:
    """Return bytes of resident memory of this process; 0 where the system has no statm (it is Linux's)."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class WorkerFigures:
    """Figures of this worker together with those of the others; `slot` is None where there are no others.

    `memory` reads the bytes in use.
    """

    def __init__(
        self,
        metrics: Metrics,
        activity: activities.Activity,
        slot: WorkerSlot | None = None,
        memory: Callable[[], int] = lambda: 0,
    ) -> None:
        self.metrics = metrics
        self.slot = slot
        self.started = metrics.clock.now()
        self._activity = activity
        self._memory = memory
        self._written: tuple[object, ...] = ()
        if slot is not None:
            with contextlib.suppress(FileNotFoundError):
                # Counters of a worker that ended with this number; its gauges say nothing about this process.
                merge(metrics, _read(self._file(METRICS), Snapshot), gauges=False)

    def text(self) -> bytes:
        """Return the metrics of all workers in Prometheus' text format."""
        self.write()
        return merged(self.metrics, self.snapshots()).text()

    def snapshots(self) -> list[Snapshot]:
        return [self._snapshot(), *self._others(METRICS, Snapshot)]

    async def recent(self) -> activities.RecentActivity:
        return activities.merged([await self._activity.recent(), *self._others(ACTIVITY, activities.RecentActivity)])

    def write(self) -> None:
        if self.slot is not None:
            write_file(self._file(METRICS), msgspec.json.encode(self._snapshot()))

    async def write_activity(self) -> None:
        """Write the recent activity of this worker for the others, if there is more than they have."""
        latest = self._activity.latest()
        if self.slot is not None and latest != self._written:
            self._written = latest
            write_file(self._file(ACTIVITY), msgspec.json.encode(await self._activity.recent()))

    def _snapshot(self) -> Snapshot:
        self.metrics.sample()
        number = self.slot.number if self.slot else 1
        lag = self.metrics.event_loop_lag.get(())
        now = self.metrics.clock.now()
        return snapshot(self.metrics, WorkerState(number, os.getpid(), now, self.started, self._memory(), lag))

    def _file(self, suffix: str) -> Path:
        assert self.slot is not None  # noqa: S101 - a process that is alone writes none
        return self.slot.file(suffix)

    def _others(self, suffix: str, kind: type[T]) -> Iterator[T]:
        """Yield what the files of the other workers hold."""
        if self.slot is None:
            return
        for file in self.slot.folder.glob(f"*{suffix}"):
            if file != self._file(suffix):
                # A worker may end, and its file go, between the listing and the reading.
                with contextlib.suppress(OSError):
                    yield _read(file, kind)


def write_file(file: Path, content: bytes) -> None:
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


def _read(file: Path, kind: type[T]) -> T:
    return msgspec.json.decode(file.read_bytes(), type=kind)
