"""`v3bridge serve`: the service in one process or several, with `upstream: sandbox` beside the embedded sandbox."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import typer

from proxy import __version__, config, errors
from proxy.cli import embedded, option_fields, shown
from proxy.config import loader, store_place
from proxy.kit import clock, event_loop, service_manager, shipped
from proxy.workers import inherited, listening

if TYPE_CHECKING:
    from proxy.workers import reloading

EXAMPLE_KEY = "EXAMPLE_KEY"


class Activation(NamedTuple):
    """What a service manager such as systemd gave to the program: sockets, and where it wants to hear of its state."""

    sockets: inherited.InheritedSockets
    manager: service_manager.ServiceManager


def serve(
    config_file: option_fields.ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Listen here instead of listen.host.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Listen here instead of listen.port; 0: a free one.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Worker processes, instead of listen.workers.")
    ] = None,
    admin_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            envvar="V3BRIDGE_ADMIN_PORT",
            help="The operators' port instead of admin.port; 0: a free one. Also V3BRIDGE_ADMIN_PORT.",
        ),
    ] = None,
) -> None:
    """Start the proxy and print a curl line that works, and the address of the status for operators."""
    file = config_file or shipped.path("config.yaml")
    given = (("host", host), ("port", port), ("workers", workers))
    options = {name: value for name, value in given if value is not None}
    manager, sockets = service_manager.ServiceManager.take(os.environ), inherited.take(os.environ)

    def read() -> config.Config:
        settings = loader.load(file, os.environ)
        listen = msgspec.structs.replace(settings.listen, **options)
        admin = settings.admin
        if admin and admin_port is not None:
            admin = msgspec.structs.replace(admin, port=admin_port)
        settings = msgspec.structs.replace(settings, listen=listen, admin=admin)
        return inherited.apply(settings, sockets, host=host, port=port, admin_port=admin_port)

    settings = read()
    _check_ports(settings, sockets)  # before the sandbox is started, which takes seconds
    admin_failure = _admin_failure(settings, sockets)
    if admin_failure:
        settings = msgspec.structs.replace(settings, admin=False)
    import structlog

    from proxy.telemetry import log, log_queue

    with log_queue.queued(sys.stderr) as stream:

        def configure_log(settings: config.LogSettings) -> None:
            log.configure(settings.level, settings.format, stream)

        configure_log(settings.log)
        log.log_uncaught_exceptions()
        if admin_failure:
            structlog.get_logger().warning("admin port unavailable", reason=admin_failure)
        event_loop.run(_serve(_Start(settings, read, configure_log, config_file, Activation(sockets, manager))))


class _Start(NamedTuple):
    """How the service is started and reloaded. `read` reads the configuration, of `config_file` or, where
    that is None, of the shipped file."""

    settings: config.Config
    read: Callable[[], config.Config]
    configure_log: Callable[[config.LogSettings], None]
    config_file: Path | None
    activation: Activation

    @property
    def file(self) -> Path:
        return (self.config_file or shipped.path("config.yaml")).absolute()


def _check_ports(settings: config.Config, sockets: inherited.InheritedSockets) -> None:
    """Raise ConfigError if the address is in use, except for sockets that are open already, or both ports are one."""
    listen, admin = settings.listen, settings.admin
    if not sockets.http:
        listening.check(listen.host, listen.port)
    # Sockets of workers share ports, so that the system would not refuse the second one.
    if admin and not sockets.admin and admin.port and admin.port == listen.port:
        raise errors.ConfigError(
            f"port {admin.port} is that of the service: choose another with {listening.ADMIN.options}"
        )


def _admin_failure(settings: config.Config, sockets: inherited.InheritedSockets) -> str:
    """Return why the operators' port cannot be opened; empty if it can. The service runs without it."""
    admin = settings.admin
    if not admin or sockets.admin:
        return ""
    try:
        listening.check(admin.host, admin.port, listening.ADMIN)
    except errors.ConfigError as error:
        return error.message
    return ""


