"""Detection of stalled requests: the response stopped arriving, or takes far longer than usual for its operation.

Used by graphql.py, which registers its requests. Code on which other requests wait passes a StallWatch with its
operation: its queue gets a Stall once. One timer checks all registered requests, and runs only while there are any. Not
counted as a stall: time in which the event loop did not run, because data may have arrived meanwhile; and most requests
being late at once, because then the service or this machine is slow, and another request would be as late.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import structlog

from proxy.kit.aiohttp_internals import connector
from proxy.telemetry import metrics as metering
from proxy.upstream import policies

CHECKS = 4  # per stall time: a stall is noticed at most a quarter late
# Above the longest typical duration, so that an operation that is merely slow today is not sent twice.
LATE_FACTOR = 2.0  # times the longest typical duration
FEW = 2  # stalled requests that are reported even if they are all requests

T = TypeVar("T")

log = structlog.get_logger()


class TypicalDuration:
    """Smoothed mean and mean deviation of the durations of one operation, as for TCP round trips (RFC 6298 §2)."""

    __slots__ = ("_deviation", "_mean")

    def __init__(self, seconds: float) -> None:
        self._mean = seconds
        self._deviation = seconds / 2

    def add(self, seconds: float) -> None:
        """Add the duration of a request."""
        # The gains of RFC 6298: 1/4 for the deviation, 1/8 for the mean.
        self._deviation += (abs(seconds - self._mean) - self._deviation) / 4
        self._mean += (seconds - self._mean) / 8

    @property
    def longest(self) -> float:
        """Upper bound of the usual duration, in seconds: the mean and four mean deviations."""
        return self._mean + 4 * self._deviation


class ActiveRequest:
    """Request in flight: who watches it, its current attempt, and how much of the response has arrived."""

    __slots__ = (
        "_may_retry",
        "_retry_allowed",
        "attempt",
        "name",
        "quiet_since",
        "received",
        "since",
        "stalled",
        "watches",
    )

    def __init__(
        self, name: str, watches: "Sequence[StallWatch[Any]]", may_retry: Callable[[str], bool], now: float
    ) -> None:
        self.name = name
        self.watches = watches
        self.attempt: connector.Attempt | None = None
        self.since = self.quiet_since = now
        self.received = 0
        self.stalled = False
        self._may_retry = may_retry
        self._retry_allowed = False

    @property
    def is_batch(self) -> bool:
        """Whether it carries queries of several callers."""
        return len(self.watches) > 1

    def allow_retry(self) -> bool:
        """Return whether its queries may be sent once more; the first call takes one retry from the budget."""
        self._retry_allowed = self._retry_allowed or self._may_retry(self.name)
        return self._retry_allowed


class Stall(NamedTuple, Generic[T]):
    """Stalled request, with what was watched for."""

    request: ActiveRequest
    subject: T


@dataclass(frozen=True, slots=True, eq=False)
class StallWatch(Generic[T]):
    """Watch of a caller for a stall of its requests: the queue that gets it, and what it is to be reported with."""

    queue: asyncio.Queue[Stall[T]]
    subject: T


class StallDetector:
    """Requests in flight. One has stalled when no byte of its response arrived for `seconds` (0: off), or when it takes
    that long and LATE_FACTOR times the longest typical duration of its operation."""

    def __init__(self, seconds: float, budget: policies.RetryBudget, metrics: metering.Metrics) -> None:
        self._seconds = seconds
        self._budget = budget
        self._metrics = metrics
        self._typical: dict[str, TypicalDuration] = {}
        self._in_flight: set[ActiveRequest] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._last_check = 0.0
        self._time = 0.0

    def begin(self, name: str, watches: Sequence[StallWatch[Any]]) -> ActiveRequest | None:
        """Register a request; returns None if nobody watches it."""
        if not watches or not self._seconds:
            return None
        request = ActiveRequest(name, watches, self._may_repeat, self._time)
        self._in_flight.add(request)
        if self._timer is None:
            self._start()
        return request

    def end(self, name: str, seconds: float, request: ActiveRequest | None) -> None:
        """Remove a request and learn its duration, capped so that a single long one changes the typical one little."""
        typical = self._typical.get(name)
        if typical is None:
            self._typical[name] = TypicalDuration(min(seconds, self._seconds))
        else:
            typical.add(seconds if seconds < self._seconds else min(seconds, 2 * self.limit(name)))
        if request is not None:
            self._in_flight.discard(request)

    def limit(self, name: str) -> float:
        """Return the seconds after which a request of this operation has stalled."""
        typical = self._typical.get(name)
        return self._seconds if typical is None else max(self._seconds, LATE_FACTOR * typical.longest)

    def check(self, passed: float) -> None:
        """Report stalled requests, `passed` seconds after the last check."""
        self._time += passed
        waiting = [request for request in self._in_flight if not request.stalled]
        late = [request for request in waiting if self._is_late(request)]
        # If most requests are late, the service is slow as a whole: second attempts would only add load.
        if len(late) <= max(FEW, len(waiting) / 2):
            for request in late:
                self._report(request)

    def _is_late(self, request: ActiveRequest) -> bool:
        attempt = request.attempt
        if attempt is None or not attempt.sent:  # waiting for a free connection is not a stall of the service
            request.since = self._time
            return False
        # Silence counts from the first byte: until then the service may be computing, which the typical duration
        # covers.
        if attempt.received != request.received or not attempt.answered:
            request.received = attempt.received
            request.quiet_since = self._time
        is_quiet = self._time - request.quiet_since >= self._seconds
        return is_quiet or self._time - request.since >= self.limit(request.name)

    def _report(self, request: ActiveRequest) -> None:
        request.stalled = True
        self._metrics.stalls.labels(request.name).inc()
        seconds = round(self._time - request.since, 2)
        log.warning("upstream request stalled", operation=request.name, seconds=seconds, received=request.received)
        for watch in request.watches:
            watch.queue.put_nowait(Stall(request, watch.subject))

    def _may_repeat(self, name: str) -> bool:
        if not self._budget.withdraw():
            return False
        self._metrics.retries.labels(name, "Stalled").inc()
        return True

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._last_check = loop.time()
        self._timer = loop.call_later(self._seconds / CHECKS, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        # Bounded: of the time in which the event loop stood still only two checks count.
        passed = min(loop.time() - self._last_check, 2 * self._seconds / CHECKS)
        self._timer = None
        self.check(passed)
        if self._in_flight:
            self._start()
