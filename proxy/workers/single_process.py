"""Service in this process: the only one, or one of several workers."""

import resource
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

import structlog
from aiohttp import web

from proxy import config
from proxy.kit import clock, garbage
from proxy.telemetry import merging
from proxy.upstream import services
from proxy.web import app, connections, server
from proxy.web.admin import listener
from proxy.web.service import SERVICE
from proxy.workers import inherited, listening

ADMIN_CONNECTIONS = 64  # of people and programs that watch
ADMIN_STOP_SECONDS = 1.0  # for requests under way to the admin interface when the service stops

log = structlog.get_logger()


@asynccontextmanager
async def running(
    settings: config.Config,
    slot: merging.WorkerSlot | None = None,
    client: services.ClientFactory | None = None,
    sockets: inherited.InheritedSockets = inherited.NONE,
) -> AsyncIterator[listening.ServiceUrls]:
    """Serve while the block runs; yields the base URLs. Raises ConfigError and MappingError.

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
        admin = settings.admin
        admin_url = await _serve_admin(service, admin, stack, sockets.opened_admin(), shared=slot is not None)
        garbage.tune()
        yield listening.ServiceUrls(url, admin_url)


async def _serve_admin(
    service: web.Application,
    settings: Literal[False] | config.AdminSettings,
    stack: AsyncExitStack,
    sockets: Sequence[socket.socket],
    *,
    shared: bool,
) -> str:
    """Start the admin interface of a service until `stack` is closed; return its base URL, empty if it is off."""
    if not settings:
        return ""
    admin = listener.create(service[SERVICE], settings, clock.SystemClock())
    limits = connections.ConnectionLimits(connections=ADMIN_CONNECTIONS)
    serving = server.running(
        admin,
        settings.host,
        settings.port,
        sockets=sockets,
        stop_seconds=ADMIN_STOP_SECONDS,
        shared=shared,
        limits=limits,
    )
    try:
        return await stack.enter_async_context(serving)
    except OSError as error:
        raise listening.refused(settings.host, settings.port, error, **listening.ADMIN._asdict()) from error


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
