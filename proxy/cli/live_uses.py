"""`v3bridge explain --live`: unsupported uses of each client of the running service, from the store."""

from pathlib import Path

import typer

from proxy.cli import client_tables, shown, used_store
from proxy.kit import clock, event_loop

DAYS = 30  # of the requests that are counted beside


def show(config_file: Path | None, *, given: bool, as_json: bool) -> None:
    """Print clients by their unsupported uses, those with most first."""
    from proxy.gateway import client_report

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
    named = [client for client in report.clients if client.key is not None]
    affected = sorted((client for client in named if client.unsupported), key=lambda each: -len(each.unsupported))
    if as_json:
        shown.print_json([{"client": client.name, "unsupported": client.unsupported} for client in affected])
        return
    console = shown.table_console()
    if affected:
        console.print(client_tables.unsupported_table(affected))
    quiet = [client.name for client in named if client.requests and not client.unsupported]
    if quiet:
        console.print(f"Nothing unsupported: {', '.join(quiet)}", highlight=False)
    if not affected and not quiet:
        console.print(f"No client has called in {DAYS} days, or nothing is recorded (clients.days).", highlight=False)
