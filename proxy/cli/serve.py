"""`v3bridge serve`: the service in one process or several, with `upstream: sandbox` beside the embedded sandbox."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from proxy import __version__, config
from proxy.cli import embedded, shown
from proxy.config import loader
from proxy.kit import clock, event_loop, service_manager, shipped
from proxy.workers import inherited, listening

EXAMPLE_KEY = "EXAMPLE_KEY"


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
) -> None:
    """Start the proxy and print a curl line that works."""
    file = config_file or shipped.path("config.yaml")
    settings = loader.load(file, os.environ)
    given = (("host", host), ("port", port), ("workers", workers))
    changed = {name: value for name, value in given if value is not None}
    listen = msgspec.structs.replace(settings.listen, **changed)
    settings = msgspec.structs.replace(settings, listen=listen)
    manager, sockets = service_manager.ServiceManager.take(os.environ), inherited.take(os.environ)
    settings = inherited.apply(settings, sockets, host=host, port=port)
    if not sockets.http:
        listening.check(listen.host, listen.port)  # before the sandbox is started, which takes seconds
    source = "shipped" if config_file is None else str(config_file.resolve())
    from proxy.telemetry import log, log_writer

    with log_writer.buffered(sys.stderr) as stream:
        log.configure(settings.log.level, settings.log.format, stream)
        log.log_uncaught_exceptions()
        event_loop.run(_serve(settings, source, config.exposed(file), sockets, manager))


async def _serve(
    settings: config.Config,
    source: str,
    exposed: list[Path],
    sockets: inherited.InheritedSockets,
    manager: service_manager.ServiceManager,
) -> None:
    """Serve until a signal stops it. `source` is the configuration file, for the log; `exposed` are files with secrets
    that other users can read."""
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
        url = await stack.enter_async_context(_workers(settings, sockets, manager))
        shown.service(url, _key(settings), embeds_sandbox)
        for name, descriptors in sockets._asdict().items():
            for descriptor in descriptors:
                logger.info("socket inherited", name=name, address="{}:{}".format(*inherited.address(descriptor)))
        logger.info("service started", version=__version__, config=source, address=url, **environment)
        if not manager.ready(f"serving at {url}"):
            logger.warning("service manager unreachable")
        await stop.wait()
        logger.info("service stopping", stop_seconds=settings.listen.stop_seconds)
        manager.stopping("finishing requests")
    logger.info("service stopped")


def _environment(settings: config.Config) -> dict[str, str | int]:
    """Return workers, upstream and store, without credentials, for the log."""
    workers, upstream = settings.listen.workers, settings.upstream
    if upstream == "sandbox":
        return {"workers": workers, "upstream": upstream, "store": "memory:"}
    url = config.without_credentials(upstream.graphql_url)
    return {"workers": workers, "upstream": url, "store": settings.store.shown}


@asynccontextmanager
async def _workers(
    settings: config.Config, sockets: inherited.InheritedSockets, manager: service_manager.ServiceManager
) -> AsyncIterator[str]:
    """Run the service, in this process or in worker processes under a supervisor."""
    if settings.listen.workers == 1:
        from proxy.workers import single_process, watchdog

        async with single_process.running(settings, sockets=sockets) as url, watchdog.reporting(manager, lambda _: ()):
            yield url
    else:
        from proxy.workers import supervisor

        async with supervisor.running(settings, clock.SystemClock(), sockets, manager) as url:
            yield url


def _key(settings: config.Config) -> str:
    """Return the API key for the printed curl command: the example's if it is configured; others may be known only
    by digest."""
    example = config.digest(EXAMPLE_KEY)
    served = any(key.key == example for entry in settings.applications.values() for key in entry.apikeys)
    return EXAMPLE_KEY if served else "YOUR_APIKEY"
