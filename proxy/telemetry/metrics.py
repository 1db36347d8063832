"""What is counted and timed, in the words of Prometheus. Every room is handed the one Metrics of its process.

Labels are fixed words and names of applications and keys: never an apikey, a uid or what a client wrote. Counting is a
step in a dict; prometheus_client is handed the sums when somebody asks, because its own counters, which lock for
threads that are not here, took a twentieth of a request's time. Several processes' sums become one in merging.py.
"""

import asyncio
import contextlib
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Literal

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy.kit import clock as clocks

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STAGE_SECONDS = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, *SECONDS)  # most take microseconds

Labels = tuple[str, ...]


class Counter(dict[Labels, float]):
    """Sums by the values of their labels: `requests["/v3/parts/match", "200"] += 1`, `parts["demo",] += 3`."""

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        super().__init__()
        self._head = name, meaning, labels

    def __missing__(self, labels: Labels) -> float:
        return 0.0

    def merge(self, labels: Labels, value: float) -> None:
        """Add another process's sum."""
        self[labels] += value

    def family(self) -> Metric:
        """As prometheus_client has it."""
        name, meaning, labels = self._head
        family = CounterMetricFamily(name, meaning, labels=labels)
        for values, total in self.items():
            family.add_metric(values, total)
        return family


class Gauge(dict[Labels, float]):
    """What stands at a value: `parts_left["demo",] = 900`. `merged` says what several processes' values come to."""

    def __init__(self, name: str, meaning: str, *labels: str, merged: Literal["sum", "max", "last"]) -> None:
        super().__init__()
        self._head = name, meaning, labels
        self._merged = merged

    def merge(self, labels: Labels, value: float) -> None:
        """Put another process's value to this one's; the last to come is the last written."""
        if labels not in self or self._merged == "last":
            self[labels] = value
        else:
            self[labels] = self[labels] + value if self._merged == "sum" else max(self[labels], value)

    def family(self) -> Metric:
        """As prometheus_client has it."""
        name, meaning, labels = self._head
        family = GaugeMetricFamily(name, meaning, labels=labels)
        for values, value in self.items():
            family.add_metric(values, self._shown(value))
        return family

    def _shown(self, value: float) -> float:
        return value


class Age(Gauge):
    """Seconds since something last happened. Kept as its moment, in seconds since 1970; the latest one counts."""

    def __init__(self, name: str, meaning: str, *labels: str, clock: clocks.Clock) -> None:
        super().__init__(name, meaning, *labels, merged="max")
        self._clock = clock

    def mark(self, *labels: str) -> None:
        """It happens now."""
        self[labels] = self._clock.now()

    def _shown(self, value: float) -> float:
        return max(0.0, self._clock.now() - value)


class Histogram:
    """Seconds by the value of a label."""

    def __init__(self, name: str, meaning: str, label: str, bounds: tuple[float, ...] = SECONDS) -> None:
        self._head = name, meaning, (label,)
        self._bounds = bounds
        self.counts: dict[str, list[int]] = {}
        self.sums: dict[str, float] = {}

    def observe(self, value: str, seconds: float) -> None:
        """Count one more."""
        counts = self.counts.get(value)
        if counts is None:
            counts = self.counts[value] = [0] * (len(self._bounds) + 1)
            self.sums[value] = 0.0
        counts[bisect_left(self._bounds, seconds)] += 1
        self.sums[value] += seconds

    def merge(self, value: str, counts: list[int], total: float) -> None:
        """Add another process's counts."""
        own = self.counts.get(value) or [0] * len(counts)
        self.counts[value] = [one + other for one, other in zip(own, counts, strict=True)]
        self.sums[value] = self.sums.get(value, 0.0) + total

    def family(self) -> Metric:
        """As prometheus_client has it: each bucket holds all that was quicker."""
        name, meaning, labels = self._head
        family = HistogramMetricFamily(name, meaning, labels=labels)
        bounds = [*map(str, self._bounds), "+Inf"]
        for value, counts in self.counts.items():
            buckets = list(zip(bounds, map(float, accumulate(counts)), strict=True))
            family.add_metric([value], buckets, self.sums[value])
        return family


Measure = Counter | Gauge | Histogram


