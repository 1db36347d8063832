"""/healthz, /readyz and /metrics: liveness, readiness and metrics for operators. They need no API key and show none.

The operators' port has all of them, the public port `/healthz`, and the others with `listen.metrics: true`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec
from aiohttp import web

from proxy import errors
from proxy.gateway.applications import Applications
from proxy.kit.clock import Clock
from proxy.stores.protocols import Store
from proxy.upstream import graphql
from proxy.upstream.auth.identity import Credentials
from proxy.upstream.services import UpstreamServices

PATHS = frozenset(("/healthz", "/readyz", "/metrics"))
MOVED = "/readyz and /metrics are on the operators' port, admin.port; with `listen.metrics: true` here, too"
CHECK_SECONDS = 5.0  # after which a check has failed
PROBE_SECONDS = 10.0  # between two probes of a GraphQL service that has not responded with GraphQL

FailureReason = Callable[[], Awaitable[str | None]]  # None: the check passes


class ReadinessCheck(NamedTuple):
    """A condition for serving requests."""

    name: str
    failure: FailureReason


class FailedCheck(msgspec.Struct, frozen=True):
    """Why the service is not ready."""

    check: str
    reason: str


class Monitored(Protocol):
    """Service whose readiness and metrics are shown. A reload replaces `checks`."""

    checks: Sequence[ReadinessCheck]
    metrics_text: Callable[[], bytes]


def add_health(app: web.Application) -> None:
    """Register `/healthz`."""

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    app.router.add_get("/healthz", health)


def add_monitoring(app: web.Application, service: Monitored) -> None:
    """Register `/readyz`, a 503 with all reasons while a check fails, and `/metrics`."""

    async def readiness(_: web.Request) -> web.Response:
        if reasons := await failed_checks(service.checks):
            return web.json_response(
                {"status": "not ready", "reasons": [msgspec.to_builtins(each) for each in reasons]}, status=503
            )
        return web.json_response({"status": "ready"})

    async def metrics(_: web.Request) -> web.Response:
        # The version of the text format: Prometheus chooses its parser by it.
        return web.Response(
            body=service.metrics_text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    app.router.add_get("/readyz", readiness)
    app.router.add_get("/metrics", metrics)


def readiness_checks(
    applications: Applications, store: Store, services: UpstreamServices, clock: Clock
) -> list[ReadinessCheck]:
    """Check the store, the GraphQL service, and the access token of every application."""
    credentials = [application.credentials for application in applications.applications.values()]
    return [
        ReadinessCheck("store", _failure_of(store.check_writable)),
        ReadinessCheck("graphql", _GraphQLProbe(services, credentials, clock).failure),
        *(ReadinessCheck(f"token {owner.name}", _token_check(services, owner)) for owner in credentials),
    ]


async def failed_checks(checks: Sequence[ReadinessCheck]) -> list[FailedCheck]:
    failures = await asyncio.gather(*map(run, checks))
    return [
        FailedCheck(check.name, failure) for check, failure in zip(checks, failures, strict=True) if failure is not None
    ]


async def run(check: ReadinessCheck) -> str | None:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check.failure()
    except TimeoutError:
        return f"no result after {CHECK_SECONDS:.0f} seconds"


class _GraphQLProbe:
    """Check that a GraphQL service responds at the configured address.

    Sends an operation that costs no parts until any operation, this one or a client's, gets a GraphQL response, and
    again after a response that was not GraphQL. The check fails, too, while the circuit breaker is open.
    """

    def __init__(self, services: UpstreamServices, credentials: Sequence[Credentials], clock: Clock) -> None:
        self._services = services
        self._credentials = credentials
        self._clock = clock
        self._next = 0.0  # by the monotonic clock
        self._reason: str | None = None
        self._probing = asyncio.Lock()

    async def failure(self) -> str | None:
        """Return why no operation can be sent; None if one can, or if a token is missing, which is a check of its
        own."""
        if error := self._services.breakers["graphql"].refusal():
            return error.message
        # Balancers check often: one probe at a time, and the others get its result.
        async with self._probing:
            if self._services.client.proven:
                self._reason = None
            elif self._clock.monotonic() >= self._next and (usable := await self._with_token()) is not None:
                self._next = self._clock.monotonic() + PROBE_SECONDS
                # Stands if the probe is cancelled by the time limit of the check.
                self._reason = "the GraphQL service did not respond to the last probe"
                self._reason = await self._probe(usable)
            return self._reason

    async def _with_token(self) -> Credentials | None:
        """Return the first application with a token that the service has not refused."""
        for credentials in self._credentials:
            try:
                await self._services.tokens.get(credentials)
            except errors.ServerError:
                continue
            if self._services.tokens.refusal(credentials) is None:
                return credentials
        return None

    async def _probe(self, credentials: Credentials) -> str | None:
        try:
            await self._services.client.execute(graphql.PROBE, credentials)
        except errors.CredentialsRefused:  # the token's own check reports it
            return None
        except errors.ServerError as error:
            return None if self._services.client.proven else error.message
        except errors.ClientError:  # a rate limit: the service is there
            return None
        return None


def _token_check(services: UpstreamServices, credentials: Credentials) -> FailureReason:
    """Check that there is a token, and that it works if the previous one was refused.

    One check at a time tries it; after a refusal the token cache's back-off delays the next.
    """
    trying = asyncio.Lock()
    no_token = _failure_of(lambda: services.tokens.get(credentials))

    async def failure() -> str | None:
        async with trying:
            reason = await no_token()
            refusal = services.tokens.refusal(credentials)
            if reason is not None or refusal is None:
                return reason
            try:
                await services.client.execute(graphql.PROBE, credentials)
            except errors.BridgeError:
                return refusal.message
            return None

    return failure


def _failure_of(attempt: Callable[[], Awaitable[object]]) -> FailureReason:
    """Check that runs `attempt`; the reason is the message of its ServerError."""

    async def failure() -> str | None:
        try:
            await attempt()
        except errors.ServerError as error:
            return error.message
        return None

    return failure
