"""Metrics of the service for Prometheus. There is one Metrics object in a process, passed to constructors.

Values are plain numbers, which are summed when they are read. Each process of a service writes its own once a second
to a file, so that any of them shows the metrics of all. Label values are fixed words and names of applications and
keys: never an API key, a uid or text of a client.
"""

import asyncio
import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as MetricFamily
from prometheus_client.registry import Collector

from proxy.kit import clock as clocks
from proxy.telemetry.log import Output

# Up to 30 s, the default time limit of a request.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
BUCKETS = (*map(str, SECONDS), "+Inf")
LAG_SECONDS = 0.1  # slept to measure the lag of the event loop

# How the values of all processes become one; a gauge has those of the processes that run.
Kind = Literal["counter", "histogram", "sum gauge", "max gauge"]


class Value:
    """A counter or a gauge; or a histogram: the sum of what was observed, and how often in each bucket."""

    __slots__ = ("numbers",)

    def __init__(self, length: int) -> None:
        self.numbers = [0.0] * length

    def inc(self, amount: float = 1.0) -> None:
        self.numbers[0] += amount

    def set(self, value: float) -> None:
        self.numbers[0] = float(value)  # also of a bool, which others could not read

    def observe(self, seconds: float) -> None:
        self.numbers[0] += seconds
        self.numbers[1 + bisect_left(SECONDS, seconds)] += 1


class Metric:
    """Values of a metric by its labels."""

    def __init__(self, name: str, kind: Kind, meaning: str, *labels: str) -> None:
        self.name, self.kind, self.meaning, self.label_names = name, kind, meaning, labels
        self.values: dict[tuple[str, ...], Value] = {}

    def labels(self, *labels: str) -> Value:
        value = self.values.get(labels)
        if value is None:
            value = self.values[labels] = Value(1 + len(BUCKETS) if self.kind == "histogram" else 1)
        return value

    def family(self, written: Iterable["Written"]) -> MetricFamily:
        """Return the metric as Prometheus shows it: of this process, and of those that have written theirs."""
        merged = {labels: list(value.numbers) for labels, value in self.values.items()}
        merge = max if self.kind == "max gauge" else lambda own, other: own + other
        for each in written:
            if each.metric == self.name:
                own = merged.get(each.labels)
                merged[each.labels] = [*map(merge, own, each.numbers)] if own else each.numbers
        if self.kind == "histogram":
            histogram = HistogramMetricFamily(self.name, self.meaning, labels=self.label_names)
            for labels, (total, *counts) in merged.items():
                histogram.add_metric(labels, [*zip(BUCKETS, accumulate(counts), strict=True)], total)
            return histogram
        plain = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = plain(self.name, self.meaning, labels=self.label_names)
        for labels, numbers in merged.items():
            family.add_metric(labels, numbers[0])
        return family


class Written(NamedTuple):
    """A value as another process has written it."""

    metric: str
    is_gauge: bool
    labels: tuple[str, ...]
    numbers: list[float]


_read = msgspec.json.Decoder(list[Written]).decode


