"""The operators' port: `/status`, the state of the service, beside liveness, readiness and metrics, which need no token
and show no API key; the public port has `/healthz`.

The state is read from the store, so that any worker and machine shows the same. Only the checks of readiness, the
circuit breaker and the process are those of the worker that responds.
"""

import asyncio
import hmac
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import BasicAuth, hdrs, web

import proxy
from proxy import config, errors
from proxy.config import secret
from proxy.explain import Explainer
from proxy.gateway import Gateway, StoredState
from proxy.kit import rfc3339
from proxy.model import Seen
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.web import messages

PATHS = frozenset(("/healthz", "/readyz", "/metrics"))
MOVED = "/readyz and /metrics are on the operators' port, admin.port"
# A browser asks for a name and a password: the token is the password.
CHALLENGE = 'Bearer, Basic realm="v3bridge for operators", charset="UTF-8"'
UNAUTHORIZED = (
    "send the header Authorization: Bearer TOKEN with the token of admin.token, or as a browser does: any name, with "
    "the token as its password"
)
ONLY_LOCAL = "without admin.token this is reached at 127.0.0.1 or localhost only"
CLIENTS_MAX = 50  # that called last
DAYS = 31  # of usage: all of a month
RATE_DAYS = 7  # whose mean is the present rate, today among them
FAR_DAYS = 3_650  # nobody plans for longer
Row = dict[str, Any]


