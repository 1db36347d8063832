"""`v3bridge usage`: usage and limits of every application and API key, by day, and with --clients who still calls. Read
from the store that the workers share, which --set and --forget-results change."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import structlog
import typer

from proxy import config, errors
from proxy import log as logging
from proxy.cli import option_fields, shown, spending
from proxy.kit import clock
from proxy.kit.wording import counted

if TYPE_CHECKING:
    from proxy.gateway.core import StoredState

R = TypeVar("R")

DAYS = 7  # whose parts are shown


def client_name(row: dict[str, Any]) -> str:
    """Return the name of the application or API key that a row is about."""
    if not row["application"]:
        return "(no valid API key)"
    return f"{row['application']}/{row['key']}" if row["key"] else row["application"]


def endpoints(row: dict[str, Any]) -> str:
    return ", ".join(row["endpoints"])


def _state(row: dict[str, Any]) -> str:
    if row["part_limit"] == 0:
        return "no parts in this plan"  # no date changes that
    if row["exhausted_until"] is not None:
        return f"exhausted until {row['exhausted_until'][:10]}"
    return "exhausted" if row["remaining"] == 0 else ""


COLUMNS: dict[str, shown.Column] = {
    "parts of": client_name,
    **{name: name for name in ("period", "used", "uncertain", "limit", "remaining")},
    "%": "percent",
    "resets": lambda row: (row["resets_at"] or "never")[:10],
    "state": _state,
}

log = structlog.get_logger()


def usage(
    *,
    application: Annotated[str | None, typer.Argument(help="With --forget-results: only those of this one.")] = None,
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
        bool, typer.Option("--forget-results", help="Say what stored results cost, ask, and delete them.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before results are deleted.")] = False,
) -> None:
    """Print parts used and remaining by application, API key and day, or who still calls."""
    settings = option_fields.configured(config_file)
    if [clients, set_ is not None, forget_results].count(True) > 1:
        raise typer.BadParameter("only one of --clients, --set and --forget-results")
    if application is not None and not forget_results:
        raise typer.BadParameter("an application is named for --forget-results only", param_hint="APPLICATION")
    why = _nothing_stored(settings)
    if why and (set_ is not None or forget_results):
        raise errors.ConfigError(f"store: {why}")
    logging.configure("info", settings.log.format, sys.stderr)
    if forget_results:
        _forget_results(settings, application, yes)
        return
    if set_ is not None:
        _set(settings, set_)
    if why:
        typer.echo("[]" if as_json else why)
        return
    read: Callable[[StoredState], Awaitable[Any]] = _clients if clients else _usage
    found = _with_state(settings, read)
    shown.print_result(found, _client_lines(found) if clients else _usage_lines(found, settings.store.shown), as_json)


def _nothing_stored(settings: config.Config) -> str:
    """Return why usage outlives no service; nothing where it does."""
    if settings.upstream == "sandbox":
        return "`upstream: sandbox` starts with no usage each time, and stores none: see `v3bridge status`."
    if settings.store.reveal() == "memory:":
        return "`store: memory:` is only in the memory of the running service: see `v3bridge status`."
    return ""


def _with_state(settings: config.Config, work: "Callable[[StoredState], Awaitable[R]]") -> R:
    """Return what `work` does with the stored state of a configuration. Raises ConfigError where it cannot be used."""
    from proxy.gateway.core import StoredState

    async def run() -> R:
        state = await StoredState.open(settings, clock.SystemClock())
        try:
            return await work(state)
        except errors.StoreUnavailable as error:
            raise errors.ConfigError(f"store: {error.message}") from error
        finally:
            await state.aclose()

    return asyncio.run(run())


async def _usage(state: "StoredState") -> list[dict[str, Any]]:
    """Return the usage of each application and API key in its period, with its parts by day."""
    days = await state.parts_by_day(DAYS)
    return [msgspec.to_builtins(row) | {"days": days.get(row.name, {})} for row in await state.usage()]


def _usage_lines(rows: list[dict[str, Any]], store: str) -> Iterator[shown.Line]:
    yield shown.table(rows, COLUMNS)
    days = sorted({day for row in rows for day in row["days"]})
    by_day = [{"account": client_name(row)} | dict.fromkeys(days) | row["days"] for row in rows if days]
    yield shown.table(by_day, {"parts by day": "account"} | {day: day for day in days})
    if not any(row["used"] or row["uncertain"] or row["reserved"] or row["exhausted_until"] for row in rows):
        yield f"Nothing was used in these periods, or the service has another store than {store}."


def _set(settings: config.Config, text: str) -> None:
    """Replace the usage of an application's current period. Raises BadParameter and ConfigError."""
    name, _, number = text.rpartition("=")
    if not (number.isascii() and number.isdigit() and int(number) <= config.PARTS_MAX):
        example = f"{name or 'APPLICATION'}=250"
        raise typer.BadParameter(f"{number!r} is not a number of parts, such as {example}", param_hint="--set")
    try:
        before = _with_state(settings, lambda state: state.set_usage(name, int(number)))
    except LookupError:
        known = ", ".join(settings.applications)
        raise typer.BadParameter(f"{name!r} is none of {known}", param_hint="--set") from None
    counts = {"used_before": before.used, "uncertain_before": before.uncertain, "used": int(number)}
    log.info("usage set", quota_account=name, period=before.period, **counts)
    entry = settings.applications.get(name)
    keys = {} if entry is None else {f"{name}/{key}": entry.parts_of(each) for key, each in entry.clients.items()}
    if limited := [key for key, limit in keys.items() if limit is not None]:
        typer.echo(f"API keys have limits of their own, whose usage is set alone: {', '.join(limited)}", err=True)


