"""`v3bridge usage`: what every application and key has spent, from the store that the workers share."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from proxy import config, errors
from proxy.cli import shown_usage
from proxy.kit import clock, event_loop, shipped


def usage(
    config_file: Annotated[
        Path | None, typer.Option("--config", help="The configuration; the shipped one if omitted.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    reopen: Annotated[
        str | None, typer.Option(metavar="APP", help="Ask the service again for an application it has refused.")
    ] = None,
) -> None:
    """Print parts used and left, and when they run out; or open an application again after its plan has grown."""
    settings = config.load(config_file or shipped.path("config.yaml"), os.environ, upstream=False)
    if reopen is not None and reopen not in settings.applications:
        raise typer.BadParameter(f"{reopen!r} is none of {', '.join(settings.applications)}", param_hint="--reopen")
    why = _forgetful(settings)
    if why is not None:
        shown_usage.nothing(why, as_json)
    else:
        event_loop.run(_usage(settings, as_json, reopen))


def _forgetful(settings: config.Config) -> str | None:
    """Why there is nothing to be read, where that is so."""
    if settings.upstream == "sandbox":
        return (
            "`upstream: sandbox` begins anew with each start, so nothing is kept of it. Look at /metrics while it runs."
        )
    if settings.store.reveal() == "memory:":
        return "`store: memory:` is known to the running service alone. Look at its /metrics."
    return None


async def _usage(settings: config.Config, as_json: bool, reopen: str | None) -> None:
    from proxy.gateway.quota import usage as quota_usage
    from proxy.stores import open as opening

    time = clock.SystemClock()
    store = await opening.open_store(settings.store, time)
    try:
        if reopen is not None:
            await store.clear_exhausted(reopen)
        usages, exhausted = await store.all_usage(), await store.exhausted_quotas()
    except errors.StoreUnavailable as error:
        raise errors.ConfigError(f"store: {error.message}") from error
    finally:
        await store.aclose()
    rows = quota_usage.rows(settings.applications, usages, exhausted, time.now())
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    if reopen is not None:
        shown_usage.reopened(reopen)
    shown_usage.table(rows)
    if not usages:
        shown_usage.nothing("The store is empty: nothing was spent yet, or the service runs with another store.", False)
