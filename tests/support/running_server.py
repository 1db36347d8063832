"""The HTTP server of the service with any handler, on a free port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proxy.web import connections, messages, ports

DEFAULTS = connections.Limits()


@asynccontextmanager
async def running(handler: messages.Handler, limits: connections.Limits = DEFAULTS) -> AsyncIterator[str]:
    """Serve while the block runs; yields the base URL."""
    async with ports.listening(handler, ports.listen("127.0.0.1", 0), limits) as listener:
        yield listener.url
