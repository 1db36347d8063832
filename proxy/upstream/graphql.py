"""One GraphQL operation: a token, a request, and data or one of the program's errors.

Used by the gateway. It sends what planning made and looks at no field of it. A request that may have been billed is not
repeated; one that was turned away for its token is, once, with a fresh token; what else can be repeated, and how
often, policies.py says.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from proxy import errors, model
from proxy.kit import clock as clocks
from proxy.telemetry import metrics as metering
from proxy.telemetry.request_ids import REQUEST_ID
from proxy.upstream import classify, http_post, identity, policies, stalls, tokens

T = TypeVar("T")

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
_INVALID = "; is upstream.token_url that of upstream.graphql_url, and does upstream.scope allow it?"
_LOGGED_ERRORS = 3
RESPONSE_BYTES = 33_554_432  # that an answer may have, where the configuration does not say
_LOGGED_LENGTH = 200

log = structlog.get_logger()


class GraphQLClient:
    """The GraphQL service at `url`, for all applications. `sleep` is asyncio's, handed in for tests."""

    def __init__(
        self,
        session: http_post.HttpClient,
        url: str,
        store: tokens.Tokens,
        *,
        retry: policies.Retry,
        breaker: policies.Breaker,
        metrics: metering.Metrics,
        clock: clocks.Clock,
        watching: stalls.Stalls | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        response_bytes: int = RESPONSE_BYTES,
    ) -> None:
        self._response_bytes = response_bytes
        self._session = session
        self._url = url
        self._tokens = store
        self._retry = retry
        self._breaker = breaker
        self._metrics = metrics
        self._clock = clock
        self._stalls = watching or stalls.Stalls(0.0, retry.budget, metrics)
        self._sleep = sleep
        self.proven = False  # whether the last whole answer was one of GraphQL; not before there is one

    async def ask(
        self,
        operation: classify.Operation[T],
        credentials: tokens.Credentials,
        since: float | None = None,
        beside: list[model.GraphQLError] | None = None,
    ) -> T:
        """The operation's data. Errors beside usable data are counted and logged, and added to `beside` where that is
        given: for lists, whose answer may have half of the bytes.

        Its time began at `since`, in the clock's monotonic seconds: with this call, or with an earlier one whose answer
        it completes.

        Raises QuotaExhausted, TooManyRequests, QueryRefused, CredentialsRefused, TokenLimit, UpstreamUnreachable,
        CircuitBreakerOpen, UpstreamUnreadable or UpstreamFault.
        """
        started = self._clock.monotonic() if since is None else since
        self._retry.budget.deposit()
        repeated = 0
        while True:
            try:
                return await self._once(operation, credentials, started, beside)
            except errors.BridgeError as error:
                wait = self._retry.wait(error, repeated, self._clock.monotonic() - started)
                if wait is None:
                    raise
                self._metrics.retries[operation.name, type(error).__name__] += 1
            await self._sleep(wait)
            repeated += 1

    async def _once(
        self,
        operation: classify.Operation[T],
        credentials: tokens.Credentials,
        started: float,
        beside: list[model.GraphQLError] | None,
    ) -> T:
        """With a token that the service takes: the one that is kept, or a fresh one. Whatever is sent has what is left
        of the time since `started`."""
        refusal: str | None = None
        for _ in range(2):
            token = await self._tokens.get(credentials, self._retry.left(self._clock.monotonic() - started))
            left = self._retry.left(self._clock.monotonic() - started)
            if left <= 0:  # sent all the same it would be billed, and nobody there to have the answer
                raise errors.UpstreamUnreachable(f"{classify.SERVICE} was not asked: there was no time left")
            most = self._response_bytes if beside is None else self._response_bytes // 2
            reply = await self._send(operation, token, left, most)
            envelope = classify.read(operation, reply)
            refusal = classify.token_refusal(reply, envelope)
            if classify.lacks_scope(envelope):
                raise await self._out_of_scope(operation, credentials, token)
            if refusal is None:
                data = self._data(operation, reply, envelope)
                if beside is not None and envelope is not None:
                    beside += envelope.errors or ()
                self._tokens.taken(credentials, token)
                return data
            self._breaker.succeeded()
            self._count(operation, "TokenRefused")
            await self._tokens.rejected(credentials, token)
        hint = _INVALID if refusal == classify.INVALID_TOKEN else ""
        error = errors.CredentialsRefused(
            f"{classify.SERVICE} takes no token of application {credentials.name}: {refusal}{hint}"
        )
        await self._tokens.refused(credentials, token, error)
        raise error

    async def _out_of_scope(
        self, operation: classify.Operation[T], credentials: tokens.Credentials, token: str
    ) -> errors.CredentialsRefused:
        """The error of an application whose token lacks a scope. Another token would lack it, too: none is asked for
        until the pause after a refusal is over."""
        self._breaker.succeeded()
        self._count(operation, "ScopeRefused")
        error = errors.CredentialsRefused(
            f"{classify.SERVICE} refuses {operation.name} to application {credentials.name}: its token lacks a scope "
            f"({classify.OUT_OF_SCOPE}); {identity.SCOPE_ADVICE}"
        )
        log.warning("scope refused", application=credentials.name, operation=operation.name)
        await self._tokens.rejected(credentials, token)
        await self._tokens.refused(credentials, token, error)
        return error

    async def _send(
        self, operation: classify.Operation[T], token: str, left: float, most: int
    ) -> http_post.HttpResponse:
        self._breaker.admit()
        headers = {"Authorization": f"Bearer {token}", **_HEADERS}
        if request_id := REQUEST_ID.get():
            headers["X-Request-Id"] = request_id
        request = http_post.HttpRequest(self._url, classify.SERVICE, operation.payload, headers, True, left, most)
        started = self._clock.monotonic()
        sending = self._stalls.begin(operation.name)
        try:
            return await http_post.post(self._session, request, sending)
        except errors.ServerError as error:
            if not isinstance(error, errors.DeadlineExceeded):
                self._breaker.failed()
            self._count(operation, type(error).__name__)
            raise
        finally:
            seconds = self._clock.monotonic() - started
            self._metrics.upstream_seconds.observe(operation.name, seconds)
            self._metrics.stage_seconds.observe("upstream", seconds)
            self._stalls.end(operation.name, seconds, sending)

    def _data(
        self, operation: classify.Operation[T], reply: http_post.HttpResponse, envelope: classify.Envelope[T] | None
    ) -> T:
        self.proven = envelope is not None
        try:
            data = classify.data(reply, envelope, self._clock.now())
        except errors.BridgeError as error:
            self._judge(reply, error)
            self._count(operation, type(error).__name__)
            raise
        self._breaker.succeeded()
        self._count(operation, "ok")
        if envelope is not None and envelope.errors:
            self._metrics.upstream_errors[operation.name,] += len(envelope.errors)
            messages = [error.message[:_LOGGED_LENGTH] for error in envelope.errors[:_LOGGED_ERRORS]]
            log.warning("partial data received", operation=operation.name, errors=messages)
        return data

    def _judge(self, reply: http_post.HttpResponse, error: errors.BridgeError) -> None:
        """Tell the breaker: a service that refuses is there."""
        if classify.is_failure(reply, error):
            self._breaker.failed()
        else:
            self._breaker.succeeded()

    def _count(self, operation: classify.Operation[T], outcome: str) -> None:
        self._metrics.upstream_requests[operation.name, outcome] += 1
