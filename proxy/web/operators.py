"""The operators' port: `/status`, the state of the service, beside liveness, readiness and metrics.

`/healthz`, `/readyz` and `/metrics` need no token and show no API key; the public port has `/healthz`.
"""

import asyncio
import hmac
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec
from aiohttp import BasicAuth, hdrs, web

from proxy import config, errors
from proxy.config import secret
from proxy.gateway.core import Gateway
from proxy.web import routing
from proxy.web.status import read

PATHS = frozenset(("/healthz", "/readyz", "/metrics"))
NO_PATH = "there is no such path on the operators' port"
MOVED = "/readyz and /metrics are on the operators' port, admin.port"
# The version of the text format: Prometheus chooses its parser by it.
METRICS_FORMAT = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
# A browser asks for a name and a password: the token is the password.
CHALLENGE = 'Bearer, Basic realm="v3bridge for operators", charset="UTF-8"'


def create(gateway: Gateway, admin: config.AdminSettings) -> routing.Handler:
    """Return the handler of the operators' port."""

    async def status(request: routing.Request) -> web.Response:
        _authenticate(request, admin)
        found = await read(gateway, request.rel_url.query.get("explain", ""))
        headers = {hdrs.VARY: hdrs.ACCEPT, hdrs.CACHE_CONTROL: "no-store"}
        if wants_page(request):
            from proxy.web import pages  # with Jinja2: most workers show no page

            text = await asyncio.to_thread(pages.status, found)
            headers[hdrs.CONTENT_SECURITY_POLICY] = pages.STATUS.policy
            return web.Response(text=text, content_type="text/html", headers=headers)
        return web.Response(body=msgspec.json.encode(found), content_type="application/json", headers=headers)

    async def readiness(_: routing.Request) -> web.Response:
        if reasons := await gateway.readiness.failures():
            return web.json_response({"status": "not ready", "reasons": reasons}, status=503)
        return web.json_response({"status": "ready"})

    async def metrics(_: routing.Request) -> web.Response:
        return web.Response(body=gateway.metrics.text(), headers=METRICS_FORMAT)

    routes = routing.Routes()
    handlers = {"/status": status, "/healthz": health, "/readyz": readiness, "/metrics": metrics}
    for path, handler in handlers.items():
        routes.add(path, handler, *routing.READ)

    async def handle(request: routing.Request) -> web.StreamResponse:
        try:
            return await (routes.find(request) or _unserved)(request)
        except errors.BridgeError as error:
            headers = {hdrs.WWW_AUTHENTICATE: CHALLENGE} if error.status == 401 else None
            return web.json_response({"message": error.message}, status=error.status, headers=headers)

    return handle


async def health(_: routing.Request) -> web.Response:
    return web.json_response({"status": "ok"})


def _authenticate(request: routing.Request, admin: config.AdminSettings) -> None:
    """Raise Unauthorized without the token of the running configuration. On loopback none is needed unless one is
    set."""
    if admin.token is not None:
        if not hmac.compare_digest(_sent_token(request), admin.token.reveal().encode()):
            raise Unauthorized(
                "send the header Authorization: Bearer TOKEN with the token of admin.token, or as a browser does: any "
                "name, with the token as its password"
            )
    elif not secret.is_loopback(admin.host):
        raise Unauthorized(f"set admin.token: {admin.host} is not a loopback address")
    else:
        name = None
        with suppress(ValueError):  # such as a bracket that is not closed
            name = urlsplit(f"//{request.host}").hostname
        # A name that a web page chose for this address, to have a browser on this machine read it (DNS rebinding).
        if not secret.is_loopback(name or ""):
            raise Unauthorized("without admin.token this is reached at 127.0.0.1 or localhost only")


def _sent_token(request: routing.Request) -> bytes:
    """Return the token of a Bearer header, or the password of a Basic one (RFC 7617); nothing of any other."""
    kind, _, sent = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if kind.lower() == "bearer":
        return sent.strip().encode("utf-8", "replace")
    with suppress(ValueError):
        return bytes(BasicAuth.decode(f"{kind} {sent.strip()}").password, "latin1")  # the bytes that were sent
    return b""


async def _unserved(request: routing.Request) -> web.Response:
    """Lead a browser at `/` to the page. Raises NotFound for any other path."""
    if request.path != "/" or not wants_page(request):
        raise errors.NotFound(NO_PATH)
    return web.Response(status=302, headers={hdrs.LOCATION: "/status"})


def wants_page(request: routing.Request) -> bool:
    """Return whether a request is one of a browser: it names HTML before JSON."""
    accepted = request.headers.get(hdrs.ACCEPT, "").lower()
    page, data = accepted.find("text/html"), accepted.find("application/json")
    return page >= 0 and not 0 <= data < page


class Unauthorized(errors.ClientError, status=401):
    """Without the token of operators."""
