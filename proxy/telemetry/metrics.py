"""Prometheus metrics of the service. There is one Metrics object in a process, passed to constructors.

Label values are fixed words and names of applications and keys: never an API key, a uid or text of a client. Where
multiprocess.py has set a folder, all processes count in it, and each of them shows the metrics of all.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Literal, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from proxy.kit import clock as clocks
from proxy.telemetry import multiprocess
from proxy.telemetry.log_queue import LogQueue

# Up to 30 s, the default time limit of a request.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LAG_SECONDS = 0.1  # slept to measure the lag of the event loop

# How the values of the processes that run become one.
Mode = Literal["livesum", "livemax", "livemostrecent"]
M = TypeVar("M", Counter, Gauge, Histogram)


class Metrics(Collector):
    """All metrics of a process.

    `caches` has a function for each cache in memory that returns the number of its entries and their bytes. `stored`
    returns the metrics of what every process reads from the store: those of one process are those of all.
    """

    def __init__(self, clock: clocks.Clock | None = None) -> None:
        self.clock = clock or clocks.SystemClock()
        self.registry = CollectorRegistry()
        self.stored: Callable[[], Iterable[Metric]] = tuple
        self.caches: dict[str, Callable[[], tuple[int, int]]] = {}
        self._lines_dropped = 0
        self._add_request_metrics()
        self._add_upstream_metrics()
        self._add_process_metrics()

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return _with_cached_labels(Counter(name, meaning, labels, registry=self.registry))

    def _gauge(self, mode: Mode, name: str, meaning: str, *labels: str) -> Gauge:
        return _with_cached_labels(Gauge(name, meaning, labels, registry=self.registry, multiprocess_mode=mode))

    def _histogram(self, name: str, meaning: str, label: str) -> Histogram:
        return _with_cached_labels(Histogram(name, meaning, (label,), registry=self.registry, buckets=SECONDS))

    def _add_request_metrics(self) -> None:
        self.requests = self._counter("v3bridge_requests", "HTTP requests by route and status", "route", "status")
        self.request_seconds = self._histogram(
            "v3bridge_request_duration_seconds", "Duration of HTTP requests", "route"
        )
        self.parts = self._counter(
            "v3bridge_parts_returned", "Parts returned by the upstream, and billed", "application"
        )
        self.parts_unmatched = self._counter(
            "v3bridge_parts_unmatched",
            "Parts returned that are in no response: of other numbers, or behind the page",
            "application",
        )
        self.queries = self._counter("v3bridge_queries", "Queries by source: hit, shared, miss or stale", "source")
        self.wrong_api_keys = self._counter(
            "v3bridge_wrong_api_keys", "Requests with a wrong API key: forbidden or throttled", "outcome"
        )

    def _add_upstream_metrics(self) -> None:
        self.upstream_requests = self._counter(
            "v3bridge_upstream_requests", "GraphQL requests by outcome", "operation", "outcome"
        )
        self.upstream_seconds = self._histogram(
            "v3bridge_upstream_request_duration_seconds", "Duration of GraphQL requests", "operation"
        )
        self.upstream_errors = self._counter(
            "v3bridge_upstream_errors", "GraphQL errors in responses with usable data", "operation"
        )
        self.retries = self._counter("v3bridge_upstream_retries", "Retries of GraphQL requests", "operation", "reason")
        self.batched_requests = self._counter(
            "v3bridge_batched_requests", "Requests that shared a GraphQL operation with others"
        )
        self.upstream_in_flight = self._gauge(
            "livesum", "v3bridge_upstream_requests_in_flight", "GraphQL requests that wait for their response"
        )
        self.upstream_waiting = self._gauge(
            "livesum", "v3bridge_upstream_batches_waiting", "Batches that wait for an upstream connection"
        )
        self.circuit_breaker_state = self._gauge(
            "livemax",
            "v3bridge_circuit_breaker_state",
            "State of a circuit breaker: 0 closed, 1 half-open, 2 open",
            "service",
        )
        self.circuit_breaker_openings = self._counter(
            "v3bridge_circuit_breaker_openings", "Times that a circuit breaker has opened", "service"
        )
        self.token_requests = self._counter(
            "v3bridge_token_requests", "Token requests by outcome", "application", "outcome"
        )

    def _add_process_metrics(self) -> None:
        self.event_loop_lag = self._gauge("livemax", "v3bridge_event_loop_lag_seconds", "Lag of the event loop")
        self.event_loop_tasks = self._gauge(
            "livesum", "v3bridge_event_loop_tasks", "Unfinished tasks of the event loop"
        )
        self.cache_entries = self._gauge(
            "livesum", "v3bridge_cache_entries", "Entries of the caches in memory: encoded responses", "cache"
        )
        self.cache_bytes = self._gauge("livesum", "v3bridge_cache_bytes", "Memory that these entries take", "cache")
        self.log_lines_dropped = self._counter("v3bridge_log_lines_dropped", "Log lines that could not be written")
        self.store_unavailable = self._gauge(
            "livemax", "v3bridge_store_unavailable", "Whether the store cannot be used: 1, else 0"
        )
        self.configuration_reloads = self._counter(
            "v3bridge_configuration_reloads", "Reloads of the configuration: reloaded or failed", "outcome"
        )
        self.last_reload_successful = self._gauge(
            "livemostrecent", "v3bridge_configuration_last_reload_successful", "1 if the last reload succeeded, else 0"
        )
        self.last_reload_success = self._gauge(
            "livemax",
            "v3bridge_configuration_last_success_timestamp_seconds",
            "Time at which the running configuration was loaded, in seconds since 1970",
        )

    def record_configuration(self, is_loaded: bool) -> None:
        """Show whether the last configuration, of the start or of a reload, is served."""
        self.last_reload_successful.set(float(is_loaded))
        if is_loaded:
            self.last_reload_success.set(self.clock.now())

    async def measure(self) -> None:
        """Set the gauges that nothing else sets, and that of the lag by which the event loop is late."""
        due = asyncio.get_running_loop().time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        self.event_loop_lag.set(max(0.0, asyncio.get_running_loop().time() - due))
        self._sample()

    def text(self) -> bytes:
        """Return the metrics of all processes in Prometheus' text format."""
        self._sample()
        shown = CollectorRegistry()
        shown.register(self)
        return generate_latest(shown)

    def collect(self) -> Iterable[Metric]:
        """Yield what is counted, and what is read on a scrape instead."""
        if multiprocess.VARIABLE in os.environ:
            yield from self._of_all_processes()
        else:
            yield from self.registry.collect()
        yield from self.stored()

    def _of_all_processes(self) -> Iterable[Metric]:
        """Yield what all processes have counted, also metrics that have no values yet: rules and dashboards name
        them."""
        counted = MultiProcessCollector(CollectorRegistry()).collect()  # type: ignore[no-untyped-call]
        by_name = {metric.name: metric for metric in counted}
        for own in self.registry.collect():
            own.samples = by_name[own.name].samples if own.name in by_name else []
            yield own

    def _sample(self) -> None:
        for name, usage in self.caches.items():
            number, size = usage()
            self.cache_entries.labels(name).set(number)
            self.cache_bytes.labels(name).set(size)
        self.log_lines_dropped.inc(LogQueue.dropped - self._lines_dropped)
        self._lines_dropped = LogQueue.dropped
        multiprocess.share()
        with contextlib.suppress(RuntimeError):  # no event loop runs in this thread
            self.event_loop_tasks.set(len(asyncio.all_tasks()))


def _with_cached_labels(metric: M) -> M:
    """Cache the look-up of labels, which takes as long as to count: of a new request together 20 µs, cached 13 µs."""
    metric.labels = cache(metric.labels)  # type: ignore[method-assign]
    return metric
