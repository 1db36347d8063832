"""A side of a comparison that does as it is told, on loopback, and calls to ask it."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from proxy.compare.requests import V3Request, parse_target

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, port: int = 0) -> AsyncIterator[str]:
    """Whatever path is asked for, the handler answers; gives the base URL, without /v3."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def call_of(target: str, **fields: Any) -> V3Request:
    """A call from a request target."""
    path, query, _ = parse_target(target)
    return V3Request(path, query, **fields)


class Side:
    """Answers each request by a function of its query's `q`, and notes what it was asked."""

    def __init__(self, answer: Callable[[str], Any], parts: int | None = None) -> None:
        self.answer = answer
        self.parts = parts
        self.asked: list[str] = []
        self.keys: list[str | None] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        q = request.query.get("q", "")
        self.asked.append(q)
        self.keys.append(request.query.get("apikey"))
        made = self.answer(q)
        if isinstance(made, web.StreamResponse):
            return made
        headers = {} if self.parts is None else {"X-Parts-Cost": str(self.parts)}
        return web.Response(body=json.dumps(made).encode(), content_type="application/json", headers=headers)