class OperatorsRoutes:
    """Handlers of the operators' port, whose requests `handle` serves."""

    def __init__(self, gateway: Gateway, admin: config.AdminSettings) -> None:
        self._gateway, self._admin, self._routes = gateway, admin, messages.Routes()
        served = {"status": self._status, "healthz": health, "readyz": self._readiness, "metrics": self._metrics}
        for name, handler in served.items():
            self._routes.add(f"/{name}", handler, *messages.READ)

    async def handle(self, request: messages.Request) -> web.StreamResponse:
        try:
            if (handler := self._routes.find(request)) is not None:
                return await handler(request)
            if request.path != "/" or not wants_page(request):
                raise errors.NotFound("there is no such path on the operators' port")
            return web.Response(status=302, headers={hdrs.LOCATION: "/status"})
        except errors.BridgeError as error:
            return web.json_response({"message": error.message}, status=error.status)

    async def _status(self, request: messages.Request) -> web.Response:
        if refusal := _refusal(request, self._admin):
            return web.json_response({"message": refusal}, status=401, headers={hdrs.WWW_AUTHENTICATE: CHALLENGE})
        found = await read(self._gateway, request.rel_url.query.get("explain", ""))
        headers = {hdrs.VARY: hdrs.ACCEPT, hdrs.CACHE_CONTROL: "no-store"}
        if wants_page(request):
            from proxy.web import pages  # with Jinja2: most workers show no page

            now = datetime.fromisoformat(found["at"])
            text = await asyncio.to_thread(pages.STATUS.render, found=found, now=now)
            headers[hdrs.CONTENT_SECURITY_POLICY] = pages.STATUS.policy
            return web.Response(text=text, content_type="text/html", headers=headers)
        return web.Response(body=msgspec.json.encode(found), content_type="application/json", headers=headers)

    async def _readiness(self, _: messages.Request) -> web.Response:
        if reasons := await self._gateway.readiness.failures():
            return web.json_response({"status": "not ready", "reasons": reasons}, status=503)
        return web.json_response({"status": "ready"})

    async def _metrics(self, _: messages.Request) -> web.Response:
        # Prometheus chooses its parser by the version of the text format.
        kind = {hdrs.CONTENT_TYPE: "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=self._gateway.metrics.text(), headers=kind)


async def health(_: messages.Request) -> web.Response:
    return web.json_response({"status": "ok"})


def _refusal(request: messages.Request, admin: config.AdminSettings) -> str:
    """Return why a request without the token is refused, else "". On loopback none is needed unless one is set."""
    if admin.token is not None:
        kind, _, sent = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        token = sent.strip().encode("utf-8", "replace") if kind.lower() == "bearer" else b""
        with suppress(ValueError):  # no Basic header (RFC 7617), whose password has the bytes that were sent
            token = bytes(BasicAuth.decode(f"{kind} {sent.strip()}").password, "latin1")
        return "" if hmac.compare_digest(token, admin.token.reveal().encode()) else UNAUTHORIZED
    if not secret.is_loopback(admin.host):
        return f"set admin.token: {admin.host} is not a loopback address"
    name = None
    with suppress(ValueError):  # such as a bracket that is not closed
        name = urlsplit(f"//{request.host}").hostname
    # A name that a web page chose for this address, to have a browser on this machine read it (DNS rebinding).
    return "" if secret.is_loopback(name or "") else ONLY_LOCAL


def wants_page(request: messages.Request) -> bool:
    """Return whether a request is one of a browser: it names HTML before JSON."""
    accepted = request.headers.get(hdrs.ACCEPT, "").lower()
    page, data = accepted.find("text/html"), accepted.find("application/json")
    return page >= 0 and not 0 <= data < page


async def read(gateway: Gateway, explained: str = "") -> Row:
    """Return the state of the service; the last failure whose request id is `explained` has its explanation.
    `store_failure` says why nothing is known from the store. Times are RFC 3339 in UTC."""
    now, reasons, store_failure = gateway.clock.now(), await gateway.readiness.failures(), None
    try:
        stored = await _stored(gateway, now)
    except errors.StoreUnavailable as error:
        stored = {name: [] for name in ("tokens", "usage", "clients", "unknown_keys", "failures")}
        store_failure = str(error)
    for failure in stored["failures"]:
        if failure["request"] == explained:
            failure["explanation"] = await _explanation(gateway, failure)
            break
    return stored | {
        "ready": not reasons,
        "reasons": reasons,
        "version": proxy.__version__,
        "at": rfc3339(now),
        "pid": os.getpid(),
        "uptime_seconds": round(now - gateway.process.started, 1),
        "upstream": urlsplit(gateway.upstream.graphql_url).netloc,
        "breakers": {"graphql": gateway.breaker.state},
        "store": gateway.settings.store.shown,
        "store_failure": store_failure,
    }


def another(found: Row, settings: config.Config) -> str:
    """Return which other v3bridge a state is of, as words for a message; "" if it may be of the service of these
    settings, which has one of its applications, and its upstream."""
    names = sorted({row["application"] for row in found["tokens"]})
    ours = settings.upstream if settings.upstream == "sandbox" else urlsplit(settings.upstream.graphql_url).netloc
    hosts = {ours, found["upstream"]}
    is_elsewhere = len(hosts) > 1 and not all(
        each == "sandbox" or secret.is_loopback(urlsplit(f"//{each}").hostname or "") for each in hosts
    )
    if not is_elsewhere and (not names or not settings.applications.keys().isdisjoint(names)):
        return ""
    return f"another v3bridge, with the applications {', '.join(names)} and the upstream {found['upstream']}"


async def _stored(gateway: Gateway, now: float) -> Row:
    """Return what the store knows. Of each application: until when its access token is valid, if there is one, and why
    the last request for one failed. Raises StoreUnavailable."""
    known = {name: await token.read() for name, token in gateway.tokens.known.items()}
    seen = await gateway.state.seen()
    return {
        "tokens": [
            {"application": name, "expires_at": token and rfc3339(token.expires), "refusal": failed and failed.message}
            for name, (token, failed) in known.items()
        ],
        "usage": await _usage(gateway.state, now),
        "clients": clients(seen.clients)[:CLIENTS_MAX],
        "unknown_keys": [
            {"fingerprint": each.key[: secret.FINGERPRINT], "address": each.endpoint, "user_agent": each.user_agent}
            | {"last_seen": rfc3339(each.last), "requests": each.requests}
            for each in seen.unknown_keys
        ],
        "failures": [
            msgspec.json.decode(each.detail)
            | {"at": rfc3339(each.last), "route": each.endpoint, "application": each.application, "key": each.key}
            for each in seen.failures
        ],
    }


async def _usage(state: StoredState, now: float) -> list[Row]:
    """Return the usage of each application and API key with its parts by day, the present rate, and the day (UTC) on
    which the rest ends at that rate, null where nothing is limited, or used, or the rest lasts to the reset. The rate
    is the mean of the last days, from the first one with usage on, and of a day at least."""
    by_day, today = await state.parts_by_day(DAYS), datetime.fromtimestamp(now, UTC).date()
    first = (today - timedelta(RATE_DAYS - 1)).isoformat()
    rows = []
    for row in await state.usage():
        days = by_day.get(row.name, {})
        recent = {date.fromisoformat(day): parts for day, parts in days.items() if day >= first and parts}
        passed = (today - min(recent, default=today)).days + now % 86_400 / 86_400
        rate, ends_on = sum(recent.values()) / max(1.0, passed), None
        if row.remaining is not None and rate and row.remaining / rate <= FAR_DAYS:
            end = rfc3339(now + row.remaining / rate * 86_400)
            ends_on = end[:10] if row.resets_at is None or end < row.resets_at else None
        rows.append(msgspec.to_builtins(row) | {"days": days, "parts_a_day": round(rate, 1), "ends_on": ends_on})
    return rows


def clients(seen: Iterable[Seen]) -> list[Row]:
    """Return the programs that called, the last one first. Names are empty without a valid API key."""
    found: dict[tuple[str, ...], Row] = {}
    for each in seen:
        names = {"application": each.application, "key": each.key, "user_agent": each.user_agent}
        first: Row = {"endpoints": [], "unsupported": [], "requests": 0, "last_seen": rfc3339(each.last)}
        client = found.setdefault((*names.values(),), names | first)
        client["requests"] += each.requests
        uses = each.detail.split(", ") if each.detail else []
        for name, values in (("endpoints", [each.endpoint]), ("unsupported", uses)):
            client[name] += [value for value in values if value not in client[name]]
    return [*found.values()]


async def _explanation(gateway: Gateway, failure: Row) -> Row:
    """Return what `v3bridge explain` says of a failed request; nothing without its target or its key."""
    names = failure["application"], failure["key"]
    clients = gateway.applications.clients.values()
    client = next((each for each in clients if (each.application.name, each.key) == names), None)
    if not failure["target"] or client is None:
        return {}
    path, query, _ = parse_target(failure["target"])
    explainer = Explainer(gateway.settings, gateway.projections)
    explained, _ = await explainer.explain(V3Request(path, query), client, None, failure["method"])
    return msgspec.to_builtins(explained)  # type: ignore[no-any-return]
