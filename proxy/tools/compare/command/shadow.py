"""`v3bridge shadow`: status of shadowing, and the switch that all workers read."""

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proxy import config, errors
from proxy.cli import used_store
from proxy.kit import event_loop
from proxy.kit.wording import counted

if TYPE_CHECKING:
    from proxy.stores.protocols import Store
    from proxy.tools.compare.judging.tally import Tally


class ShadowAction(StrEnum):
    """Action of the command."""

    STATUS = "status"
    ON = "on"
    OFF = "off"
    RESET = "reset"


def shadow(
    action: Annotated[
        ShadowAction, typer.Argument(help="Show the status, switch shadowing, or delete its results.")
    ] = ShadowAction.STATUS,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="The configuration; the shipped one if omitted.")
    ] = None,
) -> None:
    """Show the status of shadowing, or switch it on or off while the service runs."""
    event_loop.run(_shadow(configured(config_file), action, config_file))


def configured(file: Path | None) -> config.Config:
    """Load a configuration whose store other processes can open. Raises ConfigError."""
    settings = used_store.configured(file)
    if used_store.without_records(settings) is not None:
        raise errors.ConfigError(
            "store: is known to the running service alone (memory:, or upstream: sandbox); "
            "the shadow commands need a shared one"
        )
    return settings


async def _shadow(settings: config.Config, action: ShadowAction, config_file: Path | None) -> None:
    from proxy.shadow import results
    from proxy.tools.compare.shadow import report

    # The switch is in the store, which all workers read: no signal or port is needed.
    async def act(store: "Store") -> "tuple[bool, Tally | None]":
        if action in (ShadowAction.ON, ShadowAction.OFF):
            await results.switch(store, action is ShadowAction.ON)
        elif action is ShadowAction.RESET:
            await results.reset(store)
        return (await results.control(store)).on, await report.read_tally(store)

    on, tally = await used_store.with_store(settings, act)
    enabled = settings.shadow.enabled and any(each.shadow.share for each in settings.applications.values())
    typer.echo(f"Shadowing is {'on' if on else 'off'}{'' if enabled else '; this configuration samples no requests'}.")
    for row in () if tally is None else tally.rows.values():
        alike = row.compared - row.differing
        not_compared = f", {row.not_compared} could not be compared" if row.not_compared else ""
        typer.echo(
            f"{row.client} {row.endpoint}: {alike:,} of {counted(row.compared, 'request')} without a difference"
            f"{not_compared}"
        )
    chosen = f" --config {shlex.quote(str(config_file))}" if config_file else ""
    typer.echo(f"Report: v3bridge compare --shadow{chosen}" if tally else "No request has been compared yet.")
