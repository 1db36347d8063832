"""The first look at a request: what is refused at once, and v3's fixed paths, found without aiohttp's router.

The router and its middlewares take longer than a cached response, and the router's time grows with the square of the
slashes in a path; paths longer than any of v3's never reach it. Used by server.py; requests that are neither refused
nor on a fixed path go to the router, which has the same handlers.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import HttpVersion11, hdrs, web

from proxy import errors
from proxy.web import ops
from proxy.web.quick_refusal import QuickRefusal

PATH_MAX = 512  # bytes before the query, with scheme and host of an absolute target
RETRY_SECONDS = 1  # Retry-After of a connection beyond the limit

Handler = Callable[[Any], Awaitable[web.StreamResponse]]  # of a request, as an application makes them

DIRECT: web.AppKey[dict[str, Handler]] = web.AppKey("direct", dict)
QUICK: web.AppKey[QuickRefusal] = web.AppKey("quick", QuickRefusal)
REFUSED: web.AppKey[Handler] = web.AppKey("refused")


def handler(app: web.Application, routed: Handler) -> Handler:
    """What handles an application's requests."""
    direct, refused = app.get(DIRECT, {}), app.get(REFUSED)

    def handle(request: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        path = request.raw_path.partition("?")[0]
        if refused is not None and _refusal(request, path) is not None:
            return refused(request)
        found = direct.get(path) if request.method == "GET" else None
        return routed(request) if found is None else found(request)

    return handle


async def refuse(request: web.Request) -> web.StreamResponse:
    """Raise the reason why a request is refused before it is routed, and close the connection after the response."""
    error = _refusal(request, request.raw_path.partition("?")[0])
    request.protocol.close()
    raise error or errors.BadRequest("the request cannot be served")


def _refusal(request: web.BaseRequest, path: str) -> errors.BridgeError | None:
    if len(path) > PATH_MAX:
        return errors.NotFound(f"there is no such path: it is longer than {PATH_MAX} bytes; v3's begin with /v3")
    if request.version < HttpVersion11 and hdrs.TRANSFER_ENCODING in request.headers:
        return errors.BadRequest("HTTP/1.0 has no Transfer-Encoding")
    if getattr(request.protocol, "crowded", False) and path not in ops.PATHS:
        return errors.TooManyConnections("too many connections are open", retry_after=RETRY_SECONDS)
    return None
