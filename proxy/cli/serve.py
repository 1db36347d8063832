"""`v3bridge serve`: the service in one process or several, with `upstream: sandbox` beside the embedded sandbox."""

import os
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
import typer

from proxy import __version__, config, errors
from proxy.cli import embedded, shown
from proxy.config import loader
from proxy.kit import clock, event_loop, service_manager, shipped
from proxy.workers import inherited, listening

EXAMPLE_KEY = "EXAMPLE_KEY"
TOKEN_BYTES = 32  # random bytes of a generated admin token


class Activation(NamedTuple):
    """What a service manager such as systemd gave to the program: sockets, and where it wants to hear of its state."""

    sockets: inherited.InheritedSockets
    manager: service_manager.ServiceManager


def serve(
    config_file: Annotated[
        Path | None, typer.Option("--config", help="The configuration; the shipped one if omitted.")
    ] = None,
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
            help="Port of the admin interface instead of admin.port; 0: a free one. Also V3BRIDGE_ADMIN_PORT.",
        ),
    ] = None,
) -> None:
    """Start the proxy and print a curl line that works, and the address of the admin interface."""
    file = config_file or shipped.path("config.yaml")
    settings = loader.load(file, os.environ)
    given = (("host", host), ("port", port), ("workers", workers))
    changed = {name: value for name, value in given if value is not None}
    listen = msgspec.structs.replace(settings.listen, **changed)
    admin, token = _with_token(settings.admin, admin_port)
    settings = msgspec.structs.replace(settings, listen=listen, admin=admin)
    manager, sockets = service_manager.ServiceManager.take(os.environ), inherited.take(os.environ)
    settings = inherited.apply(settings, sockets, host=host, port=port, admin_port=admin_port)
    _check_ports(settings, sockets)  # before the sandbox is started, which takes seconds
    source = "shipped" if config_file is None else str(config_file.resolve())
    from proxy.telemetry import log, log_writer

    with log_writer.buffered(sys.stderr) as stream:
        log.configure(settings.log.level, settings.log.format, stream)
        log.log_uncaught_exceptions()
        event_loop.run(_serve(settings, source, config.exposed(file), token, Activation(sockets, manager)))


def _with_token(
    settings: Literal[False] | config.AdminSettings, port: int | None
) -> tuple[Literal[False] | config.AdminSettings, str]:
    """Return the settings of the admin interface with the port of the command line, and with a token: generated here,
    where all workers get it, if none is configured. The second value is a generated token, to be printed."""
    if not settings:
        return settings, ""
    if port is not None:
        settings = msgspec.structs.replace(settings, port=port)
    if settings.token is not None:
        return settings, ""
    generated = secrets.token_urlsafe(TOKEN_BYTES)
    return msgspec.structs.replace(settings, token=config.Secret(generated)), generated


def _check_ports(settings: config.Config, sockets: inherited.InheritedSockets) -> None:
    """Raise ConfigError if an address is in use, except for sockets that are open already."""
    listen, admin = settings.listen, settings.admin
    if not sockets.http:
        listening.check(listen.host, listen.port)
    if admin and not sockets.admin:
        # Sockets of workers share ports, so that the system would not refuse the second one.
        if admin.port and admin.port == listen.port:
            raise errors.ConfigError(
                f"port {admin.port} is that of the service: choose another with {listening.ADMIN.options}"
            )
        listening.check(admin.host, admin.port, listening.ADMIN)


async def _serve(settings: config.Config, source: str, exposed: list[Path], token: str, activation: Activation) -> None:
    """Serve until a signal stops it. `source` is the configuration file, for the log; `exposed` are files with secrets
    that other users can read; `token` is a generated admin token, which is printed, and never logged."""
    import structlog

    from proxy.telemetry import log

    logger = structlog.get_logger()
    for file in exposed:
        logger.warning("exposed secrets found", file=str(file), remedy=f"chmod 600 {file}")
    stop = event_loop.stop_on_signal()
    event_loop.ignore_hangup(stop, lambda: log.log_ignored_signal("SIGHUP"))
    environment = _environment(settings)
    async with AsyncExitStack() as stack:
        embeds_sandbox = settings.upstream == "sandbox"
        if settings.upstream == "sandbox":
            settings, _ = await embedded.with_sandbox(settings, stack)
        urls = await stack.enter_async_context(_workers(settings, activation))
        shown.service(urls.public, _key(settings), embeds_sandbox)
        shown.admin_interface(urls.admin, token)
        for name, address in activation.sockets.addresses():
            logger.info("socket inherited", name=name, address=address)
        admin = urls.admin or "off"
        logger.info(
            "service started", version=__version__, config=source, address=urls.public, admin=admin, **environment
        )
        if not activation.manager.ready(f"serving at {urls.public}"):
            logger.warning("service manager unreachable")
        await stop.wait()
        logger.info("service stopping", stop_seconds=settings.listen.stop_seconds)
        activation.manager.stopping("finishing requests")
    logger.info("service stopped")


def _environment(settings: config.Config) -> dict[str, str | int]:
    """Return workers, upstream and store, without credentials, for the log."""
    workers, upstream = settings.listen.workers, settings.upstream
    if upstream == "sandbox":
        return {"workers": workers, "upstream": upstream, "store": "memory:"}
    url = config.without_credentials(upstream.graphql_url)
    return {"workers": workers, "upstream": url, "store": settings.store.shown}


@asynccontextmanager
async def _workers(settings: config.Config, activation: Activation) -> AsyncIterator[listening.ServiceUrls]:
    """Run the service, in this process or in worker processes under a supervisor."""
    sockets, manager = activation
    if settings.listen.workers == 1:
        from proxy.workers import single_process, watchdog

        async with single_process.running(settings, sockets=sockets) as urls, watchdog.reporting(manager, lambda _: ()):
            yield urls
    else:
        from proxy.workers import supervisor

        async with supervisor.running(settings, clock.SystemClock(), sockets, manager) as urls:
            yield urls


def _key(settings: config.Config) -> str:
    """Return the API key for the printed curl command: the example's if it is configured; others may be known only
    by digest."""
    example = config.digest(EXAMPLE_KEY)
    served = any(key.key == example for entry in settings.applications.values() for key in entry.apikeys)
    return EXAMPLE_KEY if served else "YOUR_APIKEY"
