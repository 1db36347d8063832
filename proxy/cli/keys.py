"""`v3bridge keys`: the API keys of the configuration, and those that programs send and no application has."""

from typing import TYPE_CHECKING

import typer

from proxy.cli import option_fields, shown, used_store
from proxy.kit import clock, event_loop

if TYPE_CHECKING:
    from proxy.gateway.key_report import ApiKeyRow, UnknownKeyRow

app = typer.Typer(help="The API keys of clients.", no_args_is_help=True)


@app.command("list")
def list_keys(
    config_file: option_fields.ConfigFile = None,
    as_json: option_fields.AsJson = False,
) -> None:
    """Print the API keys of every application by name, with their limits and their last day."""
    from proxy.gateway import key_report

    settings = used_store.configured(config_file)
    rows = key_report.configured_keys(settings.applications, clock.SystemClock().now())
    if as_json:
        shown.print_json(rows)
    else:
        _print_keys(rows)


@app.command("unknown")
def unknown(
    config_file: option_fields.ConfigFile = None,
    as_json: option_fields.AsJson = False,
) -> None:
    """Print the API keys that programs send and no application has, the last one first."""
    from proxy.gateway import key_report

    settings, rows = used_store.configured(config_file), []
    why = used_store.without_records(settings)
    if why is None:
        read = used_store.with_store(
            settings, lambda store: key_report.unknown_keys(store, settings.applications), reads_only=True
        )
        rows = key_report.unknown_rows(event_loop.run(read))
    else:
        typer.echo(why, err=as_json)
    if as_json:
        shown.print_json(rows)
    elif why is None:
        _print_unknown(rows)


def _print_keys(rows: "list[ApiKeyRow]") -> None:
    table = shown.plain_table("API keys")
    table.add_column("key", overflow="fold")
    for name in ("parts", "rate"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for row in rows:
        state = f"{'expired' if row.expired else 'expires'} {row.expires}" if row.expires else ""
        cells = (
            f"{row.application}/{row.name}",
            "unlimited" if row.parts is None else f"{row.parts:,}",
            f"{row.rate:,} a second" if row.rate else "unlimited",
        )
        table.add_row(*map(shown.visible, cells), shown.visible(state, "yellow"))
    shown.table_console().print(table)


def _print_unknown(rows: "list[UnknownKeyRow]") -> None:
    if not rows:
        typer.echo("No program has sent an API key that no application has. Counts are written every 10 seconds.")
        return
    table = shown.plain_table("API keys that no application has")
    for name in ("key", "requests", "first seen", "last seen", "address"):
        table.add_column(name, justify="right" if name == "requests" else "left", no_wrap=True)
    table.add_column("user agent", overflow="fold")
    for row in rows:
        seen = (time[:16].replace("T", " ") for time in (row.first_seen, row.last_seen))
        cells = row.fingerprint, f"{row.requests:,}", *seen, row.address, row.user_agent or "(none)"
        table.add_row(*map(shown.visible, cells))
    shown.table_console().print(table)
    typer.echo(
        "A key is named by the first hex digits of its SHA-256: printf %s KEY | sha256sum. Times are UTC, and counts "
        "are written every 10 seconds."
    )