class Metrics(Collector):
    """`registry` is the process's own; the global one of the library stays unused."""

    def __init__(self, registry: CollectorRegistry, clock: clocks.Clock | None = None) -> None:
        self.clock = clock = clock or clocks.SystemClock()
        self.requests = Counter("v3bridge_requests", "Requests answered", "route", "status")
        self.request_seconds = Histogram("v3bridge_request_seconds", "Time to a reply", "route")
        self.stages = Histogram("v3bridge_stage_seconds", "Time by stage of a v3 request", "stage", STAGE_SECONDS)
        self.upstream_requests = Counter("v3bridge_upstream_requests", "GraphQL requests", "operation", "outcome")
        self.upstream_seconds = Histogram("v3bridge_upstream_seconds", "Time to a GraphQL answer", "operation")
        self.upstream_errors = Counter("v3bridge_upstream_errors", "Errors beside usable data", "operation")
        self.retries = Counter("v3bridge_upstream_retries", "GraphQL requests sent again", "operation", "reason")
        self.stalls = Counter("v3bridge_upstream_stalls", "GraphQL requests that stalled", "operation")
        self.breaker_state = Gauge("v3bridge_breaker_state", "0 closed, 1 half open, 2 open", "service", merged="max")
        self.parts = Counter("v3bridge_parts_returned", "Parts that the service returned, and bills", "application")
        self.parts_used = Gauge(
            "v3bridge_parts_used", "Parts returned in this period, by the ledger", "account", merged="last"
        )
        self.parts_doubtful = Gauge(
            "v3bridge_parts_doubtful", "Parts that may have been billed", "account", merged="last"
        )
        self.parts_reserved = Gauge(
            "v3bridge_parts_reserved", "Parts held for calls under way", "account", merged="last"
        )
        self.parts_left = Gauge("v3bridge_parts_left", "Parts left of a limit", "account", merged="last")
        self.token_requests = Counter("v3bridge_token_requests", "Token requests", "application", "outcome")
        self.token_age = Age(
            "v3bridge_token_age_seconds", "Time since the token in use was got", "application", clock=clock
        )
        self.answers = Counter("v3bridge_answers", "Queries answered: hit, shared, miss or stale", "source")
        self.together = Counter("v3bridge_calls_together", "Calls whose queries went out with those of others")
        self.wrong_keys = Counter(
            "v3bridge_wrong_keys", "Requests with wrong API keys: forbidden or throttled", "outcome"
        )
        self.loop_lag = Gauge("v3bridge_loop_lag_seconds", "How late the event loop is", merged="max")
        self.overload = Gauge("v3bridge_overload", "1 while new work is refused for overload, else 0", merged="max")
        self.overload_refused = Counter("v3bridge_overload_refused", "New work refused for overload")
        self.shadow_asked = Counter(
            "v3bridge_shadow_asked", "Calls that the shadow has asked of the other side", "application"
        )
        self.shadow_compared = Counter(
            "v3bridge_shadow_compared", "Calls compared: equivalent or different", "application", "outcome"
        )
        self.shadow_dropped = Counter(
            "v3bridge_shadow_dropped", "Calls chosen and not compared", "application", "reason"
        )
        self.shadow_troubles = Counter(
            "v3bridge_shadow_troubles",
            "Calls that could not be compared: old, new, judge or inside",
            "application",
            "side",
        )
        self.shadow_waiting = Gauge("v3bridge_shadow_waiting", "Calls that wait to be compared", merged="sum")
        self.tasks = Gauge("v3bridge_tasks", "Tasks of the event loop that are not done", merged="sum")
        self._registry = registry
        registry.register(self)

    def lap(self, stage: str, since: float) -> float:
        """Book the time of a stage that began at `since`; gives the moment, at which the next one begins."""
        now = self.clock.monotonic()
        self.stages.observe(stage, now - since)
        return now

    def look(self) -> None:
        """Take what is not counted as it happens: the tasks of the running event loop."""
        with contextlib.suppress(RuntimeError):  # where no loop runs there are none
            self.tasks[()] = len(asyncio.all_tasks())

    def measures(self) -> dict[str, Measure]:
        """Everything that is measured, by its attribute here."""
        return {name: each for name, each in vars(self).items() if isinstance(each, Counter | Gauge | Histogram)}

    def collect(self) -> Iterable[Metric]:
        """All of it, for the registry."""
        return [each.family() for each in self.measures().values()]

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)
