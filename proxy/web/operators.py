"""The operators' port: `/status`, the state of the service as JSON, beside liveness, readiness and metrics.

What comes from the store is of all workers and machines: usage, clients, unknown API keys and failures. Readiness,
circuit breakers and tokens are those of the worker that responds. `/healthz`, `/readyz` and `/metrics` need no token
and show no API key; the public port has `/healthz`, and the others with `listen.metrics: true`.
"""

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from aiohttp import hdrs, web

import proxy
from proxy import errors
from proxy.config import secret
from proxy.config.secret import FINGERPRINT
from proxy.gateway.core import Gateway, StoredState
from proxy.kit.wording import rfc3339
from proxy.web import routing

PATHS = frozenset(("/healthz", "/readyz", "/metrics"))
MOVED = "/readyz and /metrics are on the operators' port, admin.port; with `listen.metrics: true` here, too"
CHECK_SECONDS = 5.0  # after which a check of readiness has failed
REPLACED = "the configuration was replaced meanwhile"
CLIENTS_MAX, CLIENT_DAYS = 50, 30  # that called last, in the last days
# The version of the text format: Prometheus chooses its parser by it.
METRICS_FORMAT = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
Check = Callable[[], Awaitable[None]]  # raises the BridgeError for which the service is not ready


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
        return web.Response(body=msgspec.json.encode(await _read(service)), content_type="application/json")

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
            return web.json_response({"status": "not ready", "reasons": reasons}, status=503)
        return web.json_response({"status": "ready"})

    async def metrics(_: web.BaseRequest) -> web.Response:
        return web.Response(body=service.gateway.metrics.text(), headers=METRICS_FORMAT)

    routes.add("/healthz", health, *routing.READ)
    if everything:
        routes.add("/readyz", readiness, *routing.READ)
        routes.add("/metrics", metrics, *routing.READ)


async def failed_checks(checks: Mapping[str, Check]) -> list[dict[str, str]]:
    """Return `check` and `reason` of each check that fails."""

    async def failure(check: Check) -> str | None:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await check()
        except TimeoutError:
            return f"no result after {CHECK_SECONDS:.0f} seconds"
        except errors.BridgeError as error:
            return error.message
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            return REPLACED
        return None

    failures = await asyncio.gather(*map(failure, checks.values()))
    return [{"check": name, "reason": each} for name, each in zip(checks, failures, strict=True) if each is not None]


async def _read(service: ServiceState) -> dict[str, object]:
    """Return the state of the service. `store_failure` says why nothing is known from the store."""
    gateway, store_failure = service.gateway, None
    stored: dict[str, list[Any]] = {"usage": [], "clients": [], "unknown_keys": [], "failures": []}
    reasons = await failed_checks(service.checks)
    try:
        stored = await read_stored(gateway.state)
    except errors.StoreUnavailable as error:
        store_failure = error.message
    tokens = [
        {
            "application": name,
            "age_seconds": None if age is None else round(age, 1),  # null before the first
            "refusal": refusal.message if refusal else None,
        }
        for name, age, refusal in gateway.token_states()
    ]
    return stored | {
        "ready": not reasons,
        "reasons": reasons,
        "version": proxy.__version__,
        "pid": os.getpid(),
        "uptime_seconds": round(gateway.clock.now() - service.started, 1),
        "breakers": gateway.breakers(),
        "tokens": tokens,
        "store_failure": store_failure,
    }


async def read_stored(state: StoredState) -> dict[str, list[Any]]:
    """Return what the store has: usage by application and API key, the clients that called last, with what they lost,
    API keys that no application has, by the first hex digits of their SHA-256, and the last failures. Names are empty
    without a valid API key; times are RFC 3339 in UTC. Raises StoreUnavailable."""
    clients = (await state.clients(CLIENT_DAYS))[:CLIENTS_MAX]
    names = "application", "key", "endpoint", "user_agent", "unsupported"
    return {
        "usage": await state.usage(),
        "clients": [dict(zip(names, each[2:7], strict=True), last_seen=rfc3339(each.last)) for each in clients],
        "unknown_keys": [
            {
                "fingerprint": each.key[:FINGERPRINT],
                "address": each.endpoint,
                "user_agent": each.user_agent,
                "last_seen": rfc3339(each.last),
                "requests": each.requests,
            }
            for each in await state.unknown_keys()
        ],
        "failures": [
            msgspec.json.decode(each.detail)
            | {"at": rfc3339(each.last), "route": each.endpoint, "application": each.application, "key": each.key}
            for each in await state.failures()
        ],
    }


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