async def _serve(start: _Start) -> None:
    """Serve until a signal stops it."""
    import structlog

    from proxy.telemetry import log

    logger = structlog.get_logger()
    for file in config.exposed(start.file):
        logger.warning("exposed secrets found", file=str(file), remedy=f"chmod 600 {file}")
    stop = event_loop.stop_on_signal()
    event_loop.on_hangup(stop, lambda: log.log_ignored_signal("SIGHUP", "the service is starting"))
    settings = start.settings
    async with AsyncExitStack() as stack:
        resolve = await _embed_sandbox(settings, stack)
        service = await stack.enter_async_context(_workers(resolve(settings), start))
        await _make_reloadable(service, start, resolve, stop, stack)
        urls = service.urls
        shown.service(urls.public, _key(settings), settings.upstream == "sandbox")
        shown.operators_port(urls.admin)
        _report_start(start, urls)
        await stop.wait()
        logger.info("service stopping", stop_seconds=settings.listen.stop_seconds)
        start.activation.manager.stopping("finishing requests")
    logger.info("service stopped")


def _report_start(start: _Start, urls: listening.ServiceUrls) -> None:
    """Log where the service listens, and tell the service manager that it is ready."""
    import structlog

    logger = structlog.get_logger()
    for name, address in start.activation.sockets.addresses():
        logger.info("socket inherited", name=name, address=address)
    logger.info(
        "service started",
        version=__version__,
        config="shipped" if start.config_file is None else str(start.file.resolve()),
        address=urls.public,
        admin=urls.admin or "off",
        **_environment(start.settings),
    )
    if not start.activation.manager.ready(f"serving at {urls.public}"):
        logger.warning("service manager unreachable")


async def _embed_sandbox(settings: config.Config, stack: AsyncExitStack) -> Callable[[config.Config], config.Config]:
    """Start a sandbox where the configuration has one as its upstream; return a function that adds its addresses to
    a configuration."""
    if settings.upstream != "sandbox":
        return lambda configured: configured
    _, sandbox = await embedded.with_sandbox(settings, stack)
    return lambda configured: embedded.connected(configured, sandbox)


async def _make_reloadable(
    service: "reloading.Reloadable",
    start: _Start,
    resolve: Callable[[config.Config], config.Config],
    stop: asyncio.Event,
    stack: AsyncExitStack,
) -> None:
    """Reload the configuration on SIGHUP, and let commands find the service."""
    from proxy.workers import control, reloading

    running = start.settings

    def apply(settings: config.Config) -> None:
        nonlocal running
        start.configure_log(settings.log)
        running = settings

    source = reloading.ConfigurationSource(start.file, start.read, resolve)
    reloader = reloading.Reloader(
        source,
        start.settings,
        service,
        apply=apply,
        clock=clock.SystemClock(),
        manager=start.activation.manager,
    )
    stack.push_async_callback(reloader.close)
    event_loop.on_hangup(stop, reloader.start)
    # A reload does not change the store.
    store = config.StoreUrl("memory:") if running.upstream == "sandbox" else store_place.location(running.store)

    def describe() -> control.ServiceDescription:
        token = running.admin.token if running.admin else None
        urls = service.urls
        return control.ServiceDescription(urls.public, urls.admin, token.reveal() if token else "", store.reveal())

    await stack.enter_async_context(control.listening(start.file, describe))


def _environment(settings: config.Config) -> dict[str, str | int]:
    """Return workers, upstream and store, without credentials, for the log."""
    workers, upstream = settings.listen.workers, settings.upstream
    if upstream == "sandbox":
        return {"workers": workers, "upstream": upstream, "store": "memory:"}
    url = config.without_credentials(upstream.graphql_url)
    return {"workers": workers, "upstream": url, "store": settings.store.shown}


@asynccontextmanager
async def _workers(settings: config.Config, start: _Start) -> "AsyncIterator[reloading.Reloadable]":
    """Run the service, in this process or in worker processes under a supervisor."""
    sockets, manager = start.activation
    if settings.listen.workers == 1:
        from proxy.workers import single_process, watchdog

        async with (
            single_process.running(settings, sockets=sockets) as service,
            watchdog.reporting(manager, lambda _: ()),
        ):
            yield service
    else:
        from proxy.workers import supervisor

        async with supervisor.running(settings, clock.SystemClock(), sockets, manager) as workers:
            yield workers


def _key(settings: config.Config) -> str:
    """Return the API key for the printed curl command: the example's if it is configured; others may be known only
    by digest."""
    example = config.digest(EXAMPLE_KEY)
    served = any(key.key == example for entry in settings.applications.values() for key in entry.apikeys)
    return EXAMPLE_KEY if served else "YOUR_APIKEY"
