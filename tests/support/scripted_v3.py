"""A v3 service whose behavior a test sets, failures included: a real server on a loopback socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from support import served

Behavior = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedV3Service:
    """`behavior` handles every request; `requests` are the request targets so far."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.behavior: Behavior = responding({})
        self.released = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Record the request, and apply the behavior."""
        self.requests.append(request.raw_path)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        return await self.behavior(request)

    async def stall(self, request: web.Request) -> web.StreamResponse:
        """Behavior: respond when the test is over."""
        await self.released.wait()
        return web.json_response({})


def responding(body: Any, status: int = 200, /, **headers: str) -> Behavior:
    """Behavior: one fixed response, JSON or bytes."""

    async def answer(_: web.Request) -> web.StreamResponse:
        if isinstance(body, bytes):
            return web.Response(body=body, status=status, headers=headers)
        return web.json_response(body, status=status, headers=headers)

    return answer


async def abort_connection(request: web.Request) -> web.StreamResponse:
    """Behavior: abort the connection without a response."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def truncate_response(request: web.Request) -> web.StreamResponse:
    """Behavior: abort the connection within the body."""
    response = web.StreamResponse(headers={"Content-Length": "1000000"})
    await response.prepare(request)
    await response.write(b'{"results": [')
    assert request.transport is not None
    request.transport.abort()
    return response


async def drip_bytes(request: web.Request) -> web.StreamResponse:
    """Behavior: an endless response, one byte at a time."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.01)


@asynccontextmanager
async def running() -> AsyncIterator[ScriptedV3Service]:
    """Serve while the block runs."""
    old = ScriptedV3Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", old.handle)
    async with served.on_loopback(app) as url:
        old.url = f"{url}/v3"
        try:
            yield old
        finally:
            old.released.set()
