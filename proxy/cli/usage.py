"""`v3bridge usage`: usage and limits of every application and API key, and with --clients who still calls. Read from
the store that the workers share, which --set and --forget-results change."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import structlog
import typer
from rich.table import Table
from rich.text import Text

from proxy import config, errors
from proxy.cli import option_fields, shown, spending, used_store
from proxy.kit.wording import counted
from proxy.telemetry import log as logging

if TYPE_CHECKING:
    from proxy.cli.client_report import ClientReport
    from proxy.gateway.core import UsageRow

BAR = 20  # characters of a full bar, which is the whole limit

_NUMBERS = ("used", "uncertain", "limit", "remaining")
_COLUMNS = ("application", "key", "period", *_NUMBERS, "%", "resets", "state")
_UNLIMITED = 10_000  # columns of a terminal that any table fits
_WARM, _HOT = 80.0, 95.0  # per cent from which a bar changes its color

log = structlog.get_logger()


def usage(
    *,
    config_file: option_fields.ConfigFile = None,
    as_json: option_fields.AsJson = False,
    clients: Annotated[
        bool, typer.Option("--clients", help="Print who called in the last 30 days, and what they lose.")
    ] = False,
    set_: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="APPLICATION=N",
            help="Replace used and uncertain parts by what the portal shows, and send requests again; "
            "APPLICATION/KEY=N those of an API key.",
        ),
    ] = None,
    forget_results: Annotated[
        bool, typer.Option("--forget-results", help="Delete all kept results: each costs its parts again.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before results are deleted.")] = False,
) -> None:
    """Print parts used and remaining by application and API key, or who still calls."""
    settings = used_store.configured(config_file)
    if [clients, set_ is not None, forget_results].count(True) > 1:
        raise typer.BadParameter("only one of --clients, --set and --forget-results")
    why = used_store.without_records(settings)
    logging.configure("info", settings.log.format, sys.stderr)
    if set_ is not None:
        _set(settings, set_, why)
    elif forget_results:
        _forget_results(settings, why, yes)
        return
    if why is not None:
        _print_no_figures(why, as_json)
    elif clients:
        asyncio.run(_clients(settings, as_json))
    else:
        asyncio.run(_usage(settings, as_json))


async def _usage(settings: config.Config, as_json: bool) -> None:
    rows = await used_store.with_state(settings, lambda state: state.usage(), reads_only=True)
    if as_json:
        shown.print_json(rows)
        return
    _print_table(rows)
    if not any(row.used or row.uncertain or row.reserved or row.exhausted_until for row in rows):
        _print_no_figures(
            "Nothing has been used in these periods, or the service runs with another store than "
            f"{settings.store.shown}.",
            False,
        )


def _set(settings: config.Config, text: str, why: str | None) -> None:
    """Replace the usage of an application's current period. Raises BadParameter and ConfigError."""
    name, _, number = text.rpartition("=")
    if not (number.isascii() and number.isdigit() and int(number) <= config.PARTS_MAX):
        raise typer.BadParameter(
            f"{number!r} is not a number of parts, such as {name or 'APPLICATION'}=250", param_hint="--set"
        )
    if why is not None:
        raise errors.ConfigError(f"store: {why}")
    try:
        before = asyncio.run(used_store.with_state(settings, lambda state: state.set_usage(name, int(number))))
    except LookupError:
        known = ", ".join(settings.applications)
        raise typer.BadParameter(f"{name!r} is none of {known}", param_hint="--set") from None
    log.info(
        "usage set",
        quota_account=name,
        period=before.period,
        used_before=before.used,
        uncertain_before=before.uncertain,
        used=int(number),
    )
    entry = settings.applications.get(name)
    keys = {} if entry is None else {f"{name}/{key}": entry.parts_of(each) for key, each in entry.clients.items()}
    if limited := [key for key, limit in keys.items() if limit is not None]:
        typer.echo(f"API keys have limits of their own, whose usage is set alone: {', '.join(limited)}", err=True)


def _forget_results(settings: config.Config, why: str | None, yes: bool) -> None:
    """Delete the results that the store keeps, and have running services delete those in memory."""
    if why is not None:
        raise errors.ConfigError("store: nothing is kept with `upstream: sandbox` or `store: memory:`")
    spending.say("Results that are kept cost nothing; without them, each query costs its parts again.")
    if not spending.confirmed("Forget them?", yes=yes):
        raise typer.Exit(1)
    deleted = asyncio.run(used_store.with_state(settings, lambda state: state.forget_results()))
    log.info("results forgotten", parts=deleted)
    typer.echo(f"{counted(deleted, 'part')} forgotten; running services follow within a second.")


