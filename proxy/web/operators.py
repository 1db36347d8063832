"""The operators' port: `/status`, the state of the service as JSON, beside liveness, readiness and metrics.

What comes from the store is of all workers and machines: usage, clients, unknown API keys and failures. Readiness,
circuit breakers and tokens are those of the worker that responds. `/healthz`, `/readyz` and `/metrics` need no token
and show no API key; the public port has `/healthz`, and the others with `listen.metrics: true`.
"""

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from aiohttp import hdrs, web

import proxy
from proxy import errors
from proxy.config import secret
from proxy.config.secret import FINGERPRINT
from proxy.gateway.core import Gateway, StoredState, UsageRow
from proxy.kit.wording import rfc3339
from proxy.telemetry.seen import FailureDetail
from proxy.web import routing

PATHS = frozenset(("/healthz", "/readyz", "/metrics"))
MOVED = "/readyz and /metrics are on the operators' port, admin.port; with `listen.metrics: true` here, too"
CHECK_SECONDS = 5.0  # after which a check of readiness has failed
CLIENTS_MAX, CLIENT_DAYS = 50, 30  # that called last, in the last days
# The version of the text format: Prometheus chooses its parser by it.
METRICS_FORMAT = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
Check = Callable[[], Awaitable[None]]  # raises the BridgeError for which the service is not ready

_decode_detail = msgspec.json.Decoder(FailureDetail).decode


class FailedCheck(msgspec.Struct, frozen=True):
    """Why the service is not ready."""

    check: str
    reason: str


class Token(msgspec.Struct, frozen=True):
    """Access token of an application: its age, null before the first; and why the upstream refuses it."""

    application: str
    age_seconds: float | None
    refusal: str | None


class ClientSeen(msgspec.Struct, frozen=True):
    """Last request of an API key to one endpoint from one program on one day, with what it lost; both names are empty
    without a valid API key."""

    application: str
    key: str
    endpoint: str
    user_agent: str
    unsupported: str
    last_seen: str


class UnknownApiKey(msgspec.Struct, frozen=True):
    """API key that programs send and no application has, by the first hex digits of its SHA-256; `address` and
    `user_agent` are those of its last request."""

    fingerprint: str
    address: str
    user_agent: str
    last_seen: str
    requests: int


class Failure(FailureDetail, frozen=True):
    """Request whose response was an error, and when; application and key are empty without a valid API key."""

    at: str
    route: str
    application: str
    key: str


class Stored(msgspec.Struct, frozen=True):
    """What the store has: usage by application and API key, the clients that called last, unknown API keys, the last
    failures."""

    usage: list[UsageRow] = []
    clients: list[ClientSeen] = []
    unknown_keys: list[UnknownApiKey] = []
    failures: list[Failure] = []


class Status(Stored, frozen=True, kw_only=True):
    """State of the service. Times are RFC 3339 in UTC; `store_failure` says why nothing is known from the store."""

    ready: bool
    reasons: list[FailedCheck]
    version: str
    pid: int
    uptime_seconds: float
    breakers: dict[str, str]
    tokens: list[Token]
    store_failure: str | None


class ServiceState(NamedTuple):
    """What operators are shown: the gateway of a configuration, its conditions of readiness, and when this process
    started."""

    gateway: Gateway
    checks: Mapping[str, Check]
    started: float


def create(service: ServiceState, host: str) -> routing.Handler:
    """Return the handler of the operators' port, which listens on `host`."""

    async def status(request: web.BaseRequest) -> web.Response:
        _authenticate(request, service, host)
        return web.Response(body=msgspec.json.encode(await read(service)), content_type="application/json")

    routes = routing.Routes()
    add_monitoring(routes, service, everything=True)
    routes.add("/status", status, *routing.READ)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        try:
            route = routes.find(request)
            if route is None:
                raise errors.NotFound("there is no such path on the operators' port")
            return await route.handler(request.method)(request)
        except errors.BridgeError as error:
            headers = {hdrs.WWW_AUTHENTICATE: "Bearer"} if error.status == 401 else None
            return web.json_response({"message": error.message}, status=error.status, headers=headers)

    return handle


