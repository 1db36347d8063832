"""Stalled requests: the response has stopped arriving, or takes far longer than such a request usually does.

Used by graphql.py, which registers what it sends. Whoever others wait for sets WATCHES and is told of a stall once. One
timer looks at all registered requests, and runs only while there are any. What is not a stall: time in which the event
loop did not run, because responses may have arrived in it; and most requests taking long at once, because then the
service is slow, or this machine, and another request would fare no better.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

import structlog

from proxy.kit.aiohttp_internals import connector
from proxy.telemetry import metrics as metering
from proxy.upstream import policies

LOOKS = 4  # in the time after which a request has stalled
FACTOR = 2.0  # times the longest usual duration is far beyond it
FEW = 2  # requests that may be all there are, and stall

log = structlog.get_logger()


class Usual:
    """How long requests of one operation take: smoothed mean and mean deviation, as TCP has it (RFC 6298 §2)."""

    __slots__ = ("_deviation", "_mean")

    def __init__(self, seconds: float) -> None:
        self._mean = seconds
        self._deviation = seconds / 2

    def saw(self, seconds: float) -> None:
        """Learn the duration of one more."""
        self._deviation += (abs(seconds - self._mean) - self._deviation) / 4
        self._mean += (seconds - self._mean) / 8

    @property
    def longest(self) -> float:
        """Seconds that hardly any takes."""
        return self._mean + 4 * self._deviation


class Sending:
    """A request under way. `several` callers are waiting for it, or one; `attempt` is how far it has come."""

    __slots__ = ("_allowed", "_ask", "attempt", "name", "quiet_since", "received", "since", "stalled", "watches")

    def __init__(self, name: str, watches: "tuple[Watch, ...]", ask: Callable[[str], bool], now: float) -> None:
        self.name = name
        self.watches = watches
        self.attempt: connector.Attempt | None = None
        self.since = self.quiet_since = now
        self.received = 0
        self.stalled = False
        self._ask = ask
        self._allowed = False

    @property
    def several(self) -> bool:
        """Whether it carries queries of several callers."""
        return len(self.watches) > 1

    def repeat(self) -> bool:
        """Whether what was asked may be asked once more; it takes one repetition from the budget."""
        self._allowed = self._allowed or self._ask(self.name)
        return self._allowed


Watch = Callable[[Sending], None]
WATCHES: ContextVar[tuple[Watch, ...]] = ContextVar("watches", default=())


class Stalls:
    """Requests under way. One has stalled when nothing more of its response came for `seconds` (0: none ever does), or
    when it takes that long and twice as long as the longest usual duration of its operation."""

    def __init__(self, seconds: float, budget: policies.Budget, metrics: metering.Metrics) -> None:
        self._seconds = seconds
        self._budget = budget
        self._metrics = metrics
        self._usual: dict[str, Usual] = {}
        self._under_way: set[Sending] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._looked = 0.0
        self._time = 0.0

    def begin(self, name: str) -> Sending | None:
        """Register a request of an operation; None where nobody watches."""
        watches = WATCHES.get()
        if not watches or not self._seconds:
            return None
        sending = Sending(name, watches, self._may_repeat, self._time)
        self._under_way.add(sending)
        if self._timer is None:
            self._start()
        return sending

    def end(self, name: str, seconds: float, sending: Sending | None) -> None:
        """A request has ended, however. A single long one does not change what is usual by much."""
        usual = self._usual.get(name)
        if usual is None:
            self._usual[name] = Usual(min(seconds, self._seconds))
        else:
            usual.saw(seconds if seconds < self._seconds else min(seconds, 2 * self.limit(name)))
        if sending is not None:
            self._under_way.discard(sending)

    def limit(self, name: str) -> float:
        """Seconds after which a request of this operation has stalled."""
        usual = self._usual.get(name)
        return self._seconds if usual is None else max(self._seconds, FACTOR * usual.longest)

    def look(self, passed: float) -> None:
        """Tell who watches what has stalled, `passed` seconds after the last look."""
        self._time += passed
        waiting = [sending for sending in self._under_way if not sending.stalled]
        late = [sending for sending in waiting if self._is_late(sending)]
        if len(late) <= max(FEW, len(waiting) / 2):
            for sending in late:
                self._tell(sending)

    def _is_late(self, sending: Sending) -> bool:
        attempt = sending.attempt
        if attempt is None or not attempt.sent:  # waits for a connection
            sending.since = self._time
            return False
        if attempt.received != sending.received or not attempt.answered:
            sending.received = attempt.received
            sending.quiet_since = self._time
        is_quiet = self._time - sending.quiet_since >= self._seconds
        return is_quiet or self._time - sending.since >= self.limit(sending.name)

    def _tell(self, sending: Sending) -> None:
        sending.stalled = True
        self._metrics.stalls[sending.name,] += 1
        seconds = round(self._time - sending.since, 2)
        log.warning("upstream request stalled", operation=sending.name, seconds=seconds, received=sending.received)
        for watch in sending.watches:
            watch(sending)

    def _may_repeat(self, name: str) -> bool:
        if not self._budget.withdraw():
            return False
        self._metrics.retries[name, "Stalled"] += 1
        return True

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._looked = loop.time()
        self._timer = loop.call_later(self._seconds / LOOKS, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        passed = min(loop.time() - self._looked, 2 * self._seconds / LOOKS)
        self._timer = None
        self.look(passed)
        if self._under_way:
            self._start()
