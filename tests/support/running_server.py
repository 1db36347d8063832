"""The HTTP server of the service with any handler, on a free port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proxy import sockets
from proxy.web import connections, routing, server

DEFAULTS = connections.Limits()


@asynccontextmanager
async def running(handler: routing.Handler, limits: connections.Limits = DEFAULTS) -> AsyncIterator[str]:
    """Serve while the block runs; yields the base URL."""
    async with server.listening(handler, sockets.listen("127.0.0.1", 0), limits) as listener:
        yield listener.url
