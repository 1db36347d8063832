"""Service in this process: the only one, or one of several workers."""

import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from proxy import config
from proxy.kit import clock, garbage
from proxy.telemetry import merging
from proxy.upstream import services
from proxy.web import app, connections, server
from proxy.workers import inherited, listening

log = structlog.get_logger()


@asynccontextmanager
async def running(
    settings: config.Config,
    slot: merging.WorkerSlot | None = None,
    client: services.ClientFactory | None = None,
    sockets: inherited.InheritedSockets = inherited.NONE,
) -> AsyncIterator[str]:
    """Serve while the block runs; yields the base URL. Raises ConfigError and MappingError.

    `slot` is given to workers, which share the port; `client` replaces the GraphQL client. `sockets` of the service
    manager are used instead of own ones.
    """
    service = await app.create_app(settings, clock.SystemClock(), slot, client)
    listen = settings.listen
    serving = server.running(
        service,
        listen.host,
        listen.port,
        sockets=sockets.opened_http(),
        stop_seconds=listen.stop_seconds,
        drain_seconds=listen.drain_seconds,
        shared=slot is not None,
        limits=connections.ConnectionLimits.of(listen)._replace(connections=_client_connections(settings)),
    )
    async with AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serving)
        except OSError as error:
            raise listening.refused(listen.host, listen.port, error) from error
        garbage.tune()
        yield url


def _client_connections(settings: config.Config) -> int:
    """Return the limit of client connections: `listen.connections`, or what the open-file limit leaves, at least 1.

    Raises the soft limit to the hard one first (RLIMIT_NOFILE). Files are reserved for upstream connections and health
    checks, so that client connections alone cannot exhaust the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    configured, reserved = settings.listen.connections, settings.reserved_files
    if hard == resource.RLIM_INFINITY or configured + reserved <= hard:
        return configured
    allowed = max(1, hard - reserved)
    log.warning("connection limit lowered", configured=configured, used=allowed, open_files=hard, reserved=reserved)
    return allowed
