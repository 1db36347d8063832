"""`v3bridge serve`: the proxy, and with `upstream: sandbox` the sandbox inside the same process."""

import gc
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from proxy import config
from proxy.cli import listening, looping, shown
from proxy.kit import clock, shipped

EXAMPLE_KEY = "EXAMPLE_KEY"


def serve(
    config_file: Annotated[
        Path | None, typer.Option("--config", help="The configuration; the shipped one if omitted.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Listen here instead of listen.host.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Listen here instead of listen.port; 0: a free one.")
    ] = None,
) -> None:
    """Start the proxy and print a curl line that works."""
    settings = config.load(config_file or shipped.path("config.yaml"), os.environ)
    changed = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    listen = msgspec.structs.replace(settings.listen, **changed)
    looping.run(_serve(msgspec.structs.replace(settings, listen=listen)))


async def _serve(settings: config.Config) -> None:
    from proxy.telemetry import log
    from proxy.web import app, server

    log.configure(settings.log.level, settings.log.format, sys.stderr)
    stop = looping.on_signal()
    async with AsyncExitStack() as stack:
        example = settings.upstream == "sandbox"
        if settings.upstream == "sandbox":
            settings = await _with_sandbox(settings, stack)
        service = await app.create_app(settings, clock.SystemClock())
        listen = settings.listen
        try:
            url = await stack.enter_async_context(server.running(service, listen.host, listen.port))
        except OSError as error:
            raise listening.refused(listen.host, listen.port, error) from error
        shown.service(url, _key(settings), example)
        gc.collect()
        gc.freeze()  # what is here now stays: the collector need not look at it again (see docs/performance.md)
        gc.set_threshold(50_000, 20, 20)
        await stop.wait()


async def _with_sandbox(settings: config.Config, stack: AsyncExitStack) -> config.Config:
    """The configuration with the sandbox's addresses, and its ready account where an application names none."""
    from proxy.sandbox import app
    from proxy.sandbox import settings as sandbox

    upstream = await stack.enter_async_context(app.running(sandbox.Settings()))
    account = upstream.account
    applications = {
        name: msgspec.structs.replace(
            entry,
            client_id=entry.client_id or config.ClientId(account.client_id),
            client_secret=entry.client_secret or config.Secret(account.client_secret),
        )
        for name, entry in settings.applications.items()
    }
    addresses = config.Upstream(graphql_url=upstream.graphql_url, token_url=upstream.token_url)
    store = config.StoreUrl("memory:")  # this sandbox begins anew with each start, and so does what is known of it
    return msgspec.structs.replace(settings, upstream=addresses, applications=applications, store=store)


def _key(settings: config.Config) -> str:
    """The key of the printed curl line: the example's where it is served; others are not known in clear."""
    example = config.digest(EXAMPLE_KEY)
    served = any(key.key == example for entry in settings.applications.values() for key in entry.apikeys)
    return EXAMPLE_KEY if served else "YOUR_APIKEY"
