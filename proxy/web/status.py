"""The operators' port: `/status`, the state of the service as JSON, beside liveness, readiness and metrics.

What comes from the store is of all workers and machines: usage, clients and unknown API keys. Readiness, circuit
breakers, tokens and failures are those of the worker that responds.
"""

import heapq
import hmac
from urllib.parse import urlsplit

import msgspec
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

import proxy
from proxy import errors
from proxy.config import secret
from proxy.config.secret import FINGERPRINT
from proxy.gateway.core import Gateway
from proxy.gateway.quota import accounts
from proxy.gateway.quota import usage as quota_usage
from proxy.kit.wording import rfc3339
from proxy.telemetry.callers import DAY_SECONDS
from proxy.upstream import policies
from proxy.web import early_refusals, operator_endpoints
from proxy.web.middleware import Failure
from proxy.web.operator_endpoints import FailedCheck
from proxy.web.service import RunningService

PATH = "/status"
CLIENTS_MAX, CLIENT_DAYS = 50, 30  # that called last, in the last days
BREAKER_STATES = {policies.CLOSED: "closed", policies.HALF_OPEN: "half-open", policies.OPEN: "open"}


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
    first_seen: str
    last_seen: str
    requests: int


class StoredState(msgspec.Struct, frozen=True):
    """What the store has: usage by application and API key, the clients that called last, unknown API keys."""

    usage: list[quota_usage.UsageRow] = []
    clients: list[ClientSeen] = []
    unknown_keys: list[UnknownApiKey] = []


class Status(StoredState, frozen=True, kw_only=True):
    """State of the service. Times are RFC 3339 in UTC; `store_failure` says why nothing is known from the store."""

    ready: bool
    reasons: list[FailedCheck]
    version: str
    pid: int
    uptime_seconds: float
    breakers: dict[str, str]
    tokens: list[Token]
    failures: list[Failure]
    store_failure: str | None


def create(service: RunningService, host: str) -> web.Application:
    """Build the application of the operators' port, which listens on `host`, in the event loop of the service."""

    async def status(request: web.Request) -> web.Response:
        _authenticate(request, service, host)
        return web.Response(body=msgspec.json.encode(await read(service)), content_type="application/json")

    async def refuse(request: web.Request) -> web.StreamResponse:
        return await _errors_as_json(request, early_refusals.refuse)

    app = web.Application(middlewares=[_errors_as_json])
    app[early_refusals.REFUSED] = refuse
    operator_endpoints.add_health(app)
    operator_endpoints.add_monitoring(app, service)
    app.router.add_get(PATH, status)
    return app


async def read(service: RunningService) -> Status:
    gateway = service.gateway
    reasons, stored, store_failure = await operator_endpoints.failed_checks(service.checks), StoredState(), None
    now = gateway.clock.now()
    try:
        stored = await _stored(gateway, now)
    except errors.StoreUnavailable as error:
        store_failure = error.message
    return Status(
        **{name: getattr(stored, name) for name in StoredState.__struct_fields__},
        ready=not reasons,
        reasons=reasons,
        version=proxy.__version__,
        pid=service.pid,
        uptime_seconds=round(now - service.started, 1),
        breakers={name: BREAKER_STATES[each.state] for name, each in gateway.services.breakers.items()},
        tokens=_tokens(gateway),
        failures=[*reversed(service.failures)],
        store_failure=store_failure,
    )


async def _stored(gateway: Gateway, now: float) -> StoredState:
    """Read the store. Raises StoreUnavailable."""
    store, periods = gateway.store, accounts.billing_periods(now)
    charged = [account for client in gateway.applications.all for account in client.accounts.both]
    usages = await store.usage(list(dict.fromkeys(account.entry(periods) for account in charged)))
    rows = quota_usage.rows(gateway.settings.applications, usages, await store.exhausted_quotas(), now)
    seen = await store.callers(int(now // DAY_SECONDS) - CLIENT_DAYS)
    last = heapq.nlargest(CLIENTS_MAX, seen, key=lambda each: each.last)
    clients = [ClientSeen(*each.caller, rfc3339(each.last)) for each in last]
    known = {digest.reveal() for digest in gateway.applications.digests}
    unknown = [
        UnknownApiKey(digest[:FINGERPRINT], address, agent, rfc3339(first), rfc3339(last), requests)
        for digest, address, agent, first, last, requests in await store.unknown_keys()
        if digest not in known
    ]
    return StoredState(rows, clients, unknown)


def _tokens(gateway: Gateway) -> list[Token]:
    tokens = []
    for name, application in gateway.applications.applications.items():
        age = gateway.services.tokens.age(application.credentials)
        refusal = gateway.services.tokens.refusal(application.credentials)
        tokens.append(Token(name, None if age is None else round(age, 1), refusal.message if refusal else None))
    return tokens


def _authenticate(request: web.Request, service: RunningService, host: str) -> None:
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


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except errors.BridgeError as error:
        headers = {hdrs.WWW_AUTHENTICATE: "Bearer"} if error.status == 401 else None
        return web.json_response({"message": error.message}, status=error.status, headers=headers)
