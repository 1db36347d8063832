"""Prometheus metrics of the service. There is one Metrics object in a process, passed to constructors.

Label values are fixed words and names of applications and keys: never an API key, a uid or text of a client. To count
is to update a dict; prometheus_client gets the sums on a scrape. Its own counters lock for threads, which this process
does not have, and took a twentieth of the time of a request. merging.py adds up the metrics of several workers.
"""

import asyncio
import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Literal

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy.kit import clock as clocks
from proxy.telemetry.log_queue import LogQueue

# Up to 30 s, the default time limit of a request.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STAGE_SECONDS = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, *SECONDS)  # most take microseconds

Labels = tuple[str, ...]


class Counter(dict[Labels, float]):
    """Sums by the values of their labels: `requests["/v3/parts/match", "200"] += 1`, `parts["demo",] += 3`."""

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        super().__init__()
        self.name = name
        self.meaning = meaning
        self.labels = labels

    # Without storing it: a read must not make a series of zeros on the page.
    def __missing__(self, labels: Labels) -> float:
        return 0.0

    def merge(self, labels: Labels, value: float) -> None:
        """Add the sum of another process."""
        self[labels] += value

    def family(self) -> Metric:
        """Convert to the form of prometheus_client."""
        family = CounterMetricFamily(self.name, self.meaning, labels=self.labels)
        for values, total in self.items():
            family.add_metric(values, total)
        return family


class Gauge(dict[Labels, float]):
    """Values by labels: `parts_remaining["demo",] = 900`. `merged`: how the values of several processes become one."""

    def __init__(self, name: str, meaning: str, *labels: str, merged: Literal["sum", "max", "last"]) -> None:
        super().__init__()
        self.name = name
        self.meaning = meaning
        self.labels = labels
        self._merged = merged

    def merge(self, labels: Labels, value: float) -> None:
        """Combine with the value of another process. Snapshots come in the order in which they were written."""
        # "last" is for what all workers read from the shared ledger: adding it up would multiply it.
        if labels not in self or self._merged == "last":
            self[labels] = value
        else:
            self[labels] = self[labels] + value if self._merged == "sum" else max(self[labels], value)

    def family(self) -> Metric:
        """Convert to the form of prometheus_client."""
        family = GaugeMetricFamily(self.name, self.meaning, labels=self.labels)
        for values, value in self.items():
            family.add_metric(values, self._shown(value))
        return family

    def _shown(self, value: float) -> float:
        return value


class AgeGauge(Gauge):
    """Seconds since an event last happened. Stores the time of the event, in seconds since 1970; the latest counts."""

    def __init__(self, name: str, meaning: str, *labels: str, clock: clocks.Clock) -> None:
        super().__init__(name, meaning, *labels, merged="max")
        self._clock = clock

    def mark(self, *labels: str) -> None:
        """Record that the event happened now."""
        self[labels] = self._clock.now()

    def _shown(self, value: float) -> float:
        return max(0.0, self._clock.now() - value)


class Histogram:
    """Distribution of durations, in seconds, by the value of one label."""

    def __init__(self, name: str, meaning: str, label: str, bounds: tuple[float, ...] = SECONDS) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = (label,)
        self._bounds = bounds
        self.size = len(bounds) + 1  # buckets: one above all bounds
        self.counts: dict[str, list[int]] = {}
        self.sums: dict[str, float] = {}

    def observe(self, value: str, seconds: float) -> None:
        counts = self.counts.get(value)
        if counts is None:
            counts = self.counts[value] = [0] * self.size
            self.sums[value] = 0.0
        counts[bisect_left(self._bounds, seconds)] += 1
        self.sums[value] += seconds

    def merge(self, value: str, counts: list[int], total: float) -> None:
        """Add the counts of another process."""
        own_counts = self.counts.get(value) or [0] * len(counts)
        self.counts[value] = [sum(pair) for pair in zip(own_counts, counts, strict=True)]
        self.sums[value] = self.sums.get(value, 0.0) + total

    def family(self) -> Metric:
        """Convert to the form of prometheus_client, whose buckets are cumulative."""
        family = HistogramMetricFamily(self.name, self.meaning, labels=self.labels)
        bounds = [*map(str, self._bounds), "+Inf"]
        for value, counts in self.counts.items():
            buckets = list(zip(bounds, map(float, accumulate(counts)), strict=True))
            family.add_metric([value], buckets, self.sums[value])
        return family


Measure = Counter | Gauge | Histogram


