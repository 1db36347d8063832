"""`v3bridge keys`: the API keys of the configuration, changed in its file, and those that no application has."""

import datetime
import os
from typing import TYPE_CHECKING, Annotated

import typer

from proxy import config, errors
from proxy.cli import option_fields, reload, shown, used_store
from proxy.config import key_changes, own_file
from proxy.kit import clock, event_loop, shipped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from proxy.gateway.key_report import ApiKeyRow, UnknownKeyRow
    from proxy.telemetry.callers import UnknownKey

app = typer.Typer(help="The API keys of clients.", no_args_is_help=True)

_Key = Annotated[str, typer.Argument(metavar="APP/NAME", help="Application and name of the key.")]
_Print = Annotated[bool, typer.Option("--print", help="Print what to paste, and write nothing.")]
_Date = typer.Option(formats=["%Y-%m-%d"], metavar="DATE", help="Its last day of service (UTC).")


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
        rows = key_report.unknown_rows(_unknown_keys(settings))
    else:
        typer.echo(why, err=as_json)
    if as_json:
        shown.print_json(rows)
    elif why is None:
        _print_unknown(rows)


@app.command("add")
def add(
    key: _Key,
    *,
    config_file: option_fields.ConfigFile = None,
    expires: Annotated[datetime.datetime | None, _Date] = None,
    given: Annotated[
        str | None,
        typer.Option("--key", metavar="env:NAME|file:PATH", help="The key itself; a new one is made if omitted."),
    ] = None,
    unknown: Annotated[
        str | None, typer.Option(metavar="FINGERPRINT", help="A key that `keys unknown` lists, instead of a new one.")
    ] = None,
    print_only: _Print = False,
) -> None:
    """Add an API key to an application: a new one, which is printed once, or one that programs send already.

    The file of the configuration keeps its comments, and gets the SHA-256 of the key. The running service is reloaded.
    """
    if given is not None and unknown is not None:
        raise typer.BadParameter("only one of --key and --unknown")
    application, name = _named(key)
    plain = option_fields.read_key(given, "--key")
    made = key_changes.new_key() if plain is None and unknown is None else None

    def change(settings: config.Config) -> key_changes.KeyChange:
        digest = config.digest(made or (plain.reveal() if plain else ""))
        if unknown is not None:
            digest = _found(settings, unknown)
        new = config.ApiKeySettings(digest, name=name, expires=expires.date() if expires else None)
        return key_changes.adding(settings, application, new)

    _change(config_file, change, f"{key} is added", print_only, made)


@app.command("rotate")
def rotate(
    key: _Key,
    config_file: option_fields.ConfigFile = None,
    name: Annotated[str, typer.Option(help="Name of the new key; that of the old one with a number if omitted.")] = "",
    expires: Annotated[
        datetime.datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="DATE",
            help=f"Last day of the old key (UTC); {key_changes.GRACE_DAYS} days from now if omitted.",
        ),
    ] = None,
    print_only: _Print = False,
) -> None:
    """Add a new API key with the limits of another one, and let the old one work for some days. The new key is printed
    once."""
    application, old = _named(key)
    made = key_changes.new_key()
    last_day = expires.date() if expires else _today() + datetime.timedelta(key_changes.GRACE_DAYS)

    def change(settings: config.Config) -> key_changes.KeyChange:
        return key_changes.rotating(
            settings, application, old, digest=config.digest(made), new_name=name, last_day=last_day
        )

    _change(config_file, change, f"{key} works until {last_day}, and has a successor", print_only, made)


@app.command("expire")
def expire(
    key: _Key,
    day: Annotated[str, typer.Argument(metavar="DATE|never", help="Its last day of service (UTC).")],
    config_file: option_fields.ConfigFile = None,
    print_only: _Print = False,
) -> None:
    """Give an API key a last day of service, after which it gets a 403 that says so; or take it away."""
    try:
        last_day = None if day == "never" else datetime.date.fromisoformat(day)
    except ValueError:
        raise typer.BadParameter(f"{day!r} is neither a date such as 2027-01-31 nor never", param_hint="DATE") from None
    done = f"{key} has no last day" if last_day is None else f"{key} works until {last_day}"
    _end(config_file, key, last_day, done, print_only)


