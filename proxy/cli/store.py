"""`v3bridge store`: copies of the store, to put back or to read."""

import csv
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from proxy import config, errors
from proxy.cli import option_fields, spending, used_store
from proxy.kit import event_loop
from proxy.kit.wording import counted, printable, rfc3339

if TYPE_CHECKING:
    from proxy.stores.protocols import Store

app = typer.Typer(help="The store: export, backup, restore.", no_args_is_help=True)

LINES_MAX = 10  # quota accounts that a restore lists
DAYS = 400  # more than the service keeps

Kind = Literal["usage", "exhausted", "months", "callers", "days", "unsupported", "unknown-keys"]
Rows = Iterable[Sequence[Any]]


async def _usage(store: "Store") -> Rows:
    return [(*each.entry, each.used, each.uncertain, each.reserved) for each in await store.all_usage()]


async def _exhausted(store: "Store") -> Rows:
    return [(each.account, rfc3339(each.until), each.reason) for each in await store.exhausted_quotas()]


async def _months(store: "Store") -> Rows:
    today = datetime.now(UTC).date()
    months = sorted({f"{today - timedelta(days):%Y-%m}" for days in range(DAYS)})
    return [row for month in months for row in await store.monthly_requests(month)]


async def _callers(store: "Store") -> Rows:
    return [(*each.caller, rfc3339(each.first), rfc3339(each.last)) for each in sorted(await store.callers())]


async def _days(store: "Store") -> Rows:
    today = int(time.time() // 86_400)
    _, counts = await store.caller_usage(today - DAYS, today)
    epoch = date(1970, 1, 1)
    return [
        (f"{epoch + timedelta(each.day)}", *each.caller, each.requests, each.errors, each.parts)
        for each in sorted(counts)
    ]


async def _unsupported(store: "Store") -> Rows:
    return [(*each[:4], rfc3339(each.first), rfc3339(each.last)) for each in await store.unsupported_uses()]


async def _unknown_keys(store: "Store") -> Rows:
    return [
        (each.digest, each.address, each.user_agent, rfc3339(each.first), rfc3339(each.last), each.requests)
        for each in await store.unknown_keys()
    ]


_CALLER = ("application", "key", "endpoint", "user_agent")

KINDS: dict[Kind, tuple[tuple[str, ...], Callable[["Store"], Awaitable[Rows]]]] = {
    "usage": (("account", "period", "used", "uncertain", "reserved"), _usage),
    "exhausted": (("account", "until", "reason"), _exhausted),
    "months": (("month", "application", "key", "requests", "hits", "cached", "coalesced"), _months),
    "callers": ((*_CALLER, "first_seen", "last_seen"), _callers),
    "days": (("day", *_CALLER, "requests", "errors", "parts"), _days),
    "unsupported": (("application", "key", "name", "requests", "first_seen", "last_seen"), _unsupported),
    "unknown-keys": (("digest", "address", "user_agent", "first_seen", "last_seen", "requests"), _unknown_keys),
}
"""Columns and reader of each kind of records."""


@app.command("export")
def export(
    config_file: option_fields.ConfigFile = None,
    as_csv: Annotated[
        Kind | None,
        typer.Option("--csv", help="Print CSV, of one kind of records."),
    ] = None,
) -> None:
    """Print the records of the store: usage, callers, unknown keys. A JSON object a line; times
    are UTC.

    Access tokens and the response cache are not among them.
    """
    settings = used_store.configured(config_file)
    if (why := used_store.without_records(settings)) is not None:
        raise errors.ConfigError(why)
    event_loop.run(used_store.with_store(settings, lambda store: _export(store, as_csv), reads_only=True))


@app.command("backup")
def backup(
    target: Annotated[
        Path, typer.Argument(metavar="FILE", help="The copy, or a folder, in which it is named by the time.")
    ],
    config_file: option_fields.ConfigFile = None,
) -> None:
    """Copy the SQLite store while the service runs. Access tokens are left out unless `store_key` encrypts them."""
    from proxy.stores import backup as backups
    from proxy.upstream.auth.token_store import ENCRYPTED_PREFIX

    store = _file(used_store.configured(config_file))
    if target.is_dir():
        target /= f"v3bridge-{time.strftime('%Y%m%dT%H%M%S')}.sqlite"
    backups.back_up(store, target, ENCRYPTED_PREFIX)
    typer.echo(f"{printable(str(target))}: {target.stat().st_size:,} bytes")


@app.command("restore")
def restore(
    backup_file: Annotated[Path, typer.Argument(metavar="FILE", help="A copy that `store backup` has made.")],
    config_file: option_fields.ConfigFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the store is overwritten.")] = False,
) -> None:
    """Replace the SQLite store with a copy, while no service uses it. Says first what is lost.

    The exit code is 0, 1 if it was declined, and 2 if it is not possible.
    """
    from proxy.stores import backup as backups
    from proxy.stores import open as opening

    settings = used_store.configured(config_file)
    store = _file(settings)
    if (folder := opening.missing_folder(store)) is not None:
        raise errors.ConfigError(f"store: the folder {folder} does not exist; {opening.make_command(folder)}")
    with backups.restoration(backup_file, store) as restoration:
        lost = restoration.lost_usage()
        entries = counted(restoration.entries, "ledger entry", "ledger entries")
        _say(f"{store} is overwritten: usage, callers. The backup has {entries}.")
        for entry, stored, restored in lost[:LINES_MAX]:
            _say(f"  {entry.account} {entry.period}: {stored:,} parts used, {restored:,} in the backup")
        if len(lost) > LINES_MAX:
            _say(f"  and {len(lost) - LINES_MAX} more")
        if lost:
            _say("Nexar has billed these parts all the same: set `parts` lower, or reconcile.")
        if not spending.confirmed("Restore?", yes=yes):
            raise typer.Exit(1)
        restoration.restore()
    typer.echo(f"{printable(str(store))}: restored")


def _say(text: str) -> None:
    typer.echo(printable(text), err=True)


def _file(settings: config.Config) -> Path:
    """Return the file of the store. Raises ConfigError for another kind of store."""
    from proxy.stores import open as opening

    if (why := used_store.without_records(settings)) is not None:
        raise errors.ConfigError(why)
    file = opening.file_of(settings.store)
    if file is None:
        raise errors.ConfigError(
            f"store: {settings.store.shown} has backups of its own: copy the files of Redis (RDB or AOF); "
            "`v3bridge store export` reads it"
        )
    return file


async def _export(store: "Store", as_csv: Kind | None) -> None:
    from proxy.gateway.client_report import inert

    for kind, (columns, read) in KINDS.items():
        if as_csv is None:
            for row in await read(store):
                typer.echo(msgspec.json.encode({"record": kind, **dict(zip(columns, row, strict=True))}))
        elif kind == as_csv:
            writer = csv.writer(sys.stdout)
            writer.writerow(columns)
            writer.writerows(
                [inert(each) if isinstance(each, str) else each for each in row] for row in await read(store)
            )
