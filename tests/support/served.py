"""An aiohttp application on loopback, for stand-ins of other services."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def on_loopback(app: web.Application, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve while the block runs; yields the URL, without a path. Port 0 is a free one."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serve(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve every path and method by one handler."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with on_loopback(app, port, tls) as url:
        yield url
