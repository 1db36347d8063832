"""Metrics of the service for Prometheus, one Metrics object in a process.

They are plain numbers, which go to the library's metrics once a second, and when they are read. These are in files of a
folder, so that each process shows the metrics of all. Labels are fixed words and names of applications and keys.
"""

import asyncio
import contextlib
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.core import Metric as MetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from proxy.kit import clock as clocks
from proxy.log import Output

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's variable, which it reads when it is imported
# Up to 30 s, the default time limit of a request.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LAG_SECONDS = 0.1  # slept to measure the lag of the event loop


class Numbers(dict[tuple[str, ...], float]):
    """A counter or gauge as plain numbers by its labels."""

    def inc(self, *labels: str, by: float = 1.0) -> None:
        self[labels] = self.get(labels, 0.0) + by

    def set(self, value: float, *labels: str) -> None:
        self[labels] = value

    def flush(self, shown: Counter | Gauge) -> None:
        """Hand the numbers to the library's metric."""
        for labels, number in self.items():
            labeled = shown.labels(*labels) if labels else shown
            if isinstance(labeled, Gauge):
                labeled.set(number)
            else:
                labeled.inc(number)
                self[labels] = 0.0


class Durations(dict[str, list[float]]):
    """A histogram as plain numbers by its label: how many durations there are up to each of SECONDS, and their sum."""

    def observe(self, label: str, seconds: float) -> None:
        numbers = self.get(label)
        if numbers is None:
            numbers = self[label] = [0.0] * (len(SECONDS) + 2)
        numbers[bisect_left(SECONDS, seconds)] += 1
        numbers[-1] += seconds

    def flush(self, shown: Any) -> None:
        """Hand the numbers to the library's metric. There is no public way: `pyproject.toml` bounds the version."""
        for label, numbers in self.items():
            labeled = shown.labels(label)
            for part, number in zip((*labeled._buckets, labeled._sum), numbers, strict=True):
                if number:
                    part.inc(number)
            self[label] = [0.0] * len(numbers)


N = TypeVar("N", Numbers, Durations)


class Metrics(Collector):
    """All metrics of a process. `stored` returns those of what all processes read from the store."""

    def __init__(self, clock: clocks.Clock | None = None) -> None:
        self.clock = clock or clocks.Clock()
        self.registry, self._own = CollectorRegistry(), CollectorRegistry()
        self.registry.register(self)
        self.stored: Callable[[], Iterable[MetricFamily]] = tuple
        self._shown: list[tuple[Numbers | Durations, Any]] = []
        self._lines_dropped = 0
        counter = partial(self._add, Numbers, Counter)
        durations = partial(self._add, Durations, partial(Histogram, buckets=SECONDS))
        self.requests = counter("requests", "HTTP requests by route and status", "route", "status")
        self.request_seconds = durations("request_duration_seconds", "Duration of HTTP requests", "route")
        self.request_seconds["unknown"] = [0.0] * (len(SECONDS) + 2)  # makes the file of durations while there is room
        self.parts = counter("parts_returned", "Parts returned by the upstream, and billed", "application")
        unmatched = "Parts returned that are in no response: of other numbers, or behind the page"
        self.parts_unmatched = counter("parts_unmatched", unmatched, "application")
        self.queries = counter("queries", "Queries by source: hit, shared, miss or stale", "source")
        self.wrong_api_keys = counter("wrong_api_keys", "Wrong API keys: forbidden or throttled", "outcome")
        self.log_lines_dropped = counter("log_lines_dropped", "Log lines that could not be written")
        self.upstream_requests = counter("upstream_requests", "GraphQL requests by outcome", "operation", "outcome")
        duration = "Duration of GraphQL requests"
        self.upstream_seconds = durations("upstream_request_duration_seconds", duration, "operation")
        self.upstream_errors = counter("upstream_errors", "GraphQL errors in responses with usable data", "operation")
        self.retries = counter("upstream_retries", "Retries of GraphQL requests", "operation", "reason")
        self.token_requests = counter("token_requests", "Token requests by outcome", "application", "outcome")
        highest = partial(self._add, Numbers, partial(Gauge, multiprocess_mode="livemax"))
        states = "State of a circuit breaker: 0 closed, 1 open"
        self.circuit_breaker_state = highest("circuit_breaker_state", states, "service")
        self.event_loop_lag = highest("event_loop_lag_seconds", "Lag of the event loop")
        self.store_unavailable = highest("store_unavailable", "Whether the store cannot be used: 1, else 0")
        succeeded = "1 if the last reload succeeded, else 0"
        self.last_reload_successful = highest("configuration_last_reload_successful", succeeded)
        loaded = "Time at which the running configuration was loaded, in seconds since 1970"
        self.last_reload_success = highest("configuration_last_success_timestamp_seconds", loaded)

    def _add(self, kind: type[N], shown_as: Callable[..., Any], name: str, meaning: str, *labels: str) -> N:
        numbers = kind()
        self._shown.append((numbers, shown_as(f"v3bridge_{name}", meaning, labels, registry=self._own)))
        return numbers

    async def measure(self) -> None:
        """Set the gauges that nothing else sets, and that of the lag by which the event loop is late; flush all."""
        due = asyncio.get_running_loop().time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        self.event_loop_lag.set(max(0.0, asyncio.get_running_loop().time() - due))
        self.flush()

    def flush(self) -> None:
        """Hand all numbers to the library, which shows them in every process. What finds no room waits."""
        self.log_lines_dropped.inc(by=Output.dropped - self._lines_dropped)
        self._lines_dropped = Output.dropped
        for numbers, shown in self._shown:
            with contextlib.suppress(OSError):
                numbers.flush(shown)
        # On a full disk, to write into the holes of a file would end the process (SIGBUS).
        for file in Path(os.environ[FOLDER]).glob("*.db") if FOLDER in os.environ else ():
            with contextlib.suppress(OSError), file.open("r+b") as opened:
                os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)

    def text(self) -> bytes:
        """Return the metrics of all processes in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metrics of all processes, also those that have no values yet: rules and dashboards name them."""
        self.flush()
        written: dict[str, MetricFamily] = {}
        if FOLDER in os.environ:
            families = MultiProcessCollector(None).collect()  # type: ignore[no-untyped-call]
            written = {family.name: family for family in families}
        for own in self._own.collect():
            yield written.get(own.name, own)
        yield from self.stored()


def begin_process(number: int) -> None:
    """Let this process go on with the counters of its predecessor of the same number, in the same files."""
    if FOLDER in os.environ:
        values.ValueClass = values.MultiProcessValue(lambda: f"worker{number}")  # type: ignore[no-untyped-call]


def forget_gauges(number: int) -> None:
    """Leave the counters only of a process that has ended."""
    if FOLDER in os.environ:
        mark_process_dead(f"worker{number}")  # type: ignore[no-untyped-call]