@app.command("disable")
def disable(
    key: _Key,
    config_file: option_fields.ConfigFile = None,
    print_only: _Print = False,
) -> None:
    """Refuse an API key from now on: its last day was yesterday. `keys expire APP/NAME never` enables it again."""
    _end(config_file, key, _today() - datetime.timedelta(1), f"{key} is disabled", print_only)


def _end(config_file: "Path | None", key: str, last_day: datetime.date | None, done: str, print_only: bool) -> None:
    application, name = _named(key)
    _change(config_file, lambda settings: key_changes.ending(settings, application, name, last_day), done, print_only)


def _change(
    config_file: "Path | None",
    change: "Callable[[config.Config], key_changes.KeyChange]",
    done: str,
    print_only: bool,
    made: str | None = None,
) -> None:
    """Change the file and reload the running service, or print what to paste. `made` is a new key, which is shown."""
    from proxy.workers import control

    file = config_file or shipped.path("config.yaml")
    settings = own_file.load(file, os.environ)
    try:
        wanted = change(settings)
    except errors.BadRequest as error:
        raise errors.ConfigError(error.message) from error
    if wanted.note:
        typer.echo(f"v3bridge: {wanted.note}", err=True)
    if print_only:
        typer.echo(wanted.lines(settings))
        _print_new_key(made)
        return
    try:
        own_file.write(file, wanted, settings, os.environ)
    except own_file.ManagedElsewhere as error:
        typer.echo(f"v3bridge: {error.message}. Where it is managed, write\n", err=True)
        typer.echo(wanted.lines(settings))
        _print_new_key(made)
        raise typer.Exit(1) from None
    typer.echo(f"{done}: {file} is changed.")
    _print_new_key(made)
    used = used_store.service_settings(settings, config_file)
    event_loop.run(used_store.record(used, "keys", f"file={file.absolute()}", done))
    results = control.reload_services(file)
    for process, result in results.items():
        reload.show(result, process)
    if not results:
        typer.echo("No service of this user runs with this file: the change takes effect with the next start.")
    if any(result.outcome == "failed" for result in results.values()):
        raise typer.Exit(1)


def _print_new_key(made: str | None) -> None:
    if made is not None:
        typer.echo(f"\nThe new API key, which is shown only here:\n\n    {made}\n")


def _named(key: str) -> tuple[str, str]:
    application, separator, name = key.partition("/")
    if not (application and separator and name):
        raise typer.BadParameter(f"{key!r} is not APP/NAME, such as demo/erp", param_hint="APP/NAME")
    return application, name


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def _unknown_keys(settings: config.Config) -> "dict[str, UnknownKey]":
    from proxy.gateway import key_report

    return event_loop.run(
        used_store.with_store(
            settings, lambda store: key_report.unknown_keys(store, settings.applications), reads_only=True
        )
    )


def _found(settings: config.Config, fingerprint: str) -> config.Digest:
    """Return the digest of an unknown key."""
    from proxy.gateway import key_report

    if (why := used_store.without_records(settings)) is not None:
        raise errors.ConfigError(why)
    return key_report.unknown_digest(_unknown_keys(settings), fingerprint)


def _print_keys(rows: "list[ApiKeyRow]") -> None:
    table = shown.plain_table("API keys")
    shown.add_columns(table, "key", "parts", "rate", "state", right=("parts", "rate"), fold=("key",))
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
    columns = ("key", "requests", "first seen", "last seen", "address", "user agent")
    shown.add_columns(table, *columns, right=("requests",), fold=("user agent",))
    for row in rows:
        seen = (time[:16].replace("T", " ") for time in (row.first_seen, row.last_seen))
        cells = row.fingerprint, f"{row.requests:,}", *seen, row.address, row.user_agent or "(none)"
        table.add_row(*map(shown.visible, cells))
    shown.table_console().print(table)
    typer.echo(
        "A key is named by the first hex digits of its SHA-256: printf %s KEY | sha256sum. Times are UTC, and counts "
        "are written every 10 seconds."
    )
