"""`v3bridge usage`: usage and quota of every application and API key, with --month what each API key has paid and
avoided, and with --clients who still calls. All of it is read from the store that the workers share."""

import datetime
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from proxy import config, errors
from proxy.cli import client_tables, option_fields, shown, used_store
from proxy.kit import clock, event_loop

if TYPE_CHECKING:
    from proxy.gateway.client_report import ClientReport
    from proxy.gateway.quota.chargeback import Chargeback
    from proxy.gateway.quota.usage import UsageRow
    from proxy.stores.protocols import EntryUsage, ExhaustedQuota, Store

R = TypeVar("R")

BAR = 20  # characters of a full bar, which is the whole limit

_NUMBERS = ("used", "uncertain", "limit", "remaining")
_COLUMNS = ("application", "key", "period", *_NUMBERS, "%", "resets", "runs out")
_UNLIMITED = 10_000  # columns of a terminal that any table fits

_WARM, _HOT = 80.0, 95.0  # per cent from which a bar changes its color
_DAYS, _DAYS_MAX = 30, 396  # of the report on clients; the store keeps no more


def usage(
    *,
    config_file: option_fields.ConfigFile = None,
    as_json: option_fields.AsJson = False,
    reopen: Annotated[
        str | None,
        typer.Option(metavar="APP", help="Send requests again for an application with an exhausted quota."),
    ] = None,
    clients: Annotated[
        bool, typer.Option("--clients", help="Print who still calls: API keys with user agents, last seen, requests.")
    ] = False,
    month: Annotated[
        str | None,
        typer.Option(
            metavar="MONTH", help="Print what each API key has used, paid and avoided in it, such as 2026-11."
        ),
    ] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV: with --month a row for each key, with --clients for each day.")
    ] = False,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=_DAYS_MAX, help="With --clients: the last days, today included; 30 if omitted."),
    ] = None,
    since: Annotated[
        datetime.datetime | None,
        typer.Option(formats=["%Y-%m-%d"], metavar="DATE", help="With --clients: the days since then (UTC)."),
    ] = None,
    application: Annotated[
        str | None, typer.Option(metavar="APP", help="With --clients: only API keys of an application.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --clients: an API key, with every endpoint and user agent.")
    ] = None,
    unused: Annotated[
        bool, typer.Option("--unused", help="With --clients: only configured API keys without requests in these days.")
    ] = False,
) -> None:
    """Print parts used and remaining, and when they run out; or usage in a month; or who still calls; or reopen an
    application after its plan has grown."""
    settings = used_store.configured(config_file)
    if [clients, month is not None, reopen is not None].count(True) > 1 or (as_json and as_csv):
        raise typer.BadParameter("only one of --clients, --month and --reopen, and only one of --json and --csv")
    if clients:
        wanted = _WantedClients(_days(days, since), application, key, unused)
        event_loop.run(_clients(settings, wanted, "json" if as_json else "csv" if as_csv else "table"))
        return
    if days or since or application is not None or key is not None or unused:
        raise typer.BadParameter("--days, --since, --application, --key and --unused need --clients")
    if month is not None:
        event_loop.run(_month(settings, month, "json" if as_json else "csv" if as_csv else "table"))
        return
    if as_csv:
        raise typer.BadParameter("--csv needs --month or --clients")
    if reopen is not None and reopen not in settings.applications and not _is_workbook_login(reopen):
        raise typer.BadParameter(f"{reopen!r} is none of {', '.join(settings.applications)}", param_hint="--reopen")
    why = used_store.without_records(settings)
    if why is not None:
        _print_no_figures(why, as_json)
    else:
        event_loop.run(_usage(settings, as_json, reopen))


async def _usage(settings: config.Config, as_json: bool, reopen: str | None) -> None:
    from proxy.gateway.quota import usage as quota_usage
    from proxy.stores import open as opening

    async def read(store: "Store") -> "tuple[list[EntryUsage], list[ExhaustedQuota]]":
        # Before reading, so that the printed table shows the result.
        if reopen is not None:
            await store.clear_exhausted(reopen)
        return await store.all_usage(), await store.exhausted_quotas()

    usages, exhausted = await used_store.with_store(settings, read, reads_only=reopen is None)
    accounts = (*(each.entry.account for each in usages), *(each.account for each in exhausted))
    logins = {account: _login_settings() for account in sorted(accounts) if _is_workbook_login(account)}
    applications = {**logins, **settings.applications}
    rows = quota_usage.rows(applications, usages, exhausted, clock.SystemClock().now())
    if as_json:
        shown.print_json(rows)
        return
    if reopen is not None:
        typer.echo(f"{reopen} is no longer exhausted: requests are sent. Running workers follow within seconds.\n")
    _print_table(rows)
    if not usages and not exhausted:
        _print_no_figures(
            f"The store is empty: nothing has been used yet, or the service runs with another store than "
            f"{opening.location(settings.store).shown}.",
            False,
        )


async def _month(settings: config.Config, month: str, form: str) -> None:
    from proxy.gateway.quota import chargeback

    try:
        chargeback.check_month(month)
    except errors.BadRequest as error:
        raise typer.BadParameter(error.message, param_hint="--month") from error
    if month > f"{datetime.datetime.now(datetime.UTC):%Y-%m}":
        raise typer.BadParameter(f"{month} is in the future", param_hint="--month")
    why = used_store.without_records(settings)
    if why is None:
        made = await used_store.with_store(
            settings, lambda store: chargeback.read(store, settings.applications, month), reads_only=True
        )
        if not made.recorded:
            why = f"No requests are recorded in {month}, so hits and avoided parts are not known."
    else:
        made = chargeback.Chargeback(month, recorded=False, rows=())
    if form == "json":
        shown.print_json(made)
    elif form == "csv":
        typer.echo(made.csv, nl=False)
    elif made.rows:
        _print_month(made)
    if why is not None:
        typer.echo(why, err=form != "table")


