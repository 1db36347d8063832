"""Service in this process: the only one, or one of several workers."""

import resource
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

import msgspec
import structlog

from proxy import config
from proxy.kit import clock, garbage
from proxy.kit.periodic import PeriodicTask
from proxy.web import app, server, status
from proxy.web.service import ConfiguredApp, RunningService
from proxy.workers import inherited, listening, messages, reloading

SIGN_SECONDS = 1.0  # between two signs of life
ADMIN_CONNECTIONS = 64  # of people and programs that watch
ADMIN_STOP_SECONDS = 1.0  # for requests under way to the operators' port when the service stops

log = structlog.get_logger()


class ProcessService(reloading.Reloadable):
    """The service of this process, whose configuration can be replaced in two steps: prepared, then served with."""

    def __init__(
        self,
        urls: listening.ServiceUrls,
        builder: app.ServiceBuilder,
        listener: server.Listener,
        running: RunningService,
    ) -> None:
        self.urls = urls
        self._builder = builder
        self._listener = listener
        self._running = running
        self._prepared: ConfiguredApp | None = None

    async def prepare(self, settings: config.Config) -> None:
        """Build the application of a configuration beside the running one. Raises MappingError and ConfigError."""
        await self.drop()
        self._prepared = await self._builder.build_next(settings)

    async def commit(self) -> None:
        """Serve with the prepared application from the next request on."""
        prepared = self._prepared
        if prepared is not None:
            settings = prepared.gateway.settings
            # Without an await between them: no request sees one of them before the other. The listener first: where
            # that fails, the application that it serves with stays open, and the prepared one is dropped.
            self._listener.replace(prepared.requests.handle, _limits(settings))
            self._prepared = None
            self._builder.switch(prepared)

    async def drop(self) -> None:
        """Close the prepared application, if there is one."""
        if self._prepared is not None:
            prepared, self._prepared = self._prepared, None
            await prepared.close()

    async def report(self, result: config.ReloadResult, counts: bool = True) -> None:
        """Note the result of a reload. Of several workers one `counts` it."""
        self._running.report(result, counts=counts)


@asynccontextmanager
async def running(
    settings: config.Config,
    slot: messages.WorkerSlot | None = None,
    sockets: inherited.InheritedSockets = inherited.NONE,
) -> AsyncIterator[ProcessService]:
    """Serve while the block runs. Raises ConfigError and MappingError.

    `slot` is given to workers, which share the port. `sockets` of the service manager are used instead of own ones.
    """
    builder = app.ServiceBuilder(clock.SystemClock())
    first = await builder.build(settings)
    listen = settings.listen
    serving = server.listening(
        first.requests.handle,
        listen.host,
        listen.port,
        sockets=sockets.opened_http(),
        shared=slot is not None,
        listen=_limits(settings),
    )
    async with AsyncExitStack() as stack:
        # Closed after the server, when no request is left.
        stack.push_async_callback(builder.close)
        try:
            listener = await stack.enter_async_context(serving)
        except OSError as error:
            raise listening.refused(listen.host, listen.port, error) from error
        admin = settings.admin
        admin_url = await _serve_admin(first.service, admin, stack, sockets.opened_admin(), shared=slot is not None)
        garbage.tune()
        if slot is not None:
            await _sign_life(slot, stack)
        service = ProcessService(listening.ServiceUrls(listener.url, admin_url), builder, listener, first.service)
        stack.push_async_callback(service.drop)
        yield service


def _limits(settings: config.Config) -> config.ListenSettings:
    return msgspec.structs.replace(settings.listen, connections=_client_connections(settings))


async def _sign_life(slot: messages.WorkerSlot, stack: AsyncExitStack) -> None:
    async def sign() -> None:
        slot.sign_life()

    signing = PeriodicTask("sign of life", sign, SIGN_SECONDS)
    signing.start()
    stack.push_async_callback(signing.close)


async def _serve_admin(
    service: RunningService,
    settings: Literal[False] | config.AdminSettings,
    stack: AsyncExitStack,
    sockets: Sequence[socket.socket],
    *,
    shared: bool,
) -> str:
    """Open the operators' port of a service until `stack` is closed; return its base URL, empty if it is off."""
    if not settings:
        return ""
    limits = config.ListenSettings(connections=ADMIN_CONNECTIONS, drain_seconds=0, stop_seconds=ADMIN_STOP_SECONDS)
    serving = server.running(
        status.create(service, settings.host),
        settings.host,
        settings.port,
        sockets=sockets,
        shared=shared,
        listen=limits,
    )
    try:
        return await stack.enter_async_context(serving)
    except OSError as error:
        raise listening.refused(settings.host, settings.port, error, listening.ADMIN) from error


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
