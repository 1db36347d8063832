"""What is counted and timed, in the words of Prometheus. Every room is handed the one Metrics of its process.

Labels are fixed words and names of applications and keys: never an apikey, a uid or what a client wrote. Counting is a
step in a dict; prometheus_client is handed the sums when somebody asks, because its own counters, which lock for
threads that are not here, took a twentieth of a request's time.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import ClassVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Labels = tuple[str, ...]


class Counter(dict[Labels, float]):
    """Sums by the values of their labels: `requests["/v3/parts/match", "200"] += 1`, `parts["demo",] += 3`."""

    _kind: ClassVar[type[CounterMetricFamily | GaugeMetricFamily]] = CounterMetricFamily

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        super().__init__()
        self._head = name, meaning, labels

    def __missing__(self, labels: Labels) -> float:
        return 0.0

    def family(self) -> Metric:
        """As prometheus_client has it."""
        name, meaning, labels = self._head
        family = self._kind(name, meaning, labels=labels)
        for values, total in self.items():
            family.add_metric(values, total)
        return family


class Gauge(Counter):
    """Figures as they are at this moment: `parts_left["demo",] = 7`. What is no longer told is taken out."""

    _kind = GaugeMetricFamily


class Histogram:
    """Seconds by the value of a label."""

    def __init__(self, name: str, meaning: str, label: str) -> None:
        self._head = name, meaning, (label,)
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, value: str, seconds: float) -> None:
        """Count one more."""
        counts = self._counts.get(value)
        if counts is None:
            counts = self._counts[value] = [0] * (len(SECONDS) + 1)
            self._sums[value] = 0.0
        counts[bisect_left(SECONDS, seconds)] += 1
        self._sums[value] += seconds

    def family(self) -> Metric:
        """As prometheus_client has it: each bucket holds all that was quicker."""
        name, meaning, labels = self._head
        family = HistogramMetricFamily(name, meaning, labels=labels)
        bounds = [*map(str, SECONDS), "+Inf"]
        for value, counts in self._counts.items():
            buckets = list(zip(bounds, map(float, accumulate(counts)), strict=True))
            family.add_metric([value], buckets, self._sums[value])
        return family


class Metrics(Collector):
    """`registry` is the process's own; the global one of the library stays unused."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter("v3bridge_requests", "v3 requests answered", "route", "status")
        self.request_seconds = Histogram("v3bridge_request_seconds", "Time to a v3 reply", "route")
        self.upstream_requests = Counter("v3bridge_upstream_requests", "GraphQL requests", "operation", "outcome")
        self.upstream_seconds = Histogram("v3bridge_upstream_seconds", "Time to a GraphQL answer", "operation")
        self.upstream_errors = Counter("v3bridge_upstream_errors", "Errors beside usable data", "operation")
        self.retries = Counter("v3bridge_upstream_retries", "GraphQL requests sent again", "operation", "reason")
        self.breaker_state = Gauge("v3bridge_breaker_state", "0 closed, 1 half open, 2 open", "service")
        self.parts = Counter("v3bridge_parts_returned", "Parts that the service returned, and bills", "application")
        self.parts_used = Gauge("v3bridge_parts_used", "Parts returned in this period, by the ledger", "account")
        self.parts_doubtful = Gauge("v3bridge_parts_doubtful", "Parts that may have been billed", "account")
        self.parts_reserved = Gauge("v3bridge_parts_reserved", "Parts held for calls under way", "account")
        self.parts_left = Gauge("v3bridge_parts_left", "Parts left of a limit", "account")
        self.token_requests = Counter("v3bridge_token_requests", "Token requests", "application", "outcome")
        self.answers = Counter("v3bridge_answers", "Queries answered: hit, shared, miss or stale", "source")
        self.together = Counter("v3bridge_calls_together", "Calls whose queries went out with those of others")
        self._registry = registry
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """All of it, for the registry."""
        return [each.family() for each in vars(self).values() if isinstance(each, Counter | Gauge | Histogram)]

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)
