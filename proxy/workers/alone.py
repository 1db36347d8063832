"""One process that answers, from its configuration to its last reply: the whole service, or one worker of several."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from proxy import config
from proxy.kit import clock, garbage
from proxy.telemetry import merging
from proxy.web import app, connections, outside, server
from proxy.workers import listening, open_files


@asynccontextmanager
async def running(
    settings: config.Config, place: merging.Place | None = None, client: outside.ClientKind | None = None
) -> AsyncIterator[str]:
    """Answer while the block runs; gives the base URL. Raises ConfigError and MappingError.

    `place` is that of a worker, whose port has other listeners; `client` stands in for the GraphQL client.
    """
    service = await app.create_app(settings, clock.SystemClock(), place, client)
    listen = settings.listen
    serving = server.running(
        service,
        listen.host,
        listen.port,
        stop_seconds=listen.stop_seconds,
        shared=place is not None,
        limits=connections.Limits.of(listen)._replace(connections=open_files.client_connections(settings)),
    )
    async with AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serving)
        except OSError as error:
            raise listening.refused(listen.host, listen.port, error) from error
        garbage.tune()
        yield url
