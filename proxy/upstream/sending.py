"""Sending of GraphQL operations: with an access token, one request each, whose data is returned, or an error raised.

An operation whose token was refused is sent once more with a new token; one that surely was not billed, such as where
no connection could be made, once more after a moment. What may have been billed is never sent again. The fields of an
operation are not looked at.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import aiohttp
import msgspec
import structlog

from proxy import errors, model
from proxy.kit.clock import Clock
from proxy.log import REQUEST_ID
from proxy.metrics import Metrics
from proxy.upstream import classify, http_post, identity, policies
from proxy.upstream.tokens import Tokens

T = TypeVar("T")

WAIT_SECONDS = 0.1  # at most, before an operation is sent once more; and its Retry-After

_SETTINGS_HINT = "; is upstream.token_url that of upstream.graphql_url?"
_LOGGED_ERRORS = 3
_LOGGED_LENGTH = 200

log = structlog.get_logger()


@dataclass(slots=True)
class Sender:
    """Sends operations to the GraphQL service at `url`, for all applications. `proven`: the last complete response was
    a GraphQL response. `sleep` is replaced in tests."""

    session: aiohttp.ClientSession
    url: str
    tokens: Tokens
    breaker: policies.CircuitBreaker
    clock: Clock
    rng: random.Random
    metrics: Metrics
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    proven: bool = field(default=False, init=False)

    async def send(
        self, operation: classify.GraphQLOperation[T], credentials: identity.Credentials, seconds: float
    ) -> T:
        """Send the operation, within so many seconds, and return its data; errors beside data are counted and logged.

        Raises QuotaExhausted, TooManyRequests, QueryRefused, OversizedOperation, CredentialsRefused, TokenLimit,
        UpstreamUnreachable, CircuitBreakerOpen, DeadlineExceeded, UpstreamUnreadable or UpstreamFault.
        """
        until = self.clock.monotonic() + seconds
        try:
            return await self._send(operation, credentials, until)
        except errors.BridgeError as error:
            # Jitter: clients that failed together do not come back together.
            wait = (error.retry_after or 0) + self.rng.random() * WAIT_SECONDS
            if not policies.is_retryable(error) or self.clock.monotonic() + wait >= until:
                raise
            self.metrics.retries.labels(operation.name, type(error).__name__).inc()
        await self.sleep(wait)
        return await self._send(operation, credentials, until)

    async def _send(
        self, operation: classify.GraphQLOperation[T], credentials: identity.Credentials, until: float
    ) -> T:
        """Send with the cached token, and once more with a new one if it is refused."""
        # Once more only: if a new token is refused, too, the cause is the configuration.
        for _ in range(2):
            token = await self.tokens.get(credentials, until - self.clock.monotonic())
            reply = await self._post(operation, token, until - self.clock.monotonic())
            envelope = classify.decode(operation, reply)
            lacks_scope, refusal = classify.lacks_scope(envelope), classify.token_refusal(reply, envelope)
            if not lacks_scope and refusal is None:
                data = self._data(operation, reply, envelope)
                self.tokens.mark_accepted(credentials, token)
                return data
            # A refused token is a response all the same: the service is available.
            self.breaker.succeeded()
            outcome = "ScopeRefused" if lacks_scope else "TokenRefused"
            self.metrics.upstream_requests.labels(operation.name, outcome).inc()
            await self.tokens.invalidate(credentials, token)
            if lacks_scope:  # as a new token would
                break
        if lacks_scope:
            log.warning("scope refused", application=credentials.name, operation=operation.name)
            message = (
                f"{classify.SERVICE} refuses {operation.name} to application {credentials.name}: its token lacks a "
                f"scope ({classify.OUT_OF_SCOPE}); {identity.SCOPE_ADVICE}"
            )
        else:
            hint = _SETTINGS_HINT if refusal == classify.INVALID_TOKEN else ""
            message = f"{classify.SERVICE} takes no token of application {credentials.name}: {refusal}{hint}"
        error = errors.CredentialsRefused(message)
        await self.tokens.mark_refused(credentials, token, error)
        raise error

    async def _post(
        self, operation: classify.GraphQLOperation[T], token: str, seconds: float
    ) -> http_post.HttpResponse:
        if seconds <= 0:  # a request sent now would be billed although nobody waits for it
            raise errors.DeadlineExceeded(f"{classify.SERVICE} was not asked: there was no time left")
        self.breaker.admit()
        headers = http_post.JSON | {"Authorization": f"Bearer {token}"}
        if request_id := REQUEST_ID.get():
            headers["X-Request-Id"] = request_id
        request = http_post.HttpRequest(
            self.url, classify.SERVICE, operation.payload, headers, True, seconds, http_post.LONGEST
        )
        started = self.clock.monotonic()
        self.metrics.upstream_in_flight.inc()
        try:
            return await http_post.post(self.session, request)
        except errors.ServerError as error:
            # The caller came with too little time; that says nothing about the service.
            if not isinstance(error, errors.DeadlineExceeded):
                self.breaker.failed()
            self.metrics.upstream_requests.labels(operation.name, type(error).__name__).inc()
            raise
        finally:
            self.metrics.upstream_in_flight.inc(-1)
            self.metrics.upstream_seconds.labels(operation.name).observe(self.clock.monotonic() - started)

    def _data(
        self,
        operation: classify.GraphQLOperation[T],
        reply: http_post.HttpResponse,
        envelope: classify.GraphQLEnvelope[T] | None,
    ) -> T:
        """Return the data of a response whose token was accepted; tell breaker and metrics what came."""
        self.proven = envelope is not None
        outcome, is_failure = "ok", False
        try:
            data = classify.data(reply, envelope, self.clock.now())
        except errors.BridgeError as error:
            # A service that refuses the request is available.
            outcome, is_failure = type(error).__name__, classify.is_failure(reply, error)
            raise
        finally:
            self.breaker.failed() if is_failure else self.breaker.succeeded()
            self.metrics.upstream_requests.labels(operation.name, outcome).inc()
        if envelope is not None and envelope.errors:
            self.metrics.upstream_errors.labels(operation.name).inc(len(envelope.errors))
            messages = [classify.shortened(each.message, _LOGGED_LENGTH) for each in envelope.errors[:_LOGGED_ERRORS]]
            log.warning("partial data received", operation=operation.name, errors=messages)
        return data


class _ProbeEnvelope(msgspec.Struct, frozen=True):
    data: dict[str, msgspec.Raw] | None = None
    errors: list[model.GraphQLError] | None = None


@dataclass(frozen=True, slots=True)
class _Probe:
    name: str = "probe"
    payload: bytes = msgspec.json.encode({"operationName": "probe", "query": "query probe { supCategories { id } }"})
    decode: Callable[[bytes], _ProbeEnvelope] = msgspec.json.Decoder(_ProbeEnvelope).decode


# Shows whether a token is accepted, at no parts. Sent by the readiness check after a refused token: a load balancer
# sends no requests to a service that is not ready, so that no other request would show that tokens are accepted again.
PROBE = _Probe()