class Metrics(Collector):
    """All metrics of a process, as a collector of `registry`; the library's global registry is not used."""

    def __init__(self, registry: CollectorRegistry, clock: clocks.Clock | None = None) -> None:
        self.clock = clock = clock or clocks.SystemClock()
        self.requests = Counter("v3bridge_requests", "HTTP requests by route and status", "route", "status")
        self.request_seconds = Histogram("v3bridge_request_duration_seconds", "Duration of HTTP requests", "route")
        self.stage_seconds = Histogram(
            "v3bridge_stage_duration_seconds", "Duration of the stages of a v3 request", "stage", STAGE_SECONDS
        )
        self._add_upstream_metrics()
        self._add_quota_metrics()
        self.token_requests = Counter("v3bridge_token_requests", "Token requests by outcome", "application", "outcome")
        self.token_age = AgeGauge(
            "v3bridge_token_age_seconds", "Age of the access token in use", "application", clock=clock
        )
        self.queries = Counter("v3bridge_queries", "Queries by source: hit, shared, miss or stale", "source")
        self.shared_cache_lookups = Counter(
            "v3bridge_shared_cache_lookups",
            "Queries looked up in the shared cache: hit, miss, or waited for another worker",
            "outcome",
        )
        self.shared_cache_failures = Counter(
            "v3bridge_shared_cache_failures", "Failed operations on the shared cache", "operation"
        )
        self.batched_requests = Counter(
            "v3bridge_batched_requests", "Requests that shared a GraphQL operation with others"
        )
        self.wrong_api_keys = Counter(
            "v3bridge_wrong_api_keys", "Requests with a wrong API key: forbidden or throttled", "outcome"
        )
        self.event_loop_lag = Gauge("v3bridge_event_loop_lag_seconds", "Lag of the event loop", merged="max")
        self.event_loop_tasks = Gauge("v3bridge_event_loop_tasks", "Unfinished tasks of the event loop", merged="sum")
        self.cache_entries = Gauge(
            "v3bridge_cache_entries", "Entries of the caches in memory: queries or responses", "cache", merged="sum"
        )
        self.cache_bytes = Gauge("v3bridge_cache_bytes", "Memory that these entries take", "cache", merged="sum")
        self.log_lines_dropped = Counter("v3bridge_log_lines_dropped", "Log lines that could not be written")
        self.store_unavailable = Gauge(
            "v3bridge_store_unavailable", "Whether the store cannot be used: 1, else 0", merged="max"
        )
        self._add_reload_metrics()
        # Entries and bytes of each cache in memory, by its name: a function, because they are read on a scrape only.
        self.caches: dict[str, Callable[[], tuple[int, int]]] = {}
        self._registry = registry
        registry.register(self)

    def _add_upstream_metrics(self) -> None:
        self.upstream_requests = Counter(
            "v3bridge_upstream_requests", "GraphQL requests by outcome", "operation", "outcome"
        )
        self.upstream_seconds = Histogram(
            "v3bridge_upstream_request_duration_seconds", "Duration of GraphQL requests", "operation"
        )
        self.upstream_errors = Counter(
            "v3bridge_upstream_errors", "GraphQL errors in responses with usable data", "operation"
        )
        self.retries = Counter("v3bridge_upstream_retries", "Retries of GraphQL requests", "operation", "reason")
        self.stalls = Counter("v3bridge_upstream_stalls", "GraphQL requests that stalled", "operation")
        self.upstream_in_flight = Gauge(
            "v3bridge_upstream_requests_in_flight", "GraphQL requests that wait for their response", merged="sum"
        )
        self.upstream_waiting = Gauge(
            "v3bridge_upstream_batches_waiting", "Batches that wait for an upstream connection", merged="sum"
        )
        self.circuit_breaker_state = Gauge(
            "v3bridge_circuit_breaker_state",
            "State of a circuit breaker: 0 closed, 1 half-open, 2 open",
            "service",
            merged="max",
        )
        self.circuit_breaker_openings = Counter(
            "v3bridge_circuit_breaker_openings", "Times that a circuit breaker has opened", "service"
        )

    def _add_quota_metrics(self) -> None:
        self.parts = Counter("v3bridge_parts_returned", "Parts returned by the upstream, and billed", "application")
        self.parts_unmatched = Counter(
            "v3bridge_parts_unmatched",
            "Parts returned that are in no response: of other numbers, or behind the page",
            "application",
        )
        self.parts_used = Gauge(
            "v3bridge_parts_used", "Parts used in the period, by the ledger", "quota_account", merged="last"
        )
        self.parts_uncertain = Gauge(
            "v3bridge_parts_uncertain", "Parts that may have been billed", "quota_account", merged="last"
        )
        self.parts_reserved = Gauge(
            "v3bridge_parts_reserved", "Parts reserved by requests in flight", "quota_account", merged="last"
        )
        self.parts_remaining = Gauge(
            "v3bridge_parts_remaining", "Parts remaining of the limit", "quota_account", merged="last"
        )

    def _add_reload_metrics(self) -> None:
        self.configuration_reloads = Counter(
            "v3bridge_configuration_reloads", "Reloads of the configuration: reloaded or failed", "outcome"
        )
        # "last" and "max": every worker has them.
        self.last_reload_successful = Gauge(
            "v3bridge_configuration_last_reload_successful", "1 if the last reload succeeded, else 0", merged="last"
        )
        self.last_reload_success = Gauge(
            "v3bridge_configuration_last_success_timestamp_seconds",
            "Time at which the running configuration was loaded, in seconds since 1970",
            merged="max",
        )

    def observe_stage(self, stage: str, since: float) -> float:
        """Record the duration of a stage that began at `since`; returns the time now, when the next stage begins."""
        now = self.clock.monotonic()
        self.stage_seconds.observe(stage, now - since)
        return now

    def sample(self) -> None:
        """Update the gauges that are read on a scrape instead of counted."""
        for name, usage in self.caches.items():
            self.cache_entries[name,], self.cache_bytes[name,] = usage()
        self.log_lines_dropped[()] = LogQueue.dropped
        with contextlib.suppress(RuntimeError):  # no event loop runs in this thread
            self.event_loop_tasks[()] = len(asyncio.all_tasks())

    def measures(self) -> dict[str, Measure]:
        return {name: each for name, each in vars(self).items() if isinstance(each, Counter | Gauge | Histogram)}

    def collect(self) -> Iterable[Metric]:
        return [each.family() for each in self.measures().values()]

    def text(self) -> bytes:
        return generate_latest(self._registry)
