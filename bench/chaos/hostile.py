"""Hostile upstream: issues tokens, and responds to queries without end, or with more than fits into memory."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import cycle

from aiohttp import web

BLOCK = b" " * 1_000_000
BOMB_BLOCKS = 1_000  # 1 GB, of which about 1 MB is sent
PLAIN_BLOCKS = 200


async def _token(_: web.Request) -> web.Response:
    return web.json_response({"access_token": "a-token", "expires_in": 86_400, "token_type": "Bearer"})


async def _endless(request: web.Request) -> web.StreamResponse:
    return await _stream(request, {}, cycle([BLOCK]))


async def _plain(request: web.Request) -> web.StreamResponse:
    return await _stream(request, {}, [BLOCK] * PLAIN_BLOCKS)


async def _bomb(request: web.Request) -> web.StreamResponse:
    block = gzip.compress(BLOCK)
    return await _stream(request, {"Content-Encoding": "gzip"}, [block] * BOMB_BLOCKS)


async def _stream(request: web.Request, headers: dict[str, str], blocks: Iterable[bytes]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json", **headers})
    await response.prepare(request)
    try:
        for block in blocks:
            await response.write(block)
    except ConnectionError:  # the service closed the connection at its limit
        pass
    return response


@asynccontextmanager
async def running() -> AsyncIterator[str]:
    """Start the upstream; yields its address. Queries get the three kinds of response in turn."""
    kinds = cycle((_endless, _plain, _bomb))

    async def query(request: web.Request) -> web.StreamResponse:
        await request.read()
        return await next(kinds)(request)

    app = web.Application()
    app.router.add_post("/connect/token", _token)
    app.router.add_post("/graphql", query)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await asyncio.wait_for(runner.cleanup(), 30)
