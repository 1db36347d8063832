"""`v3bridge shadow`: what running shadows have gathered so far, and the switch that all workers look at."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proxy import config, errors
from proxy.kit import clock, looping, shipped


class Wish(StrEnum):
    """What is to be done."""

    STATUS = "status"
    ON = "on"
    OFF = "off"
    FORGET = "forget"


def shadow(
    wish: Annotated[Wish, typer.Argument(help="Show how it stands, switch it, or begin anew.")] = Wish.STATUS,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="The configuration; the shipped one if omitted.")
    ] = None,
) -> None:
    """Switch the comparing of live calls on or off while the service runs, or see how far it has come."""
    settings = config.load(config_file or shipped.path("config.yaml"), os.environ)
    if settings.upstream == "sandbox" or settings.store.reveal() == "memory:":
        raise errors.ConfigError(
            "store: is known to the running service alone (memory:, or upstream: sandbox); "
            "set shadow.enabled in the configuration, and start again"
        )
    looping.run(_shadow(settings, wish))


async def _shadow(settings: config.Config, wish: Wish) -> None:
    from proxy.compare import shadow_results
    from proxy.stores import open as opening

    store = await opening.open_store(settings.store, clock.SystemClock())
    try:
        if wish in (Wish.ON, Wish.OFF):
            await shadow_results.switch(store, wish is Wish.ON)
        elif wish is Wish.FORGET:
            await shadow_results.forget(store)
        on = (await shadow_results.control(store)).on
        tally = await shadow_results.read(store)
    except errors.StoreUnavailable as error:
        raise errors.ConfigError(f"store: {error.message}") from error
    finally:
        await store.aclose()
    enabled = settings.shadow.enabled and any(each.shadow.share for each in settings.applications.values())
    typer.echo(f"The shadow is {'on' if on else 'off'}{'' if enabled else '; this configuration compares nothing'}.")
    for row in () if tally is None else tally.rows.values():
        alike = row.compared - row.differing
        troubled = f", {row.troubled} could not be compared" if row.troubled else ""
        typer.echo(f"{row.client} {row.endpoint}: {alike} of {row.compared} calls without a difference{troubled}")
    typer.echo("The report: v3bridge compare --shadow" if tally else "Nothing was compared yet.")
