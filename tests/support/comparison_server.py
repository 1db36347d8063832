"""Scripted servers for tests of comparisons, on loopback, and requests to send them."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from proxy.traffic.v3_request import V3Request, parse_target
from support import served

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serve(handler: Handler, port: int = 0) -> AsyncIterator[str]:
    """Serve every path by one handler; yields the base URL, without /v3."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with served.on_loopback(app, port) as url:
        yield url


def request_from_target(target: str, **fields: Any) -> V3Request:
    path, query, _ = parse_target(target)
    return V3Request(path, query, **fields)


class ComparisonServer:
    """Responds with a function of the query parameter `q`, and records its requests."""

    def __init__(self, answer: Callable[[str], Any], parts: int | None = None) -> None:
        self.answer = answer
        self.parts = parts
        self.requests: list[str] = []
        self.keys: list[str | None] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        q = request.query.get("q", "")
        self.requests.append(q)
        self.keys.append(request.query.get("apikey"))
        made = self.answer(q)
        if isinstance(made, web.StreamResponse):
            return made
        headers = {} if self.parts is None else {"X-Parts-Cost": str(self.parts)}
        return web.Response(body=json.dumps(made).encode(), content_type="application/json", headers=headers)
