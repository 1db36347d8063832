"""v3's fixed paths, found by one look-up: aiohttp's router and middlewares take longer than a kept answer.

Used by server.py for GET; every other request goes the router's way, on which the same handlers are.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Handler = Callable[[Any], Awaitable[web.StreamResponse]]  # of a request, as an application makes them

DIRECT: web.AppKey[dict[str, Handler]] = web.AppKey("direct", dict)


def handler(app: web.Application, routed: Handler) -> Handler:
    """What handles an application's requests."""
    direct = app.get(DIRECT)
    if not direct:
        return routed

    def handle(request: web.BaseRequest) -> Awaitable[web.StreamResponse]:
        found = direct.get(request.raw_path.partition("?")[0]) if request.method == "GET" else None
        return routed(request) if found is None else found(request)

    return handle
