"""`v3bridge explain --live`: which programs will break, by the requests that the running service has recorded."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from proxy.cli import client_tables, shown, used_store
from proxy.kit import clock, event_loop

if TYPE_CHECKING:
    from proxy.gateway.client_report import ClientUsage

DAYS = 30  # of the requests that are counted beside


def show(config_file: Path | None, *, given: bool, as_json: bool, as_csv: bool) -> None:
    """Print which programs will break, those with most unsupported uses first."""
    from proxy.gateway import client_report, client_verdicts

    if given:
        raise typer.BadParameter("--live takes no INPUT: it reads what the service has recorded", param_hint="INPUT")
    settings = used_store.configured(config_file)
    why = used_store.without_records(settings)
    if why is not None:
        raise typer.BadParameter(why, param_hint="--live")

    async def read() -> client_report.ClientReport:
        return await used_store.with_store(
            settings,
            lambda store: client_report.read(store, settings.applications, DAYS, clock.SystemClock().now()),
            reads_only=True,
        )

    report = event_loop.run(read())
    if as_json:
        shown.print_json(client_verdicts.verdicts(report))
    elif as_csv:
        typer.echo(client_verdicts.csv_text(report), nl=False)
    else:
        _print(client_verdicts.judged(report))


def _print(clients: "list[ClientUsage]") -> None:
    console = shown.table_console()
    if not any(client.last_seen for client in clients):
        console.print("Nothing is recorded: no client has called, or clients.days is 0.", highlight=False)
        return
    console.print(client_tables.verdict_table(clients, DAYS))
    affected = [client for client in clients if client.unsupported]
    if affected:
        console.print(client_tables.unsupported_table(affected))
