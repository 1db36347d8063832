"""Metrics of the service for Prometheus. There is one Metrics object in a process, passed to constructors.

All of them are plain numbers. Of several processes each writes its own to a file once a second, and reads those of the
others when it is asked: any process shows the metrics of all. Label values are fixed words and names of applications
and keys: never an API key, a uid or text of a client.
"""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as MetricFamily
from prometheus_client.registry import Collector

from proxy.kit import clock as clocks
from proxy.log import Output

# Up to 30 s, the default time limit of a request.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
BOUNDS = (*map(str, SECONDS), "+Inf")  # as Prometheus writes them
LAG_SECONDS = 0.1  # slept to measure the lag of the event loop
SUFFIX = ".metrics"

Numbers = dict[str, list[tuple[tuple[str, ...], list[float]]]]  # of a process: by metric, with their labels


class Value:
    """A counter or gauge."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = [0.0]

    def inc(self, amount: float = 1.0) -> None:
        self.numbers[0] += amount

    def set(self, value: float) -> None:
        self.numbers[0] = float(value)


class Durations:
    """A histogram: how many durations there are up to each of SECONDS and beyond, and their sum."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = [0.0] * (len(SECONDS) + 2)

    def observe(self, seconds: float) -> None:
        self.numbers[bisect_left(SECONDS, seconds)] += 1
        self.numbers[-1] += seconds


V = TypeVar("V", Value, Durations)


class Metric(Generic[V]):
    """Values of a metric by its labels. `combine` makes one number of those of several processes."""

    def __init__(
        self,
        family: Callable[..., Any],
        kind: type[V],
        combine: Callable[[Iterable[float]], float],
        name: str,
        meaning: str,
        *labels: str,
    ) -> None:
        self.name, self._kind, self._combine = name, kind, combine
        self._family = partial(family, f"v3bridge_{name}", meaning, labels=labels)
        self.is_gauge = family is GaugeMetricFamily
        self.values: dict[tuple[str, ...], V] = {}

    def labels(self, *labels: str) -> V:
        value = self.values.get(labels)
        if value is None:
            value = self.values[labels] = self._kind()
        return value

    def shown(self, processes: Sequence[Numbers]) -> MetricFamily:
        """Return the metric of several processes."""
        found: dict[tuple[str, ...], list[list[float]]] = defaultdict(list)
        for process in processes:
            for labels, numbers in process.get(self.name, ()):
                found[labels].append(numbers)
        family = self._family()
        for labels, of_each in found.items():
            combined = [self._combine(numbers) for numbers in zip(*of_each, strict=True)]
            if self._kind is Durations:
                *counts, total = combined
                family.add_metric(labels, list(zip(BOUNDS, accumulate(counts), strict=True)), total)
            else:
                family.add_metric(labels, *combined)
        return family


class Metrics(Collector):
    """All metrics of a process. Of several, each has a `file` in the same folder; a process goes on with the counters
    of its predecessor. `stored` returns those of what all processes read from the store."""

    def __init__(self, clock: clocks.Clock | None = None, file: Path | None = None) -> None:
        self.clock, self._file = clock or clocks.SystemClock(), file
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.stored: Callable[[], Iterable[MetricFamily]] = tuple
        self._lines_dropped = 0
        self._metrics: list[Metric[Value] | Metric[Durations]] = []
        self._add_counters()
        self._add_gauges()
        durations = partial(self._add, HistogramMetricFamily, Durations, sum)
        self.request_seconds = durations("request_duration_seconds", "Duration of HTTP requests", "route")
        self.upstream_seconds = durations(
            "upstream_request_duration_seconds", "Duration of GraphQL requests", "operation"
        )
        before = _read(file) if file is not None and file.exists() else {}
        for metric in self._metrics:
            for labels, numbers in before.get(metric.name, ()) if not metric.is_gauge else ():
                metric.labels(*labels).numbers[:] = numbers
        self.flush()

    def _add(self, family: Callable[..., Any], kind: type[V], combine: Any, *described: str) -> Metric[V]:
        metric = Metric(family, kind, combine, *described)
        self._metrics.append(metric)
        return metric

    def _add_counters(self) -> None:
        counter = partial(self._add, CounterMetricFamily, Value, sum)
        self.requests = counter("requests", "HTTP requests by route and status", "route", "status")
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
        self.upstream_errors = counter("upstream_errors", "GraphQL errors in responses with usable data", "operation")
        self.retries = counter("upstream_retries", "Retries of GraphQL requests", "operation", "reason")
        openings = "Times that a circuit breaker has opened"
        self.circuit_breaker_openings = counter("circuit_breaker_openings", openings, "service")
        self.token_requests = counter("token_requests", "Token requests by outcome", "application", "outcome")

    def _add_gauges(self) -> None:
        total = partial(self._add, GaugeMetricFamily, Value, sum)
        highest = partial(self._add, GaugeMetricFamily, Value, max)
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
        """Set the gauge of the lag by which the event loop is late; write all."""
        due = asyncio.get_running_loop().time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        self._event_loop_lag.set(max(0.0, asyncio.get_running_loop().time() - due))
        self.flush()

    def flush(self) -> Numbers:
        """Write the numbers of this process, for others, and return them."""
        self._log_lines_dropped.inc(Output.dropped - self._lines_dropped)
        self._lines_dropped = Output.dropped
        own = {
            metric.name: [(labels, value.numbers) for labels, value in metric.values.items()]
            for metric in self._metrics
        }
        if self._file is not None:
            with suppress(OSError):  # such as a full disk: others go on with what they have
                written = self._file.with_suffix(".new")
                written.write_bytes(msgspec.json.encode(own))
                written.replace(self._file)
        return own

    def collect(self) -> Iterator[MetricFamily]:
        """Yield the metrics of all processes, also those that have no values yet: rules and dashboards name them."""
        others = self._file.parent.glob(f"*{SUFFIX}") if self._file is not None else ()
        processes = [self.flush(), *(_read(each) for each in others if each != self._file)]
        yield from (metric.shown(processes) for metric in self._metrics)
        yield from self.stored()

    def text(self) -> bytes:
        """Return the metrics of all processes in Prometheus' text format."""
        return generate_latest(self.registry)


def _read(file: Path) -> Numbers:
    return msgspec.json.decode(file.read_bytes(), type=Numbers)
