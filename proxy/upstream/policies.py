"""Which upstream requests are sent again, and the circuit breaker. Nothing here waits or does I/O."""

import math
import random

import structlog

from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.wording import counted
from proxy.metrics import Metrics
from proxy.upstream.classify import SERVICE

FAILURES = 10  # in a row, after which nothing is sent
COOLDOWN_SECONDS = 5.0  # until one request tries again
STATES = CLOSED, HALF_OPEN, OPEN = "closed", "half-open", "open"
NAME = "graphql"  # of the service, in log and metrics

log = structlog.get_logger()


def is_retryable(error: errors.BridgeError) -> bool:
    """Return whether the request can be sent again: it was not sent, or was refused before anything was billed."""
    if isinstance(error, errors.UpstreamUnreachable | errors.UpstreamFault | errors.TokenLimit):
        return not (error.may_be_billed or error.backing_off)
    return isinstance(error, errors.TooManyRequests)


class CircuitBreaker:
    """Circuit breaker of the GraphQL service: opens after so many `failures` in a row; half-open after the cooldown,
    for one trial request.

    The cooldown is COOLDOWN_SECONDS and up to half of that more. A trial request that reports no result, because its
    caller was cancelled, blocks nothing: the next trial follows after another cooldown.
    """

    def __init__(self, *, clock: Clock, rng: random.Random, metrics: Metrics, failures: int = FAILURES) -> None:
        self._failures_max = failures
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        metrics.circuit_breaker_openings.inc(NAME, by=0)
        self._failures = 0
        self._open_until: float | None = None  # by the monotonic clock; None while closed
        self._set_state(CLOSED)

    def admit(self) -> None:
        """Admit a request. Raises CircuitBreakerOpen during the cooldown; the first request after it is the trial."""
        if self._open_until is None:
            return
        if error := self.refusal():
            raise error
        # A cooldown for the trial, too: if it never reports, the next request after it is another trial.
        self._start_cooldown()
        self._set_state(HALF_OPEN)
        log.info("circuit breaker half-opened", service=NAME)

    def refusal(self) -> errors.CircuitBreakerOpen | None:
        """Return the error that a request would get now, None if it would be admitted."""
        wait = 0.0 if self._open_until is None else self._open_until - self._clock.monotonic()
        message = f"{SERVICE} is not asked for the moment: it failed {counted(self._failures, 'time')} in a row"
        return errors.CircuitBreakerOpen(message, retry_after=math.ceil(wait)) if wait > 0 else None

    def succeeded(self) -> None:
        """Record a response of the service, including one that refuses the request."""
        self._failures = 0
        if self._open_until is not None:
            self._open_until = None
            self._set_state(CLOSED)
            log.info("circuit breaker closed", service=NAME)

    def failed(self) -> None:
        """Record a failure of the service itself: not reachable, no response in time, or an error of its own."""
        self._failures += 1
        if self.state == OPEN or self._failures < self._failures_max:
            return  # requests that were in flight when it opened do not extend the cooldown
        cooldown = self._start_cooldown()
        self._set_state(OPEN)
        self._metrics.circuit_breaker_openings.inc(NAME)
        log.warning("circuit breaker opened", service=NAME, failures=self._failures, retry_in=round(cooldown, 1))

    def _start_cooldown(self) -> float:
        """Start a cooldown and return its seconds. The jitter keeps workers from trying at the same time."""
        seconds = COOLDOWN_SECONDS * (1 + self._rng.random() / 2)
        self._open_until = self._clock.monotonic() + seconds
        return seconds

    def _set_state(self, state: str) -> None:
        self.state = state
        self._metrics.circuit_breaker_state.set(STATES.index(state), NAME)
