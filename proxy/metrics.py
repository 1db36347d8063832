"""Metrics of the service for Prometheus. There is one Metrics object in a process, passed to constructors.

All of them are plain numbers, which go once a second, and when they are read, to the library's metrics; where
the service has set the library's variable for a folder, these are in files of it, so that each process shows the
metrics of all. Label values are fixed words and names of applications and keys: never an API key, a uid or text of a
client.
"""

import asyncio
import contextlib
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

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

V = TypeVar("V", "Value", "Durations")


class Value:
    """A counter or gauge as a plain number."""

    __slots__ = ("_number", "_shown")

    def __init__(self, shown: Counter | Gauge) -> None:
        self._number, self._shown = 0.0, shown

    def inc(self, amount: float = 1.0) -> None:
        self._number += amount

    def set(self, value: float) -> None:
        self._number = value

    def flush(self) -> None:
        """Hand the number to the library."""
        if isinstance(self._shown, Gauge):
            self._shown.set(self._number)
        else:
            self._shown.inc(self._number)
            self._number = 0.0


class Durations:
    """A histogram as plain numbers: how many durations there are up to each of SECONDS, and their sum. The library has
    no public way to add them: `pyproject.toml` bounds its version, and the test of metrics fails if this changes."""

    __slots__ = ("_counts", "_shown", "_sum")

    def __init__(self, shown: Any) -> None:
        self._counts, self._sum, self._shown = [0] * (len(SECONDS) + 1), 0.0, shown

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(SECONDS, seconds)] += 1
        self._sum += seconds

    def flush(self) -> None:
        """Hand the numbers to the library."""
        for place, count in enumerate(self._counts):
            if count:
                self._shown._buckets[place].inc(count)
                self._counts[place] = 0
        self._shown._sum.inc(self._sum)
        self._sum = 0.0


class Values(Generic[V]):
    """Values of a metric by its labels."""

    def __init__(self, metric: Counter | Gauge | Histogram, kind: Callable[[Any], V]) -> None:
        self._metric = metric
        self._kind: Callable[[Any], V] = kind
        self._values: dict[tuple[str, ...], V] = {}

    def labels(self, *labels: str) -> V:
        value = self._values.get(labels)
        if value is None:
            value = self._values[labels] = self._kind(self._metric.labels(*labels) if labels else self._metric)
        return value

    def flush(self) -> None:
        for value in self._values.values():
            value.flush()


