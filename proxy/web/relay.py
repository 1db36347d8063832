"""Clients that the old service still answers: their calls go there as they came, and its replies go back as they are.

For applications whose `shadow.answer` is old. The old service holds their keys to its own rates; what the shadow asks
in their name counts on those of this service, and must not cost a client its turn. Costs no parts.
"""

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from multidict import CIMultiDict

from proxy import errors
from proxy.compare.running import failures, http_side
from proxy.compare.shadow import baseline_client
from proxy.web.v3 import near_misses, replies
from proxy.web.v3.parameters import Parameters
from proxy.web.v3.routes import CLIENT
from proxy.web.wrong_keys import WrongKeys

NEW_WAY: web.RequestKey[Handler] = web.RequestKey("new_way")  # what would have answered

SENT_ON = ("Accept", "Accept-Language", "If-Modified-Since", "If-None-Match", "Origin", "Referer", "User-Agent")
# What concerns one connection (RFC 9110 §7.6.1), and what is written anew here.
NOT_SENT_BACK = {
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


class Relay:
    """`http` has connections of its own, and the time limits of any service outside, `seconds` for a whole answer."""

    def __init__(self, http: aiohttp.ClientSession, url: str, seconds: float) -> None:
        self._http = http
        self._base = http_side.base_url(url)
        self._seconds = seconds

    async def answer(self, request: web.Request) -> web.Response:
        """The old service's reply. Raises UpstreamUnreachable where there is none."""
        try:
            url = baseline_client.address(self._base, request.raw_path)
        except ValueError as error:
            raise errors.NotFound(near_misses.message(request.path)) from error
        headers = {name: request.headers[name] for name in SENT_ON if name in request.headers}
        try:
            async with self._http.request(request.method, url, headers=headers, allow_redirects=False) as found:
                return _passed_on(found, await baseline_client.read(found), request)
        except failures.SideError as trouble:
            raise errors.UpstreamUnreachable(f"the old service {trouble}") from trouble
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise errors.UpstreamUnreachable(
                f"the old service {failures.from_exception(error, self._seconds)}"
            ) from error


def relaying(relay: Relay, keys: WrongKeys, applications: frozenset[str]) -> Middleware:
    """Inside the frame: calls of these applications take the old way. A key that is not known is refused further in."""

    @web.middleware
    async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            return await handler(request)
        try:
            client = keys.client(request, Parameters(request.raw_path).text("apikey"))
        except errors.ClientError:
            return await handler(request)
        if client.application.name not in applications:
            return await handler(request)
        request[CLIENT] = client
        request[NEW_WAY] = handler
        return await relay.answer(request)

    return around


def _passed_on(found: aiohttp.ClientResponse, body: bytes, request: web.Request) -> web.Response:
    named = {name.strip().lower() for name in found.headers.get("Connection", "").split(",")}
    headers = CIMultiDict(
        (name, value) for name, value in found.headers.items() if name.lower() not in NOT_SENT_BACK | named
    )
    sent = replies.squeezed(replies.Written(body, {}), replies.takes_gzip(request))
    headers.update(sent.headers)
    return web.Response(body=sent.body, status=found.status, reason=found.reason, headers=headers)
