"""`v3bridge alerts`: a test alert to every receiver, and the last alerts from the store."""

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from proxy import config, errors
from proxy.cli import option_fields, shown, used_store
from proxy.config import loader
from proxy.kit import clock, event_loop, shipped

if TYPE_CHECKING:
    from proxy.alerts.records import AlertRecord

app = typer.Typer(help="Alerts: receivers, and what they got.", no_args_is_help=True)

_NO_RECEIVERS = "alerts: the configuration has no webhooks and no commands; docs/how-to/alerts.md shows how to add one"
_COLORS = {"delivered": "green", "pending": "yellow"}


class AttemptRow(NamedTuple):
    """Outcome of a test alert at one receiver."""

    receiver: str
    target: str
    outcome: str
    ms: int


@app.command("test")
def send_test(config_file: option_fields.ConfigFile = None) -> None:
    """Send a test alert to every receiver, and print the outcomes. The exit code is 1 if any has not accepted it."""
    settings = loader.load(config_file or shipped.path("config.yaml"), os.environ)
    if not settings.alerts.receivers:
        raise errors.ConfigError(_NO_RECEIVERS)
    rows = event_loop.run(_send(settings.alerts))
    table = Table(title="Test alert")
    shown.add_columns(table, "receiver", "sent to", "outcome", "ms", right=("ms",), fold=("sent to", "outcome"))
    for row in rows:
        outcome = shown.visible(row.outcome, "green" if row.outcome == "delivered" else "red")
        table.add_row(Text(row.receiver), shown.visible(row.target), outcome, str(row.ms))
    shown.table_console().print(table)
    raise typer.Exit(any(row.outcome != "delivered" for row in rows))


@app.command("list")
def list_(
    config_file: option_fields.ConfigFile = None,
    as_json: option_fields.AsJson = False,
) -> None:
    """Print the last alerts and their deliveries, the newest first."""
    from proxy.alerts import records

    settings = used_store.configured(config_file)
    if settings.upstream == "sandbox" or settings.store.reveal() == "memory:":
        raise errors.ConfigError(
            "store: nothing is stored with `upstream: sandbox` or `store: memory:`; look at the page Alerts of the "
            "admin interface"
        )
    recent = event_loop.run(used_store.with_store(settings, records.recent))
    if as_json:
        shown.print_json(recent)
    elif not recent:
        typer.echo("No alerts.")
    else:
        shown.table_console().print(_table(recent))


async def _send(settings: config.AlertSettings) -> Sequence[AttemptRow]:
    from proxy.alerts import alert as alerts
    from proxy.alerts import receivers

    time = clock.SystemClock()
    alert = alerts.test(time.now())

    async def attempt(name: str, receiver: config.WebhookSettings | config.CommandSettings) -> AttemptRow:
        began = time.monotonic()
        outcome = await receivers.deliver(receiver, alert, time.now())
        # The program without its arguments, and the host without the path: both may hold a secret.
        target = receiver.url.shown if isinstance(receiver, config.WebhookSettings) else receiver.command[0]
        return AttemptRow(name, target, outcome.reason or "delivered", round((time.monotonic() - began) * 1000))

    return await asyncio.gather(*(attempt(name, receiver) for name, receiver in settings.receivers.items()))


def _table(recent: "list[AlertRecord]") -> Table:
    table = Table(title="Alerts")
    shown.add_columns(table, "time (UTC)", "event", "alert", "deliveries", fold=("alert", "deliveries"))
    for record in recent:
        alert = record.alert
        state = Text("resolved", "green") if alert.status == "resolved" else Text(alert.severity)
        deliveries = [
            Text.assemble(
                f"{each.receiver} ",
                (each.state, _COLORS.get(each.state, "red")),
                f" ({each.reason})" if each.reason else "",
            )
            for each in record.deliveries
        ]
        table.add_row(
            alert.at.replace("T", "\n").removesuffix("Z"),
            Text.assemble(alert.event, "\n", state),
            shown.visible(alert.title),
            Text("\n").join(deliveries) if deliveries else Text("no receiver", "dim"),
        )
    return table
