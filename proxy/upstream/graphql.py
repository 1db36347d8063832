"""GraphQL client: sends an operation with an access token and returns its data or raises one of this service's errors.

A request whose token was refused is sent once more with a new token. Other retries follow policies.py; a request that
may have been billed is never retried. The client does not look at the fields of an operation.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
import msgspec
import structlog

from proxy import errors, model
from proxy.kit import clock as clocks
from proxy.telemetry import metrics as metering
from proxy.telemetry.request_ids import REQUEST_ID
from proxy.upstream import classify, http_post, policies, stalls
from proxy.upstream.auth import identity, token_cache

T = TypeVar("T")

# application/json only: Hot Chocolate chooses statuses and content type by Accept (contract graphql.md §3.3).
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
_SETTINGS_HINT = "; is upstream.token_url that of upstream.graphql_url, and does upstream.scope allow it?"
_LOGGED_ERRORS = 3
TOKEN_REFUSED = "TokenRefused"  # noqa: S105 - outcome of a request whose token was refused
RESPONSE_BYTES = 33_554_432  # limit of a response, where the configuration has none
_LOGGED_LENGTH = 200

log = structlog.get_logger()


class GraphQLClient:
    """Client of the GraphQL service at `url`, for all applications. `sleep` is replaced in tests."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        tokens: token_cache.TokenCache,
        *,
        retry: policies.RetryPolicy,
        breaker: policies.CircuitBreaker,
        metrics: metering.Metrics,
        clock: clocks.Clock,
        stall_detector: stalls.StallDetector | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        response_bytes: int = RESPONSE_BYTES,
    ) -> None:
        self._response_bytes = response_bytes
        self._session = session
        self._url = url
        self._tokens = tokens
        self._retry = retry
        self._breaker = breaker
        self._metrics = metrics
        self._clock = clock
        self._stalls = stall_detector or stalls.StallDetector(0.0, retry.budget, metrics)
        self._sleep = sleep
        self.proven = False  # whether the last complete response was a GraphQL response

    async def execute(
        self,
        operation: classify.GraphQLOperation[T],
        credentials: identity.Credentials,
        since: float | None = None,
        partial_errors: list[model.GraphQLError] | None = None,
        *,
        watches: Sequence[stalls.StallWatch[Any]] = (),
    ) -> T:
        """Send the operation and return its data.

        GraphQL errors in a response with usable data are counted and logged, and added to `partial_errors` if given, as
        for lists; the response may then have half of the bytes. `since`: start of the time limit, in the clock's
        monotonic seconds, if an earlier request of the same caller began it. `watches` get a stall of the request.

        Raises QuotaExhausted, TooManyRequests, QueryRefused, OversizedOperation, CredentialsRefused, TokenLimit,
        UpstreamUnreachable, CircuitBreakerOpen, UpstreamUnreadable or UpstreamFault.
        """
        started = self._clock.monotonic() if since is None else since
        self._retry.budget.deposit()
        retried = 0
        while True:
            try:
                return await self._send_with_token(operation, credentials, started, partial_errors, watches)
            except errors.BridgeError as error:
                wait = self._retry.delay(error, retried, self._clock.monotonic() - started)
                if wait is None:
                    raise
                self._metrics.retries.labels(operation.name, type(error).__name__).inc()
            await self._sleep(wait)
            retried += 1

    def remaining(self, since: float) -> float:
        """Return the seconds that remain of a time limit that began at `since`; 0 or less after its end."""
        return self._retry.remaining(self._clock.monotonic() - since)

    async def _send_with_token(
        self,
        operation: classify.GraphQLOperation[T],
        credentials: identity.Credentials,
        started: float,
        partial_errors: list[model.GraphQLError] | None,
        watches: Sequence[stalls.StallWatch[Any]],
    ) -> T:
        """Send with the cached token, and once more with a new one if it is refused."""
        refusal: str | None = None
        # Once more only: if a new token is refused, too, the cause is the configuration.
        for _ in range(2):
            token = await self._tokens.get(credentials, self._retry.remaining(self._clock.monotonic() - started))
            seconds_left = self._retry.remaining(self._clock.monotonic() - started)
            if seconds_left <= 0:  # a request sent now would be billed although its caller is gone
                raise errors.UpstreamUnreachable(f"{classify.SERVICE} was not asked: there was no time left")
            # Half for lists, which alone take partial errors: the old list stands while the new one is built.
            max_bytes = self._response_bytes if partial_errors is None else self._response_bytes // 2
            reply = await self._send(operation, token, seconds_left, max_bytes, watches)
            envelope = classify.decode(operation, reply)
            refusal = classify.token_refusal(reply, envelope)
            if classify.lacks_scope(envelope):
                raise await self._scope_error(operation, credentials, token)
            if refusal is None:
                data = self._data(operation, reply, envelope)
                if partial_errors is not None and envelope is not None:
                    partial_errors += envelope.errors or ()
                self._tokens.mark_accepted(credentials, token)
                return data
            # A refused token is a response all the same: the service is available.
            self._breaker.succeeded()
            self._count(operation, TOKEN_REFUSED)
            await self._tokens.invalidate(credentials, token)
        hint = _SETTINGS_HINT if refusal == classify.INVALID_TOKEN else ""
        error = errors.CredentialsRefused(
            f"{classify.SERVICE} takes no token of application {credentials.name}: {refusal}{hint}"
        )
        await self._tokens.mark_refused(credentials, token, error)
        raise error

    async def _scope_error(
        self, operation: classify.GraphQLOperation[T], credentials: identity.Credentials, token: str
    ) -> errors.CredentialsRefused:
        """Return the error for a token without the needed scope. A new token would lack it, too, so that none is
        requested until the back-off ends."""
        self._breaker.succeeded()
        self._count(operation, "ScopeRefused")
        error = errors.CredentialsRefused(
            f"{classify.SERVICE} refuses {operation.name} to application {credentials.name}: its token lacks a scope "
            f"({classify.OUT_OF_SCOPE}); {identity.SCOPE_ADVICE}"
        )
        log.warning("scope refused", application=credentials.name, operation=operation.name)
        await self._tokens.invalidate(credentials, token)
        await self._tokens.mark_refused(credentials, token, error)
        return error

    async def _send(
        self,
        operation: classify.GraphQLOperation[T],
        token: str,
        seconds_left: float,
        max_bytes: int,
        watches: Sequence[stalls.StallWatch[Any]],
    ) -> http_post.HttpResponse:
        self._breaker.admit()
        headers = {"Authorization": f"Bearer {token}", **_HEADERS}
        if request_id := REQUEST_ID.get():
            headers["X-Request-Id"] = request_id
        request = http_post.HttpRequest(
            self._url, classify.SERVICE, operation.payload, headers, True, seconds_left, max_bytes
        )
        started = self._clock.monotonic()
        active_request = self._stalls.begin(operation.name, watches)
        try:
            return await http_post.post(self._session, request, active_request)
        except errors.ServerError as error:
            # The caller came with too little time; that says nothing about the service.
            if not isinstance(error, errors.DeadlineExceeded):
                self._breaker.failed()
            self._count(operation, type(error).__name__)
            raise
        finally:
            seconds = self._clock.monotonic() - started
            self._metrics.upstream_seconds.labels(operation.name).observe(seconds)
            self._stalls.end(operation.name, seconds, active_request)

    def _data(
        self,
        operation: classify.GraphQLOperation[T],
        reply: http_post.HttpResponse,
        envelope: classify.GraphQLEnvelope[T] | None,
    ) -> T:
        self.proven = envelope is not None
        try:
            data = classify.data(reply, envelope, self._clock.now())
        except errors.BridgeError as error:
            self._report_to_breaker(reply, error)
            self._count(operation, type(error).__name__)
            raise
        self._breaker.succeeded()
        self._count(operation, "ok")
        if envelope is not None and envelope.errors:
            self._metrics.upstream_errors.labels(operation.name).inc(len(envelope.errors))
            messages = [classify.shortened(each.message, _LOGGED_LENGTH) for each in envelope.errors[:_LOGGED_ERRORS]]
            log.warning("partial data received", operation=operation.name, errors=messages)
        return data

    def _report_to_breaker(self, reply: http_post.HttpResponse, error: errors.BridgeError) -> None:
        """Record a success for a service that refuses the request: it is available."""
        if classify.is_failure(reply, error):
            self._breaker.failed()
        else:
            self._breaker.succeeded()

    def _count(self, operation: classify.GraphQLOperation[T], outcome: str) -> None:
        self._metrics.upstream_requests.labels(operation.name, outcome).inc()


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
