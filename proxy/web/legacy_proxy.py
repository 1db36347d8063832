"""Reverse proxy to the old v3 service, for applications with `shadow.response: baseline`.

Requests and responses pass unchanged. The old service applies its own rate limit to these keys; the shadow's requests
for the same client count against the limit of this service, so that they never cost the client a request. Costs no
parts.
"""

from contextlib import AsyncExitStack

import aiohttp
import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from multidict import CIMultiDict

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.shadow import baseline_client
from proxy.traffic import failures, http_side
from proxy.upstream import session
from proxy.v3 import encoding
from proxy.v3.parsing import path_suggestions
from proxy.v3.parsing.request_parameters import RequestParameters
from proxy.web.authentication import Authenticator
from proxy.web.v3 import responses
from proxy.web.v3.routes import CLIENT, is_v3

NEW_HANDLER: web.RequestKey[Handler] = web.RequestKey("new_handler")  # the handler that the old service replaces

# Not Cookie or Authorization: v3 knows its clients by apikey only. Not Accept-Encoding, which aiohttp sets itself.
FORWARDED = ("Accept", "Accept-Language", "If-Modified-Since", "If-None-Match", "Origin", "Referer", "User-Agent")
# Hop-by-hop headers (RFC 9110 §7.6.1), and those that this service writes itself.
NOT_RETURNED = {
    "connection",
    "content-encoding",
    "content-length",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
}


class LegacyProxy:
    """Client of the old service. `seconds` is the time limit of a whole response."""

    def __init__(self, http: aiohttp.ClientSession, url: str, seconds: float) -> None:
        self._http = http
        self._base = http_side.base_url(url)
        self._seconds = seconds

    async def forward(self, request: web.Request) -> web.Response:
        """Return the old service's response. Raises UpstreamUnreachable if there is none."""
        try:
            url = baseline_client.address(self._base, request.raw_path)
        except ValueError as error:
            raise errors.NotFound(path_suggestions.message(request.path)) from error
        headers = {name: request.headers[name] for name in FORWARDED if name in request.headers}
        try:
            async with self._http.request(request.method, url, headers=headers, allow_redirects=False) as received:
                return _returned(received, await http_side.read_body(received, baseline_client.BODY_MAX), request)
        except failures.SideError as failure:
            raise errors.UpstreamUnreachable(f"the old service {failure}") from failure
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise errors.UpstreamUnreachable(
                f"the old service {failures.from_exception(error, self._seconds)}"
            ) from error


def middlewares(
    settings: config.Config, authenticator: Authenticator, clock: Clock, resources: AsyncExitStack
) -> list[Middleware]:
    """Return the middleware that forwards, for use inside the request middleware; none if no application is
    configured so."""
    upstream, url = settings.upstream, settings.shadow.baseline_url
    forwarded = frozenset(
        name for name, application in settings.applications.items() if application.shadow.response == "baseline"
    )
    if url is None or upstream == "sandbox" or not forwarded:
        return []
    http = open_session(upstream, upstream.connections, upstream.timeouts, resources)
    proxy = LegacyProxy(http, url, upstream.timeouts.total_seconds)

    @web.middleware
    async def forwarding(request: web.Request, handler: Handler) -> web.StreamResponse:
        # v3 has no other method; the handler answers OPTIONS and refuses the rest.
        # Only this service has other dialects.
        if request.method not in ("GET", "HEAD") or not is_v3(request):
            return await handler(request)
        try:
            client = authenticator.client(request, RequestParameters(request.raw_path).text("apikey"))
        except errors.ClientError:  # the handler refuses an unknown key
            return await handler(request)
        # The handler refuses a client after its end.
        retired = client.refusal(clock.now()) is not None
        if retired or client.application.name not in forwarded:
            return await handler(request)
        request[CLIENT] = client
        request[NEW_HANDLER] = handler
        return await proxy.forward(request)

    return [forwarding]


def open_session(
    upstream: config.UpstreamSettings, connections: int, timeouts: config.TimeoutSettings, resources: AsyncExitStack
) -> aiohttp.ClientSession:
    """Open a session to the old service: the upstream's HTTP proxy and CA, but not its client certificate."""
    # The client certificate identifies this service to Nexar only.
    tls = config.TlsSettings(ca_file=upstream.tls.ca_file)
    http = session.open_session(msgspec.structs.replace(upstream, connections=connections, timeouts=timeouts, tls=tls))
    resources.push_async_callback(http.close)
    return http


def _returned(received: aiohttp.ClientResponse, body: bytes, request: web.Request) -> web.Response:
    # The header Connection names further hop-by-hop headers (RFC 9110 §7.6.1).
    named = {name.strip().lower() for name in received.headers.get("Connection", "").split(",")}
    headers = CIMultiDict(
        (name, value) for name, value in received.headers.items() if name.lower() not in NOT_RETURNED | named
    )
    # aiohttp has decompressed the body; the client may accept gzip or not.
    encoded = encoding.compress(encoding.EncodedBody(body, {}), responses.accepts_gzip(request))
    headers.update(encoded.headers)
    return web.Response(body=encoded.body, status=received.status, reason=received.reason, headers=headers)
