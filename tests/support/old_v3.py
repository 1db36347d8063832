"""An old v3 service that answers what a test tells it, or does not: a real server on a loopback socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Behaviour = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OldService:
    """`does` is what becomes of a request; `asked` are the targets so far."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.does: Behaviour = says({})
        self.released = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Remember it, and do as told."""
        self.asked.append(request.raw_path)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        return await self.does(request)

    async def stall(self, request: web.Request) -> web.StreamResponse:
        """Answer when the test is over, and not before."""
        await self.released.wait()
        return web.json_response({})


def says(body: Any, status: int = 200, **headers: str) -> Behaviour:
    """Always the same: JSON, or bytes as they are."""

    async def answer(_: web.Request) -> web.StreamResponse:
        if isinstance(body, bytes):
            return web.Response(body=body, status=status, headers=headers)
        return web.json_response(body, status=status, headers=headers)

    return answer


async def crash(request: web.Request) -> web.StreamResponse:
    """Break the connection off without a word."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def cut(request: web.Request) -> web.StreamResponse:
    """Begin an answer and break off."""
    response = web.StreamResponse(headers={"Content-Length": "1000000"})
    await response.prepare(request)
    await response.write(b'{"results": [')
    assert request.transport is not None
    request.transport.abort()
    return response


async def drip(request: web.Request) -> web.StreamResponse:
    """An answer that never ends, a byte at a time."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.01)


@asynccontextmanager
async def running() -> AsyncIterator[OldService]:
    """Serve while the block runs."""
    old = OldService()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", old.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        old.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v3"
        yield old
    finally:
        old.released.set()
        await runner.cleanup()
