"""Refusals before routing: of paths that are too long, of requests that may hide others, of too many connections.

The time of aiohttp's router grows with the square of the slashes in a path, so that longer paths than any of v3's must
not reach it.
"""

from collections.abc import Awaitable

from aiohttp import HttpVersion11, hdrs, web

from proxy import errors
from proxy.kit.aiohttp_internals.server import Handler, close_after_response
from proxy.v3 import bounds
from proxy.web import operator_endpoints

CONTINUE = "100-continue"
RETRY_SECONDS = 1  # Retry-After of a connection beyond the limit

REFUSED: web.AppKey[Handler] = web.AppKey("refused")


def dispatcher(app: web.Application, routed: Handler) -> Handler:
    """Return the handler of all requests of an application; `routed` is that of its router."""
    refused = app.get(REFUSED)
    if refused is None:
        return routed

    def handle(request: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        return routed(request) if _refusal(request) is None else refused(request)

    return handle


async def refuse(request: web.Request) -> web.StreamResponse:
    """Raise the error of a request that is refused before routing; the connection is closed after its response."""
    error = _refusal(request)
    close_after_response(request)
    raise error or errors.BadRequest("the request cannot be served")


def _refusal(request: web.BaseRequest) -> errors.BridgeError | None:
    path = request.raw_path.partition("?")[0]
    if len(path) > bounds.PATH:
        return errors.NotFound(
            f"there is no such path: it is longer than {bounds.PATH} bytes; v3's paths begin with /v3"
        )
    # Such a request can hide another one from a proxy in front (request smuggling, RFC 9112 §6.1).
    if request.version < HttpVersion11 and hdrs.TRANSFER_ENCODING in request.headers:
        return errors.BadRequest("HTTP/1.0 has no Transfer-Encoding")
    if request.headers.get(hdrs.EXPECT, CONTINUE).lower() != CONTINUE:
        return errors.BadRequest(f"the header Expect can only be {CONTINUE} here")
    if getattr(request.protocol, "over_limit", False) and path not in operator_endpoints.PATHS:
        return errors.TooManyConnections("too many connections are open", retry_after=RETRY_SECONDS)
    return None
