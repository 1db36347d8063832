"""One GraphQL operation: a token, one request, and data or one of the program's errors.

Used by the gateway. It sends what planning made and looks at no field of it. A request that may have been
billed is not repeated; one that was turned away for its token is, once, with a fresh token.
"""

from typing import TypeVar

import aiohttp
import structlog

from proxy import errors
from proxy.kit import clock as clocks
from proxy.telemetry import metrics as metering
from proxy.telemetry.request_ids import REQUEST_ID
from proxy.upstream import classify, tokens, wire

T = TypeVar("T")

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
_LOGGED_ERRORS = 3
_LOGGED_LENGTH = 200

log = structlog.get_logger()


class GraphQLClient:
    """The GraphQL service at `url`, for all applications."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        store: tokens.Tokens,
        metrics: metering.Metrics,
        clock: clocks.Clock,
    ) -> None:
        self._session = session
        self._url = url
        self._tokens = store
        self._metrics = metrics
        self._clock = clock

    async def ask(self, operation: classify.Operation[T], credentials: tokens.Credentials) -> T:
        """The operation's data. Errors beside usable data are counted and logged.

        Raises PartLimitUsedUp, TooManyRequests, QueryRefused, CredentialsRefused, TokenLimit,
        UpstreamUnreachable, UpstreamUnreadable or UpstreamFault.
        """
        for _ in range(2):
            token = await self._tokens.get(credentials)
            reply = await self._send(operation, token)
            envelope = classify.read(operation, reply)
            if not classify.token_refused(reply, envelope):
                return self._data(operation, reply, envelope)
            self._count(operation, "TokenRefused")
            self._tokens.rejected(credentials, token)
        error = errors.CredentialsRefused(f"{classify.SERVICE} takes no token of application {credentials.name}")
        self._tokens.refused(credentials, error)
        raise error

    async def _send(self, operation: classify.Operation[T], token: str) -> wire.Reply:
        headers = {"Authorization": f"Bearer {token}", **_HEADERS}
        if request_id := REQUEST_ID.get():
            headers["X-Request-Id"] = request_id
        request = wire.Request(self._url, classify.SERVICE, operation.payload, headers)
        started = self._clock.monotonic()
        try:
            return await wire.post(self._session, request)
        except errors.ServerError as error:
            self._count(operation, type(error).__name__)
            raise
        finally:
            seconds = self._clock.monotonic() - started
            self._metrics.upstream_seconds.observe(operation.name, seconds)
            self._metrics.stages.observe("upstream", seconds)

    def _data(self, operation: classify.Operation[T], reply: wire.Reply, envelope: classify.Envelope[T] | None) -> T:
        try:
            data = classify.data(reply, envelope, self._clock.now())
        except errors.BridgeError as error:
            self._count(operation, type(error).__name__)
            raise
        self._count(operation, "ok")
        if envelope is not None and envelope.errors:
            self._metrics.upstream_errors[operation.name,] += len(envelope.errors)
            messages = [error.message[:_LOGGED_LENGTH] for error in envelope.errors[:_LOGGED_ERRORS]]
            log.warning("data with errors", operation=operation.name, errors=messages)
        return data

    def _count(self, operation: classify.Operation[T], outcome: str) -> None:
        self._metrics.upstream_requests[operation.name, outcome] += 1
