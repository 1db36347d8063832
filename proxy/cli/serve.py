"""`v3bridge serve`: the service in one process or several, with `upstream: sandbox` beside the embedded sandbox."""

import asyncio
import os
import secrets
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec
import typer

from proxy import __version__, config
from proxy.cli import embedded, shown
from proxy.config import loader
from proxy.kit import clock, event_loop, shipped
from proxy.workers import listening

if TYPE_CHECKING:
    from proxy.workers import reloading

EXAMPLE_KEY = "EXAMPLE_KEY"
TOKEN_BYTES = 32  # random bytes of a generated admin token


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
    given = (("host", host), ("port", port), ("workers", workers))
    options = {name: value for name, value in given if value is not None}
    # Generated once: a reload keeps it where the configuration still has none.
    generated = config.Secret(secrets.token_urlsafe(TOKEN_BYTES))

    def read() -> config.Config:
        settings = loader.load(file, os.environ)
        listen = msgspec.structs.replace(settings.listen, **options)
        return msgspec.structs.replace(settings, listen=listen, admin=_admin(settings.admin, admin_port, generated))

    settings = read()
    # Before the sandbox is started, which takes seconds.
    listening.check(settings.listen.host, settings.listen.port)
    if settings.admin:
        listening.check(settings.admin.host, settings.admin.port, listening.ADMIN)
    source = "shipped" if config_file is None else str(config_file.resolve())
    from proxy.telemetry import log, log_writer

    with log_writer.buffered(sys.stderr) as stream:

        def configure_log(settings: config.LogSettings) -> None:
            log.configure(settings.level, settings.format, stream)

        configure_log(settings.log)
        log.log_uncaught_exceptions()
        token = generated.reveal() if settings.admin and settings.admin.token is generated else ""
        event_loop.run(_serve(_Start(settings, read, configure_log, file, source, token)))


class _Start(NamedTuple):
    """How the service is started and reloaded. `read` reads the configuration from `file`; `source` is its name for
    the log, and `token` a generated admin token, which is printed, and never logged."""

    settings: config.Config
    read: Callable[[], config.Config]
    configure_log: Callable[[config.LogSettings], None]
    file: Path
    source: str
    token: str


def _admin(
    settings: Literal[False] | config.AdminSettings, port: int | None, token: config.Secret
) -> Literal[False] | config.AdminSettings:
    """Return the settings of the admin interface with the port of the command line, and with a token, which all workers
    get, if none is configured."""
    if not settings:
        return settings
    chosen = settings.port if port is None else port
    return msgspec.structs.replace(settings, port=chosen, token=settings.token or token)


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
    environment = _environment(settings)
    async with AsyncExitStack() as stack:
        resolve = await _embed_sandbox(settings, stack)
        service = await stack.enter_async_context(_workers(resolve(settings)))
        await _make_reloadable(service, start, resolve, stop, stack)
        urls = service.urls
        shown.service(urls.public, _key(settings), settings.upstream == "sandbox")
        shown.admin_interface(urls.admin, start.token)
        admin = {"admin": urls.admin} if urls.admin else {}
        logger.info(
            "service started", version=__version__, config=start.source, address=urls.public, **admin, **environment
        )
        await stop.wait()
        logger.info("service stopping", stop_seconds=settings.listen.stop_seconds)
    logger.info("service stopped")


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
    """Reload the configuration on SIGHUP, by `v3bridge reload` and by the admin interface."""
    from proxy.workers import control, reloading

    source = reloading.ConfigurationSource(start.read, resolve)
    reloader = reloading.Reloader(
        source, start.settings, service, configure_log=start.configure_log, clock=clock.SystemClock()
    )
    stack.push_async_callback(reloader.close)
    service.on_request = reloader.reload
    event_loop.on_hangup(stop, reloader.start)
    await stack.enter_async_context(control.listening(start.file, reloader.reload))


def _environment(settings: config.Config) -> dict[str, str | int]:
    """Return workers, upstream and store, without credentials, for the log."""
    workers, upstream = settings.listen.workers, settings.upstream
    if upstream == "sandbox":
        return {"workers": workers, "upstream": upstream, "store": "memory:"}
    url = config.without_credentials(upstream.graphql_url)
    return {"workers": workers, "upstream": url, "store": settings.store.shown}


def _workers(settings: config.Config) -> "AbstractAsyncContextManager[reloading.Reloadable]":
    """Return the service, in this process or in worker processes under a supervisor."""
    if settings.listen.workers == 1:
        from proxy.workers import single_process

        return single_process.running(settings)
    from proxy.workers import supervisor

    return supervisor.running(settings, clock.SystemClock())


def _key(settings: config.Config) -> str:
    """Return the API key for the printed curl command: the example's if it is configured; others may be known only
    by digest."""
    example = config.digest(EXAMPLE_KEY)
    served = any(key.key == example for entry in settings.applications.values() for key in entry.apikeys)
    return EXAMPLE_KEY if served else "YOUR_APIKEY"
