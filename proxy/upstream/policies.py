"""When to ask a service again, and when to leave it alone. Small policies: state and decisions, no waiting, no I/O.

Used by graphql.py and acquisition.py, which act on them. They know nothing of HTTP: what went wrong comes as one of the
program's errors. Never asked for again is what may have been billed, what was refused, and a spent quota.
"""

import math
import random
from typing import Final

import structlog

from proxy import config, errors
from proxy.kit import clock as clocks
from proxy.kit.wording import counted
from proxy.telemetry import metrics as metering

BACKOFF = 0.1  # seconds: the most that the first wait is; each further one may be twice as long
BACKOFF_MAX = 2.0
SHARE = 0.2  # of all requests may be repetitions
RESERVE = 10.0  # repetitions that are there from the start
SAVED_MAX = 100.0  # repetitions that can be saved up in good times

CLOSED: Final = 0
HALF_OPEN: Final = 1
OPEN: Final = 2

log = structlog.get_logger()


class Budget:
    """Repetitions as a share of requests: where everything fails, a fifth more is sent, not thrice as much."""

    __slots__ = ("_saved",)

    def __init__(self) -> None:
        self._saved = RESERVE

    def deposit(self) -> None:
        """A request was made."""
        if self._saved < SAVED_MAX:
            self._saved += SHARE

    def withdraw(self) -> bool:
        """Whether there is one repetition left; it is then spent."""
        if self._saved < 1.0:
            return False
        self._saved -= 1.0
        return True


class Retry:
    """At most `retries` repetitions of a request, within `seconds` from its start, and out of a budget."""

    def __init__(self, retries: int, seconds: float, budget: Budget, rng: random.Random) -> None:
        self._retries = retries
        self._seconds = seconds
        self.budget = budget
        self._rng = rng

    def left(self, elapsed: float) -> float:
        """Seconds of the caller's time that are left after so many; none or fewer where it is over."""
        return self._seconds - elapsed

    def wait(self, error: errors.BridgeError, repeated: int, elapsed: float) -> float | None:
        """Seconds to wait before a request is sent again; None where its error is the last word.

        Where the other side has said how long, at least so long, and not at all if that is beyond the caller's time.
        """
        if repeated >= self._retries or not is_safe(error):
            return None
        seconds = (error.retry_after or 0) + self._rng.random() * min(BACKOFF_MAX, BACKOFF * 2.0**repeated)
        if seconds >= self.left(elapsed) or not self.budget.withdraw():
            return None
        return seconds


def is_safe(error: errors.BridgeError) -> bool:
    """Whether the same request can be sent again: it was never sent, or turned away before anything was returned."""
    if isinstance(error, errors.CircuitBreakerOpen) or (isinstance(error, errors.ServerError) and error.backing_off):
        return False
    if isinstance(error, errors.UpstreamUnreachable | errors.UpstreamFault):
        return not error.may_be_billed
    return isinstance(error, errors.TooManyRequests | errors.TokenLimit)


class Breaker:
    """After some failures in a row a service is not asked for a pause; then one request tries it.

    The pause is as set and up to half of that more. A trial that comes to nothing, because its caller has left, ends
    with the next pause: whoever was admitted owes no report. `name` is for metrics and log, `service` for errors.
    """

    def __init__(
        self,
        name: str,
        service: str,
        settings: config.BreakerSettings,
        *,
        clock: clocks.Clock,
        rng: random.Random,
        metrics: metering.Metrics,
    ) -> None:
        self._name = name
        self._service = service
        self._failures_max = settings.failures
        self._pause = settings.pause_seconds
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._failures = 0
        self._until: float | None = None  # by the monotonic clock; None while closed
        self._show(CLOSED)

    def admit(self) -> None:
        """Raises CircuitBreakerOpen where the service is not to be asked."""
        if self._until is None:
            return
        if error := self.refusal():
            raise error
        self._rest()
        self._show(HALF_OPEN)
        log.info("circuit breaker half-opened", service=self._name)

    def refusal(self) -> errors.CircuitBreakerOpen | None:
        """The error of whoever would ask now."""
        wait = 0.0 if self._until is None else self._until - self._clock.monotonic()
        if wait <= 0:
            return None
        return errors.CircuitBreakerOpen(
            f"{self._service} is not asked for the moment: it failed {counted(self._failures, 'time')} in a row",
            retry_after=math.ceil(wait),
        )

    def succeeded(self) -> None:
        """The service has answered, be it to refuse the query."""
        if self._failures:
            self._failures = 0
            if self._until is not None:
                self._until = None
                self._show(CLOSED)
                log.info("circuit breaker closed", service=self._name)

    def failed(self) -> None:
        """The service itself has failed: not reached, no answer, trouble of its own."""
        if not self._failures_max:
            return
        self._failures += 1
        if self._state == OPEN or self._failures < self._failures_max:
            return  # what was under way when it opened does not hold it open
        pause = self._rest()
        self._show(OPEN)
        log.warning("circuit breaker opened", service=self._name, failures=self._failures, retry_in=round(pause, 1))

    def _rest(self) -> float:
        """Begin a cooldown; gives its seconds."""
        seconds = self._pause * (1 + self._rng.random() / 2)
        self._until = self._clock.monotonic() + seconds
        return seconds

    def _show(self, state: int) -> None:
        self._state = state
        self._metrics.circuit_breaker_state[self._name,] = state