class Metrics(Collector):
    """All metrics of a process.

    `caches` has a function for each cache in memory that returns the number of its entries and their bytes. `stored`
    returns the metrics of what every process reads from the store: those of one process are those of all. `file` is
    where this process writes its values, in a folder that all processes of the service share; a process that replaces
    another one goes on with its counters.
    """

    def __init__(self, clock: clocks.Clock | None = None, file: Path | None = None) -> None:
        self.clock = clock or clocks.SystemClock()
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.stored: Callable[[], Iterable[MetricFamily]] = tuple
        self.caches: dict[str, Callable[[], tuple[int, int]]] = {}
        self._file = file
        self._lines_dropped = 0
        self._metrics: dict[str, Metric] = {}
        self._add_request_metrics()
        self._add_upstream_metrics()
        self._add_gauges()
        for each in _written(file) if file is not None else ():
            self._metrics[each.metric].labels(*each.labels).numbers = each.numbers

    def _add(self, kind: Kind, name: str, meaning: str, *labels: str) -> Metric:
        metric = self._metrics[f"v3bridge_{name}"] = Metric(f"v3bridge_{name}", kind, meaning, *labels)
        return metric

    def _add_request_metrics(self) -> None:
        counter = partial(self._add, "counter")
        seconds = partial(self._add, "histogram")
        self.requests = counter("requests", "HTTP requests by route and status", "route", "status")
        self.request_seconds = seconds("request_duration_seconds", "Duration of HTTP requests", "route")
        self.parts = counter("parts_returned", "Parts returned by the upstream, and billed", "application")
        unmatched = "Parts returned that are in no response: of other numbers, or behind the page"
        self.parts_unmatched = counter("parts_unmatched", unmatched, "application")
        self.queries = counter("queries", "Queries by source: hit, shared, miss or stale", "source")
        wrong = "Requests with a wrong API key: forbidden or throttled"
        self.wrong_api_keys = counter("wrong_api_keys", wrong, "outcome")
        shared = "Requests that shared a GraphQL operation with others"
        self.batched_requests = counter("batched_requests", shared).labels()
        self.log_lines_dropped = counter("log_lines_dropped", "Log lines that could not be written").labels()
        reloads = "Reloads of the configuration: reloaded or failed"
        self.configuration_reloads = counter("configuration_reloads", reloads, "outcome")

    def _add_upstream_metrics(self) -> None:
        counter = partial(self._add, "counter")
        self.upstream_requests = counter("upstream_requests", "GraphQL requests by outcome", "operation", "outcome")
        duration = "Duration of GraphQL requests"
        self.upstream_seconds = self._add("histogram", "upstream_request_duration_seconds", duration, "operation")
        self.upstream_errors = counter("upstream_errors", "GraphQL errors in responses with usable data", "operation")
        self.retries = counter("upstream_retries", "Retries of GraphQL requests", "operation", "reason")
        openings = "Times that a circuit breaker has opened"
        self.circuit_breaker_openings = counter("circuit_breaker_openings", openings, "service")
        self.token_requests = counter("token_requests", "Token requests by outcome", "application", "outcome")

    def _add_gauges(self) -> None:
        total, highest = partial(self._add, "sum gauge"), partial(self._add, "max gauge")
        waiting = "GraphQL requests that wait for their response"
        self.upstream_in_flight = total("upstream_requests_in_flight", waiting).labels()
        queued = "Batches that wait for an upstream connection"
        self.upstream_waiting = total("upstream_batches_waiting", queued).labels()
        self.event_loop_tasks = total("event_loop_tasks", "Unfinished tasks of the event loop").labels()
        self.cache_entries = total("cache_entries", "Entries of the caches in memory: encoded responses", "cache")
        self.cache_bytes = total("cache_bytes", "Memory that these entries take", "cache")
        states = "State of a circuit breaker: 0 closed, 1 half-open, 2 open"
        self.circuit_breaker_state = highest("circuit_breaker_state", states, "service")
        self.event_loop_lag = highest("event_loop_lag_seconds", "Lag of the event loop").labels()
        unavailable = "Whether the store cannot be used: 1, else 0"
        self.store_unavailable = highest("store_unavailable", unavailable).labels()
        succeeded = "1 if the last reload succeeded, else 0"
        self.last_reload_successful = highest("configuration_last_reload_successful", succeeded).labels()
        loaded = "Time at which the running configuration was loaded, in seconds since 1970"
        self.last_reload_success = highest("configuration_last_success_timestamp_seconds", loaded).labels()

    def record_configuration(self, is_loaded: bool) -> None:
        """Show whether the last configuration, of the start or of a reload, is served."""
        self.last_reload_successful.set(float(is_loaded))
        if is_loaded:
            self.last_reload_success.set(self.clock.now())
        self.write()

    async def measure(self) -> None:
        """Set the gauges that nothing else sets, and that of the lag by which the event loop is late; write all."""
        due = asyncio.get_running_loop().time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        self.event_loop_lag.set(max(0.0, asyncio.get_running_loop().time() - due))
        self.write()

    def write(self) -> None:
        """Let other processes see the values of this one."""
        self._sample()
        if self._file is not None:
            _write(
                self._file,
                [
                    Written(name, metric.kind.endswith("gauge"), labels, value.numbers)
                    for name, metric in self._metrics.items()
                    for labels, value in metric.values.items()
                ],
            )

    def text(self) -> bytes:
        """Return the metrics of all processes in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metrics of all processes, also those that have no values yet: rules and dashboards name them."""
        self._sample()
        files = self._file.parent.glob("*.json") if self._file is not None else ()
        written = [each for file in files if file != self._file for each in _written(file)]
        for metric in self._metrics.values():
            yield metric.family(written)
        yield from self.stored()

    def _sample(self) -> None:
        for name, usage in self.caches.items():
            number, size = usage()
            self.cache_entries.labels(name).set(number)
            self.cache_bytes.labels(name).set(size)
        self.log_lines_dropped.inc(Output.dropped - self._lines_dropped)
        self._lines_dropped = Output.dropped
        with contextlib.suppress(RuntimeError):  # no event loop runs in this thread
            self.event_loop_tasks.set(len(asyncio.all_tasks()))


def forget_gauges(file: Path) -> None:
    """Leave the counters only of the process that wrote to a file, and has ended."""
    if rows := _written(file):
        _write(file, [each for each in rows if not each.is_gauge])


def _written(file: Path) -> list[Written]:
    try:
        return _read(file.read_bytes())
    except (OSError, msgspec.MsgspecError):  # not yet there
        return []


def _write(file: Path, rows: list[Written]) -> None:
    """Replace a file as a whole: others read it at any time. On a full disk it stays as it was."""
    with contextlib.suppress(OSError):
        new = file.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(rows))
        new.replace(file)