def add_monitoring(routes: routing.Routes, service: ServiceState, *, everything: bool) -> None:
    """Register `/healthz`; with `everything` also `/readyz`, a 503 with all reasons while a check fails, and
    `/metrics`."""

    async def health(_: web.BaseRequest) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readiness(_: web.BaseRequest) -> web.Response:
        if reasons := await failed_checks(service.checks):
            failed = {"status": "not ready", "reasons": msgspec.to_builtins(reasons)}
            return web.json_response(failed, status=503)
        return web.json_response({"status": "ready"})

    async def metrics(_: web.BaseRequest) -> web.Response:
        return web.Response(body=service.gateway.metrics.text(), headers=METRICS_FORMAT)

    routes.add("/healthz", health, *routing.READ)
    if everything:
        routes.add("/readyz", readiness, *routing.READ)
        routes.add("/metrics", metrics, *routing.READ)


async def failed_checks(checks: Mapping[str, Check]) -> list[FailedCheck]:
    async def failure(check: Check) -> str | None:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await check()
        except TimeoutError:
            return f"no result after {CHECK_SECONDS:.0f} seconds"
        except errors.BridgeError as error:
            return error.message
        return None

    failures = await asyncio.gather(*map(failure, checks.values()))
    return [FailedCheck(name, each) for name, each in zip(checks, failures, strict=True) if each is not None]


async def read(service: ServiceState) -> Status:
    gateway, stored, store_failure = service.gateway, Stored(), None
    reasons = await failed_checks(service.checks)
    try:
        stored = await read_stored(gateway.state)
    except errors.StoreUnavailable as error:
        store_failure = error.message
    return Status(
        **{name: getattr(stored, name) for name in Stored.__struct_fields__},
        ready=not reasons,
        reasons=reasons,
        version=proxy.__version__,
        pid=os.getpid(),
        uptime_seconds=round(gateway.clock.now() - service.started, 1),
        breakers=gateway.breakers(),
        tokens=[
            Token(name, None if age is None else round(age, 1), refusal.message if refusal else None)
            for name, age, refusal in gateway.token_states()
        ],
        store_failure=store_failure,
    )


async def read_stored(state: StoredState) -> Stored:
    """Read the store. Raises StoreUnavailable."""
    clients = [ClientSeen(*each[2:7], rfc3339(each.last)) for each in (await state.clients(CLIENT_DAYS))[:CLIENTS_MAX]]
    unknown = [
        UnknownApiKey(each.key[:FINGERPRINT], each.endpoint, each.user_agent, rfc3339(each.last), each.requests)
        for each in await state.unknown_keys()
    ]
    failures = [
        Failure(
            **msgspec.to_builtins(_decode_detail(each.detail)),
            at=rfc3339(each.last),
            route=each.endpoint,
            application=each.application,
            key=each.key,
        )
        for each in await state.failures()
    ]
    return Stored(await state.usage(), clients, unknown, failures)


def _authenticate(request: web.BaseRequest, service: ServiceState, host: str) -> None:
    """Raise Unauthorized without the token of the running configuration. On loopback none is needed unless one is
    set."""
    admin = service.gateway.settings.admin
    token = admin.token if admin else None
    if token is not None:
        kind, _, sent = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        expected = token.reveal().encode()
        if kind.lower() != "bearer" or not hmac.compare_digest(sent.strip().encode("utf-8", "replace"), expected):
            raise Unauthorized("send the header Authorization: Bearer TOKEN with the token of admin.token")
    elif not secret.is_loopback(host):
        raise Unauthorized(f"set admin.token: {host} is not a loopback address")
    # A name that a web page chose for this address, to have a browser on this machine read it (DNS rebinding).
    elif not secret.is_loopback(urlsplit(f"//{request.host}").hostname or ""):
        raise Unauthorized("without admin.token this is reached at 127.0.0.1 or localhost only")


class Unauthorized(errors.ClientError):
    """Without the token of operators."""

    status = 401
