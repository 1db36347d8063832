"""Prometheus metrics of the service. There is one Metrics object in a process, passed to constructors.

Label values are fixed words and names of applications and keys: never an API key, a uid or text of a client. Where
multiprocess.py has set a folder, all processes count in it, and each of them shows the metrics of all.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable
from functools import cache, partial

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
        for metric in vars(self).values():
            if isinstance(metric, Counter | Gauge | Histogram):
                # To find the labels takes as long as to count: together 7 % of the time of a request, cached 4 %.
                metric.labels = cache(metric.labels)  # type: ignore[method-assign, assignment]

    def _add_request_metrics(self) -> None:
        counter = partial(Counter, registry=self.registry)
        self.requests = counter("v3bridge_requests", "HTTP requests by route and status", ("route", "status"))
        self.request_seconds = Histogram(
            "v3bridge_request_duration_seconds",
            "Duration of HTTP requests",
            ("route",),
            registry=self.registry,
            buckets=SECONDS,
        )
        self.parts = counter("v3bridge_parts_returned", "Parts returned by the upstream, and billed", ("application",))
        self.parts_unmatched = counter(
            "v3bridge_parts_unmatched",
            "Parts returned that are in no response: of other numbers, or behind the page",
            ("application",),
        )
        self.queries = counter("v3bridge_queries", "Queries by source: hit, shared, miss or stale", ("source",))
        self.shared_cache_lookups = counter(
            "v3bridge_shared_cache_lookups",
            "Queries looked up in the shared cache: hit, miss, or waited for another worker",
            ("outcome",),
        )
        self.shared_cache_failures = counter(
            "v3bridge_shared_cache_failures", "Failed operations on the shared cache", ("operation",)
        )
        self.wrong_api_keys = counter(
            "v3bridge_wrong_api_keys", "Requests with a wrong API key: forbidden or throttled", ("outcome",)
        )

    def _add_upstream_metrics(self) -> None:
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        self.upstream_requests = counter(
            "v3bridge_upstream_requests", "GraphQL requests by outcome", ("operation", "outcome")
        )
        self.upstream_seconds = Histogram(
            "v3bridge_upstream_request_duration_seconds",
            "Duration of GraphQL requests",
            ("operation",),
            registry=self.registry,
            buckets=SECONDS,
        )
        self.upstream_errors = counter(
            "v3bridge_upstream_errors", "GraphQL errors in responses with usable data", ("operation",)
        )
        self.retries = counter("v3bridge_upstream_retries", "Retries of GraphQL requests", ("operation", "reason"))
        self.stalls = counter("v3bridge_upstream_stalls", "GraphQL requests that stalled", ("operation",))
        self.batched_requests = counter(
            "v3bridge_batched_requests", "Requests that shared a GraphQL operation with others"
        )
        self.upstream_in_flight = gauge(
            "v3bridge_upstream_requests_in_flight",
            "GraphQL requests that wait for their response",
            multiprocess_mode="livesum",
        )
        self.upstream_waiting = gauge(
            "v3bridge_upstream_batches_waiting",
            "Batches that wait for an upstream connection",
            multiprocess_mode="livesum",
        )
        self.circuit_breaker_state = gauge(
            "v3bridge_circuit_breaker_state",
            "State of a circuit breaker: 0 closed, 1 half-open, 2 open",
            ("service",),
            multiprocess_mode="livemax",
        )
        self.circuit_breaker_openings = counter(
            "v3bridge_circuit_breaker_openings", "Times that a circuit breaker has opened", ("service",)
        )
        self.token_requests = counter(
            "v3bridge_token_requests", "Token requests by outcome", ("application", "outcome")
        )

    def _add_process_metrics(self) -> None:
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        self.event_loop_lag = gauge(
            "v3bridge_event_loop_lag_seconds", "Lag of the event loop", multiprocess_mode="livemax"
        )
        self.event_loop_tasks = gauge(
            "v3bridge_event_loop_tasks", "Unfinished tasks of the event loop", multiprocess_mode="livesum"
        )
        self.cache_entries = gauge(
            "v3bridge_cache_entries",
            "Entries of the caches in memory: queries or responses",
            ("cache",),
            multiprocess_mode="livesum",
        )
        self.cache_bytes = gauge(
            "v3bridge_cache_bytes", "Memory that these entries take", ("cache",), multiprocess_mode="livesum"
        )
        self.log_lines_dropped = counter("v3bridge_log_lines_dropped", "Log lines that could not be written")
        self.store_unavailable = gauge(
            "v3bridge_store_unavailable", "Whether the store cannot be used: 1, else 0", multiprocess_mode="livemax"
        )
        self.configuration_reloads = counter(
            "v3bridge_configuration_reloads", "Reloads of the configuration: reloaded or failed", ("outcome",)
        )
        self.last_reload_successful = gauge(
            "v3bridge_configuration_last_reload_successful",
            "1 if the last reload succeeded, else 0",
            multiprocess_mode="livemostrecent",
        )
        self.last_reload_success = gauge(
            "v3bridge_configuration_last_success_timestamp_seconds",
            "Time at which the running configuration was loaded, in seconds since 1970",
            multiprocess_mode="livemax",
        )

    async def measure(self) -> None:
        """Set the gauges that nothing else sets, and that of the lag by which the event loop is late."""
        due = asyncio.get_running_loop().time() + LAG_SECONDS
        await asyncio.sleep(LAG_SECONDS)
        self.event_loop_lag.set(max(0.0, asyncio.get_running_loop().time() - due))
        self._sample()

    def text(self) -> bytes:
        """Return the metrics of all processes in Prometheus' text format."""
        self._sample()
        counted = self.registry
        if multiprocess.VARIABLE in os.environ:
            counted = CollectorRegistry()
            MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
        stored = CollectorRegistry()
        stored.register(self)
        return generate_latest(counted) + generate_latest(stored)

    def collect(self) -> Iterable[Metric]:
        """Return what is read on a scrape instead of counted."""
        return self.stored()

    def _sample(self) -> None:
        for name, usage in self.caches.items():
            number, size = usage()
            self.cache_entries.labels(name).set(number)
            self.cache_bytes.labels(name).set(size)
        self.log_lines_dropped.inc(LogQueue.dropped - self._lines_dropped)
        self._lines_dropped = LogQueue.dropped
        with contextlib.suppress(RuntimeError):  # no event loop runs in this thread
            self.event_loop_tasks.set(len(asyncio.all_tasks()))
