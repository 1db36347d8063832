"""`v3bridge serve`: the proxy in one process or several, and with `upstream: sandbox` the sandbox inside the first."""

import os
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from proxy import config
from proxy.cli import embedded, shown
from proxy.kit import clock, looping, shipped

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
        int | None, typer.Option(min=1, max=256, help="Answer with so many processes instead of listen.workers.")
    ] = None,
) -> None:
    """Start the proxy and print a curl line that works."""
    file = config_file or shipped.path("config.yaml")
    settings = config.load(file, os.environ)
    given = (("host", host), ("port", port), ("workers", workers))
    changed = {name: value for name, value in given if value is not None}
    listen = msgspec.structs.replace(settings.listen, **changed)
    looping.run(_serve(msgspec.structs.replace(settings, listen=listen), config.exposed(file)))


async def _serve(settings: config.Config, exposed: list[Path]) -> None:
    import structlog

    from proxy.telemetry import log

    log.configure(settings.log.level, settings.log.format, sys.stderr)
    log.catch_what_nobody_catches()
    for file in exposed:
        structlog.get_logger().warning("secrets readable by others", file=str(file), remedy=f"chmod 600 {file}")
    stop = looping.on_signal()
    async with AsyncExitStack() as stack:
        example = settings.upstream == "sandbox"
        if settings.upstream == "sandbox":
            settings, _ = await embedded.with_sandbox(settings, stack)
        url = await stack.enter_async_context(_answering(settings))
        shown.service(url, _key(settings), example)
        await stop.wait()


def _answering(settings: config.Config) -> AbstractAsyncContextManager[str]:
    """In this process, or in workers of their own."""
    if settings.listen.workers == 1:
        from proxy.workers import alone

        return alone.running(settings)
    from proxy.workers import supervisor

    return supervisor.running(settings, clock.SystemClock())


def _key(settings: config.Config) -> str:
    """The key of the printed curl line: the example's where it is served; others are not known in clear."""
    example = config.digest(EXAMPLE_KEY)
    served = any(key.key == example for entry in settings.applications.values() for key in entry.apikeys)
    return EXAMPLE_KEY if served else "YOUR_APIKEY"
