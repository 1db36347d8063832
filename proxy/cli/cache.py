"""`v3bridge cache`: the shared response cache: what it holds, and deletion."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer
from rich.table import Table

from proxy import config, errors
from proxy.cli import option_fields, shown, spending, used_store
from proxy.kit import clock, event_loop
from proxy.kit.wording import counted

if TYPE_CHECKING:
    from proxy.stores.protocols import CacheStore, CacheUsage

app = typer.Typer(help="The shared response cache.", no_args_is_help=True)

T = TypeVar("T")


class CacheRow(msgspec.Struct):
    """Entries of one application; ages in seconds."""

    application: str
    entries: int
    bytes: int
    oldest_age: float
    newest_age: float


@app.command("stats")
def stats(
    config_file: option_fields.ConfigFile = None,
    as_json: option_fields.AsJson = False,
) -> None:
    """Print entries, bytes and ages of the shared cache by application."""
    settings = used_store.configured(config_file)
    usages = _with_cache(settings, lambda cache: cache.cache_usage())
    now = clock.SystemClock().now()
    rows = [_row(usage, now) for usage in usages]
    if as_json:
        shown.print_json(rows)
    else:
        _print_table(rows, settings.cache)


@app.command("clear")
def clear(
    config_file: option_fields.ConfigFile = None,
    application: Annotated[
        str | None, typer.Option(metavar="NAME", help="Delete only the entries of this application.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before results are deleted that cost parts.")] = False,
) -> None:
    """Delete the shared cache, or one application's entries, and what running workers have of them in memory. Says
    first what costs parts again. The exit code is 1 if it was declined."""
    settings = used_store.configured(config_file)
    if application is not None and application not in settings.applications:
        raise typer.BadParameter(
            f"{application!r} is none of {', '.join(settings.applications)}", param_hint="--application"
        )
    usages = _with_cache(settings, lambda cache: cache.cache_usage())
    entries = sum(usage.entries for usage in usages if application in (None, usage.application))
    spending.say(
        f"{counted(entries, 'entry', 'entries')} of the shared cache, and results in the memory of workers: a query "
        "costs its parts again when it is next requested."
    )
    if not spending.confirmed("Clear?", yes=yes):
        raise typer.Exit(1)
    deleted = _with_cache(settings, lambda cache: _clear(settings, cache, application))
    typer.echo(f"{counted(deleted, 'entry', 'entries')} deleted")


async def _clear(settings: config.Config, cache: "CacheStore", application: str | None) -> int:
    from proxy.gateway.cache import clearing

    # The shared cache first: a process whose memory is cleared would read its entries again.
    deleted = await cache.clear(application)
    await used_store.with_store(settings, lambda store: clearing.note_clearing(store, application))
    return deleted


def _with_cache(settings: config.Config, work: "Callable[[CacheStore], Awaitable[T]]") -> T:
    """Open the shared cache of a configuration, and return the result of `work`. Raises ConfigError."""
    from proxy.stores import open as opening

    store = None
    if settings.upstream != "sandbox":
        store = opening.open_cache(settings.store, settings.cache.shared_bytes, 0.0, clock.SystemClock())
    if store is None:
        raise errors.ConfigError("store: nothing is shared with `upstream: sandbox` or `store: memory:`")
    return event_loop.run(used_store.use(store, work))


def _row(usage: "CacheUsage", now: float) -> CacheRow:
    ages = (round(max(0.0, now - stored), 1) for stored in (usage.oldest, usage.newest))
    return CacheRow(usage.application, usage.entries, usage.bytes, *ages)


def _print_table(rows: list[CacheRow], settings: config.CacheSettings) -> None:
    """Print a row per application, and the sum with the limit below it."""
    table = Table(title="Shared response cache")
    numbers = ("entries", "bytes", "oldest (s)", "newest (s)")
    shown.add_columns(table, "application", *numbers, right=numbers)
    for row in rows:
        table.add_row(
            row.application, f"{row.entries:,}", f"{row.bytes:,}", f"{row.oldest_age:,.0f}", f"{row.newest_age:,.0f}"
        )
    shown.table_console().print(table)
    entries, used = sum(row.entries for row in rows), sum(row.bytes for row in rows)
    state = "" if settings.shared and settings.enabled else " It is switched off in this configuration."
    typer.echo(f"{entries:,} entries, {used:,} of {settings.shared_bytes:,} bytes.{state}")