async def _clients(settings: config.Config, as_json: bool) -> None:
    from proxy.cli import client_report

    report = await used_store.with_state(settings, client_report.read, reads_only=True)
    if as_json:
        shown.print_json(report)
        return
    console = shown.table_console()
    console.print(_keys_table(report))
    if report.clients:
        console.print(_clients_table(report))
    else:
        console.print(f"No request since {report.first_day}, or the service runs with another store.", highlight=False)


def _keys_table(report: "ClientReport") -> Table:
    table = shown.plain_table("API keys and their parts")
    shown.add_columns(table, "application", "key", "parts", "requests", "last", right=("parts", "requests"))
    for key in report.keys:
        last = (key.last or "never")[:10]
        table.add_row(key.application, key.key, f"{key.parts:,}", f"{key.requests:,}", last)
    return table


def _clients_table(report: "ClientReport") -> Table:
    table = shown.plain_table(f"Clients since {report.first_day}")
    fold = ("user agent", "unsupported uses")
    columns = ("client", "endpoint", "user agent", "requests", "last", "unsupported uses")
    shown.add_columns(table, *columns, right=("requests",), fold=fold)
    for each in report.clients:
        name = f"{each.application}/{each.key}" if each.key else "(no valid API key)"
        texts = shown.visible(each.user_agent or "(none)"), f"{each.requests:,}", each.last[:10]
        table.add_row(name, each.endpoint, *texts, shown.visible(each.unsupported))
    return table


def _print_table(rows: "list[UsageRow]") -> None:
    """Print a row per quota account, an application's own before those of its API keys."""
    console, table = shown.table_console(), _wide_table(rows)
    if console.measure(table, options=console.options.update(max_width=_UNLIMITED)).maximum > console.width:
        table = _narrow_table(rows)
    console.print(table)


def _wide_table(rows: "list[UsageRow]") -> Table:
    table = Table(title="Usage in parts")
    shown.add_columns(table, *_COLUMNS, right=_NUMBERS)
    for number, row in enumerate(rows):
        last = number + 1 == len(rows) or rows[number + 1].key is None
        table.add_row(*map(_text, _cells(row)), end_section=last)
    return table


def _narrow_table(rows: "list[UsageRow]") -> Table:
    """Leave out bars, the day of the reset, and uncertain parts where there are none: a table that is wider than the
    terminal would be cut in every column."""
    columns = ["used", *(["uncertain"] if any(row.uncertain for row in rows) else []), "limit", "remaining", "%"]
    table = shown.plain_table("Usage in parts")
    shown.add_columns(table, "account", "period", *columns, "state", right=columns, fold=("account", "state"))
    for row in rows:
        account = row.application if row.key is None else f"{row.application}/{row.key}"
        cells = dict(zip(_COLUMNS, _cells(row), strict=True))
        cells["%"] = "" if row.percent is None else f"{row.percent:.1f}"
        table.add_row(Text(account), *(_text(cells[name]) for name in ("period", *columns, "state")))
    return table


def _print_no_figures(why: str, as_json: bool) -> None:
    """Explain why there are no figures. With --json the explanation goes to standard error, and an empty list to
    standard output."""
    if as_json:
        typer.echo("[]")
    typer.echo(why, err=as_json)


def _cells(row: "UsageRow") -> tuple[str | Text, ...]:
    return (
        row.application if row.key is None else "",
        row.key or "",
        row.period,
        f"{row.used:,}",
        f"{row.uncertain:,}" if row.uncertain else "",
        "unlimited" if row.limit is None else f"{row.limit:,}",
        "" if row.remaining is None else f"{row.remaining:,}",
        _bar(row.percent),
        "never" if row.resets_at is None else row.resets_at[:10],
        _state(row),
    )


def _text(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _bar(percent: float | None) -> Text:
    if percent is None:
        return Text("")
    full = min(BAR, round(BAR * percent / 100))
    color = "red" if percent >= _HOT else "yellow" if percent >= _WARM else "green"
    return Text.assemble(("█" * full, color), ("·" * (BAR - full), "dim"), f" {percent:5.1f}")


def _state(row: "UsageRow") -> Text:
    if row.part_limit == 0:
        return Text("no parts in this plan", style="red")  # no date changes that
    if row.exhausted_until is not None:
        return Text(f"exhausted until {row.exhausted_until[:10]}", style="red")
    return Text("exhausted", style="red") if row.remaining == 0 else Text("")
