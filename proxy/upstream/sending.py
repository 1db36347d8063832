"""Sending of GraphQL operations: with an access token, one request each, whose data is returned, or an error raised.

An operation whose token was refused is sent once more with a new token; one that surely was not billed, such as where
no connection could be made, once more after a moment. What may have been billed is never sent again. After so many
failures in a row the circuit breaker lets nothing be sent for a while. The fields of an operation are not looked at.
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import structlog

from proxy import errors
from proxy.kit import counted
from proxy.kit.clock import Clock
from proxy.log import REQUEST_ID
from proxy.metrics import Metrics
from proxy.model import EncodedOperation
from proxy.upstream import classify, http_post
from proxy.upstream.tokens import Credentials, Tokens

FAILURES = 10  # in a row, after which nothing is sent
COOLDOWN_SECONDS = 5.0  # between two requests that try again, and up to half of that more
CLOSED, OPEN = "closed", "open"
NAME = "graphql"  # of the service, in log and metrics
WAIT_SECONDS = 0.1  # at most, before an operation is sent once more; and its Retry-After

_LOGGED_ERRORS = 3
_LOGGED_LENGTH = 200

Send = Callable[[EncodedOperation, Credentials, float], Awaitable[Any]]
"""Sends an operation, within so many seconds, and returns its data, or raises an error of this service."""

log = structlog.get_logger()


def is_retryable(error: errors.BridgeError) -> bool:
    """Return whether the request can be sent again: it was not sent, or was refused before anything was billed."""
    if isinstance(error, errors.UpstreamUnreachable | errors.UpstreamFault | errors.TokenLimit):
        return not (error.may_be_billed or error.backing_off)
    return isinstance(error, errors.TooManyRequests)


class CircuitBreaker:
    """Circuit breaker of the GraphQL service: opens after so many `failures` in a row. While it is open, one request is
    admitted after each cooldown; the first success closes it."""

    def __init__(self, *, clock: Clock, rng: random.Random, metrics: Metrics, failures: int = FAILURES) -> None:
        self._clock, self._rng, self._metrics, self._failures_max = clock, rng, metrics, failures
        self.state, self.failures = CLOSED, 0  # in a row
        self._next = 0.0  # when the next request is admitted, by the monotonic clock
        metrics.circuit_breaker_state.set(0, NAME)

    def admit(self) -> None:
        """Admit a request. Raises CircuitBreakerOpen during the cooldown; the first request after it begins another."""
        if error := self.refusal():
            raise error
        # The jitter keeps workers from trying at the same time.
        self._next = self._clock.monotonic() + COOLDOWN_SECONDS * (1 + self._rng.random() / 2)

    def refusal(self) -> errors.CircuitBreakerOpen | None:
        """Return the error that a request would get now, None if it would be admitted."""
        wait = self._next - self._clock.monotonic()
        if self.state == CLOSED or wait <= 0:
            return None
        reason = f"it failed {counted(self.failures, 'time')} in a row"
        message = f"{classify.SERVICE} is not asked for the moment: {reason}"
        return errors.CircuitBreakerOpen(message, retry_after=math.ceil(wait))

    def succeeded(self) -> None:
        """Record a response of the service, including one that refuses the request."""
        if self.state == OPEN:
            self.state = CLOSED
            self._metrics.circuit_breaker_state.set(0, NAME)
            log.info("circuit breaker closed", service=NAME)
        self.failures = 0

    def failed(self) -> None:
        """Record a failure of the service itself: not reachable, no response in time, or an error of its own."""
        self.failures += 1
        if self.failures == self._failures_max:
            self.state, seconds = OPEN, COOLDOWN_SECONDS * (1 + self._rng.random() / 2)
            self._next = self._clock.monotonic() + seconds
            self._metrics.circuit_breaker_state.set(1, NAME)
            log.warning("circuit breaker opened", service=NAME, failures=self.failures, retry_in=round(seconds, 1))


class Sender:
    """Sends operations to the GraphQL service at `url`, for all applications. `proven`: the last complete response was
    a GraphQL response. `sleep` is replaced in tests."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        tokens: Tokens,
        *,
        breaker: CircuitBreaker,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session, self._tokens, self._breaker = session, tokens, breaker
        self._service = http_post.Service(classify.SERVICE, url, http_post.LONGEST, bills=True)
        self._clock, self._rng, self._metrics, self._sleep = clock, rng, metrics, sleep
        self.proven = False

    async def send(self, operation: EncodedOperation, credentials: Credentials, seconds: float) -> Any:
        """Send the operation, within so many seconds, and return its data; errors beside data are counted and logged.

        Raises QuotaExhausted, TooManyRequests, QueryRefused, OversizedOperation, CredentialsRefused, TokenLimit,
        UpstreamUnreachable, CircuitBreakerOpen, DeadlineExceeded, UpstreamUnreadable or UpstreamFault.
        """
        until = self._clock.monotonic() + seconds
        is_renewed = is_repeated = False
        known = self._tokens.known[credentials.name]
        while True:
            try:
                token = await self._tokens.get(credentials, until - self._clock.monotonic())
                data = await self._request(operation, token, until - self._clock.monotonic())
            except errors.CredentialsRefused as error:
                code = error.code
                if not code:  # there is no token
                    raise
            except errors.BridgeError as error:
                # Jitter: clients that failed together do not come back together.
                wait = (error.retry_after or 0) + self._rng.random() * WAIT_SECONDS
                if is_repeated or not is_retryable(error) or self._clock.monotonic() + wait >= until:
                    raise
                self._metrics.retries.inc(operation.name, type(error).__name__)
                is_repeated = True
                await self._sleep(wait)
                continue
            else:
                known.accepted, known.refusal = token, None
                return data
            if is_renewed or code == classify.OUT_OF_SCOPE:  # a new token would lack it, too
                break
            await self._tokens.invalidate(credentials, token)
            is_renewed = True
        # The cause is the configuration.
        if code == classify.OUT_OF_SCOPE:
            lacking = f"its token lacks a scope ({code}); {classify.SCOPE_ADVICE}"
            message = f"{classify.SERVICE} refuses {operation.name} to application {credentials.name}: {lacking}"
        else:
            hint = "; is upstream.token_url that of upstream.graphql_url?" if code == classify.INVALID_TOKEN else ""
            message = f"{classify.SERVICE} takes no token of application {credentials.name}: {code}{hint}"
        refusal = errors.CredentialsRefused(message)
        await self._tokens.invalidate(credentials, token, refusal)
        raise refusal

    async def pass_on(self, body: bytes, authorization: str) -> http_post.HttpResponse:
        """Send a request of a caller as it is, with the caller's own access token, unmetered. Raises BridgeErrors."""
        headers = http_post.JSON | {"Authorization": authorization}
        return await http_post.post(self._session, self._service._replace(bills=False), body, headers)

    async def _request(self, operation: EncodedOperation, token: str, seconds: float) -> Any:
        """Send once; tell breaker and metrics what came."""
        if seconds <= 0:  # a request sent now would be billed although nobody waits for it
            raise errors.DeadlineExceeded(f"{classify.SERVICE} was not asked: there was no time left")
        if self._breaker.failures:
            self._breaker.admit()
        headers = http_post.JSON | {"Authorization": f"Bearer {token}"}
        if request_id := REQUEST_ID.get():
            headers["X-Request-Id"] = request_id
        started, reply, outcome = self._clock.monotonic(), None, "cancelled"
        try:
            reply = await http_post.post(self._session, self._service, operation.payload, headers, seconds)
            envelope, failure = classify.read(operation, reply, self._clock.now())
            self.proven = envelope is not None
            if failure is not None:
                raise failure
            outcome = "ok"
        except errors.BridgeError as error:
            outcome, failure = type(error).__name__, None  # without a cycle of the error and this frame
            if reply is not None and not classify.is_failure(reply, error):
                self._breaker.succeeded()  # a service that refuses the request, or its token, is available
            else:
                self._breaker.failed()
            raise
        finally:
            self._metrics.upstream_seconds.observe(operation.name, self._clock.monotonic() - started)
            self._metrics.upstream_requests.inc(operation.name, outcome)
        if self._breaker.failures:
            self._breaker.succeeded()
        assert envelope is not None  # noqa: S101 - without an error it is GraphQL
        if envelope.errors:
            self._metrics.upstream_errors.inc(operation.name, by=len(envelope.errors))
            messages = [classify.shortened(each.message, _LOGGED_LENGTH) for each in envelope.errors[:_LOGGED_ERRORS]]
            log.warning("partial data received", operation=operation.name, errors=messages)
        return envelope.data