def _forget_results(settings: config.Config, application: str | None, yes: bool) -> None:
    """Say what the stored results of an application, or of all, cost; ask, and delete them. Running services drop those
    in memory. Raises BadParameter and ConfigError."""
    if application is not None and application not in settings.applications:
        known = ", ".join(settings.applications)
        raise typer.BadParameter(f"{application!r} is none of {known}", param_hint="APPLICATION")
    whose = f"{application}, and others with its client id" if application else "all applications"
    parts = counted(_with_state(settings, lambda state: state.stored_parts(application)), "part")
    spending.say(f"The store has {parts} of {whose}, free for a day; to fetch them again costs as many.")
    if not spending.confirmed("Forget them?", yes=yes):
        raise typer.Exit(1)
    deleted = _with_state(settings, lambda state: state.forget_results(application))
    log.info("results forgotten", parts=deleted, application=application or "all")
    typer.echo(f"{counted(deleted, 'part')} forgotten; running services follow within a second.")


async def _clients(state: "StoredState") -> dict[str, Any]:
    """Return the programs that called, the most requests first, with what they lost, and the API keys."""
    from proxy.web import status

    programs = sorted(status.clients(await state.clients()), key=lambda each: -each["requests"])
    keys = []
    for row in await state.usage():
        if row.key is not None:
            own = [each for each in programs if (each["application"], each["key"]) == (row.application, row.key)]
            key = {"application": row.application, "key": row.key, "parts": row.used}
            key["requests"] = sum(each["requests"] for each in own)
            keys.append(key | {"last_seen": max((each["last_seen"] for each in own), default=None)})
    return {"first_day": state.first_day().isoformat(), "clients": programs, "keys": keys}


def _client_lines(found: dict[str, Any]) -> Iterator[shown.Line]:
    last: dict[str, shown.Column] = {"requests": "requests", "last": lambda row: (row["last_seen"] or "never")[:10]}
    yield shown.table(found["keys"], {"API key": client_name, "parts": "parts", **last})
    program: dict[str, shown.Column] = {f"clients since {found['first_day']}": client_name, "endpoints": endpoints}
    program |= {"user agent": "user_agent", **last, "unsupported uses": lambda row: ", ".join(row["unsupported"])}
    yield shown.table(found["clients"], program)