def _print_month(made: "Chargeback") -> None:
    table = shown.plain_table(f"Usage in {made.month}, in parts")
    numbers = ("requests", "hits", "paid", "uncertain", "avoided by cache", "by coalescing")
    for name in ("API key", "fingerprint", *numbers):
        table.add_column(name, justify="right" if name in numbers else "left")
    for row in made.rows:
        name = f"{row.application}/{row.key}" if row.key is not None else f"{row.application}, other usage"
        counts = (
            row.requests,
            row.hits,
            row.parts_paid,
            row.uncertain,
            row.avoided_by_cache,
            row.avoided_by_coalescing,
        )
        cells = ("" if count is None else f"{count:,}" for count in counts)
        table.add_row(Text(name), row.fingerprint or "", *cells)
    shown.table_console().print(table)


def _is_workbook_login(account: str) -> bool:
    """Return whether an application is that of a workbook's login, which no configuration has."""
    from proxy.gateway.quota.accounts import WORKBOOK_LOGIN

    # An account with a slash is that of an API key.
    return account.startswith(f"{WORKBOOK_LOGIN}-") and "/" not in account


def _login_settings() -> config.ApplicationSettings:
    from proxy.gateway.quota.accounts import WORKBOOK_LOGIN

    # No client has this API key: usage is counted by the names of application and key.
    key = config.ApiKeySettings(config.digest(WORKBOOK_LOGIN), name=WORKBOOK_LOGIN)
    return config.ApplicationSettings(apikeys=(key,))


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
    shown.add_columns(table, "account", "period", *columns, "runs out", right=columns, fold=("account", "runs out"))
    for row in rows:
        account = row.application if row.key is None else f"{row.application}/{row.key}"
        cells = dict(zip(_COLUMNS, _cells(row), strict=True))
        cells["%"] = "" if row.percent is None else f"{row.percent:.1f}"
        table.add_row(Text(account), *(_text(cells[name]) for name in ("period", *columns, "runs out")))
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
        ("unlimited" if row.limit is None else f"{row.limit:,}") + (f", leaves {row.leaves:,}" if row.leaves else ""),
        "" if row.remaining is None else f"{row.remaining:,}",
        _bar(row.percent),
        "never" if row.resets_at is None else row.resets_at[:10],
        _expected_end(row),
    )


def _text(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _bar(percent: float | None) -> Text:
    if percent is None:
        return Text("")
    full = min(BAR, round(BAR * percent / 100))
    color = "red" if percent >= _HOT else "yellow" if percent >= _WARM else "green"
    return Text.assemble(("█" * full, color), ("·" * (BAR - full), "dim"), f" {percent:5.1f}")


def _expected_end(row: "UsageRow") -> Text:
    if row.part_limit == 0:
        return Text("no parts in this plan", style="red")  # no date changes that
    if row.exhausted_until is not None:
        until = "" if row.exhausted_until == "ever" else f" until {row.exhausted_until[:10]}"
        return Text(f"exhausted{until}", style="red")
    if row.remaining == 0:
        return Text("exhausted", style="red")
    if row.runs_out_at is not None:
        return Text(row.runs_out_at[:10], style="yellow")
    return Text("" if row.limit is None else "not before the reset" if row.resets_at else "not at this rate")


class _WantedClients(NamedTuple):
    """Clients that are printed: of so many days, of an application, with a name, or those without requests."""

    days: int
    application: str | None
    key: str | None
    unused: bool

    def of(self, report: "ClientReport") -> "ClientReport":
        """Return the report on these clients. Raises BadParameter where a name is unknown."""
        clients = report.clients
        for field, name in (("application", self.application), ("key", self.key)):
            if name is not None:
                known = sorted({getattr(each, field) for each in clients if each.key is not None})
                clients = [each for each in clients if getattr(each, field) == name]
                if not clients:
                    raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint=f"--{field}")
        if self.unused:
            clients = [each for each in clients if each.configured and not each.requests]
        return msgspec.structs.replace(report, clients=clients)


def _days(days: int | None, since: datetime.datetime | None) -> int:
    """Return the number of days to read, today included."""
    if since is None:
        return days or _DAYS
    if days is not None:
        raise typer.BadParameter("only one of --days and --since")
    number = (datetime.datetime.now(datetime.UTC).date() - since.date()).days + 1
    if number < 1:
        raise typer.BadParameter("must not be in the future", param_hint="--since")
    return min(number, _DAYS_MAX)


async def _clients(settings: config.Config, wanted: _WantedClients, form: str) -> None:
    from proxy.gateway import client_report

    now, why = clock.SystemClock().now(), used_store.without_records(settings)
    if not settings.clients.days:
        why = "`clients.days: 0` records nothing."
    if why is None:
        everything = await used_store.with_store(
            settings, lambda store: client_report.read(store, settings.applications, wanted.days, now), reads_only=True
        )
        report = wanted.of(everything)
    else:
        typer.echo(why, err=form != "table")
        report = client_report.ClientReport(*client_report.day_names(wanted.days, now), None, [])
    if form == "json":
        shown.print_json(report)
    elif form == "csv":
        for text in client_report.csv_chunks(report):
            typer.echo(text, nl=False)
    elif why is None:
        client_tables.show(report, unused=wanted.unused, details=wanted.key is not None)