class Metrics(Collector):
    """All metrics of a process. `stored` returns those of what all processes read from the store."""

    def __init__(self, clock: clocks.Clock | None = None) -> None:
        self.clock = clock or clocks.SystemClock()
        self.registry, self._own = CollectorRegistry(), CollectorRegistry()
        self.registry.register(self)
        self.stored: Callable[[], Iterable[MetricFamily]] = tuple
        self._values: list[Values[Value] | Values[Durations]] = []
        self._lines_dropped = 0
        self._add_counters()
        self._add_gauges()

    def _add(self, kind: Callable[..., Counter | Gauge], name: str, meaning: str, *labels: str) -> Values[Value]:
        values = Values(kind(f"v3bridge_{name}", meaning, labels, registry=self._own), Value)
        self._values.append(values)
        return values

    def _add_seconds(self, name: str, meaning: str, label: str) -> Values[Durations]:
        shown = Histogram(f"v3bridge_{name}", meaning, (label,), registry=self._own, buckets=SECONDS)
        values = Values(shown, Durations)
        self._values.append(values)
        return values

    def _add_counters(self) -> None:
        counter = partial(self._add, Counter)
        self.requests = counter("requests", "HTTP requests by route and status", "route", "status")
        self.request_seconds = self._add_seconds("request_duration_seconds", "Duration of HTTP requests", "route")
        self.parts = counter("parts_returned", "Parts returned by the upstream, and billed", "application")
        unmatched = "Parts returned that are in no response: of other numbers, or behind the page"
        self.parts_unmatched = counter("parts_unmatched", unmatched, "application")
        self.queries = counter("queries", "Queries by source: hit, shared, miss or stale", "source")
        wrong = "Requests with a wrong API key: forbidden or throttled"
        self.wrong_api_keys = counter("wrong_api_keys", wrong, "outcome")
        shared = "Requests that shared a GraphQL operation with others"
        self.batched_requests = counter("batched_requests", shared).labels()
        self._log_lines_dropped = counter("log_lines_dropped", "Log lines that could not be written").labels()
        reloads = "Reloads of the configuration: reloaded or failed"
        self.configuration_reloads = counter("configuration_reloads", reloads, "outcome")
        self.upstream_requests = counter("upstream_requests", "GraphQL requests by outcome", "operation", "outcome")
        duration = "Duration of GraphQL requests"
        self.upstream_seconds = self._add_seconds("upstream_request_duration_seconds", duration, "operation")
        self.upstream_errors = counter("upstream_errors", "GraphQL errors in responses with usable data", "operation")
        self.retries = counter("upstream_retries", "Retries of GraphQL requests", "operation", "reason")
        openings = "Times that a circuit breaker has opened"
        self.circuit_breaker_openings = counter("circuit_breaker_openings", openings, "service")
        self.token_requests = counter("token_requests", "Token requests by outcome", "application", "outcome")

    def _add_gauges(self) -> None:
        total = partial(self._add, partial(Gauge, multiprocess_mode="livesum"))
        highest = partial(self._add, partial(Gauge, multiprocess_mode="livemax"))
        waiting = "GraphQL requests that wait for their response"
        self.upstream_in_flight = total("upstream_requests_in_flight", waiting).labels()
        queued = "Batches that wait for an upstream connection"
        self.upstream_waiting = total("upstream_batches_waiting", queued).labels()
        states = "State of a circuit breaker: 0 closed, 1 half-open, 2 open"
        self.circuit_breaker_state = highest("circuit_breaker_state", states, "service")
        self._event_loop_lag = highest("event_loop_lag_seconds", "Lag of the event loop").labels()
        unavailable = "Whether the store cannot be used: 1, else 0"
        self.store_unavailable = highest("store_unavailable", unavailable).labels()
        succeeded = "1 if the last reload succeeded, else 0"
        self.last_reload_successful = highest("configuration_last_reload_successful", succeeded).labels()
        loaded = "Time at which the running configuration was loaded, in seconds since 1970"
        self.last_reload_success = highest("configuration_last_success_timestamp_seconds", loaded).labels()

    async def measure(self) -> None:
        """Set the gauges that nothing else sets, and that of the lag by which the event loop is late; flush all."""
        due = asyncio.get_running_loop().time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        self._event_loop_lag.set(max(0.0, asyncio.get_running_loop().time() - due))
        self.flush()

    def flush(self) -> None:
        """Hand all numbers to the library, which shows them in every process."""
        self._log_lines_dropped.inc(Output.dropped - self._lines_dropped)
        self._lines_dropped = Output.dropped
        for each in self._values:
            each.flush()
        _fill_files()

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


def _fill_files() -> None:
    """Have room on the disk for all of the files: on a full one, to write where they have holes would end the process
    (SIGBUS)."""
    folder = os.environ.get(FOLDER)
    for file in Path(folder).glob("*.db") if folder else ():
        with contextlib.suppress(OSError), file.open("r+b") as opened:
            os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)


def begin_process(number: int) -> None:
    """Let this process go on with the counters of its predecessor of the same number, in the same files."""
    if FOLDER in os.environ:
        named = values.MultiProcessValue(lambda: f"worker{number}")  # type: ignore[no-untyped-call]
        values.ValueClass = named


def forget_gauges(number: int) -> None:
    """Leave the counters only of a process that has ended."""
    if FOLDER in os.environ:
        mark_process_dead(f"worker{number}")  # type: ignore[no-untyped-call]
