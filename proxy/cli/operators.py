"""`v3bridge status` and `v3bridge usage`: what a running service says of itself, and what its store has of parts, days
and clients. `--set` and `--forget-results` change the store."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec
import structlog
import typer

from proxy import config, doctor, errors
from proxy import log as logging
from proxy.cli import commands
from proxy.gateway import StoredState
from proxy.kit import clock, counted, duration, printable
from proxy.web import operators, ports

T = TypeVar("T")
Row = dict[str, Any]

ROWS = 5  # of clients, unknown API keys and failures in a status
NEARLY_USED = 0.8  # share of a limit from which --check names it
DAYS = 7  # whose parts are shown
NOT_STORED = {  # where usage outlives no service
    "sandbox": "`upstream: sandbox` starts with no usage each time, and stores none: see `v3bridge status`.",
    "memory:": "`store: memory:` is only in the memory of the running service: see `v3bridge status`.",
}

log = structlog.get_logger()


def _name(row: Row) -> str:
    """Return the name of the application or API key that a row is about."""
    if not row["application"]:
        return "(no valid API key)"
    return f"{row['application']}/{row['key']}" if row["key"] else row["application"]


def _quota_state(row: Row) -> str:
    if row["part_limit"] == 0:
        return "no parts in this plan"  # no date changes that
    if row["exhausted_until"] is not None:
        return f"exhausted until {row['exhausted_until'][:10]}"
    return "exhausted" if row["remaining"] == 0 else ""


USAGE: dict[str, commands.Column] = {
    "parts of": _name,
    **{name: name for name in ("period", "used", "uncertain", "limit", "remaining")},
    "%": "percent",
    "resets": lambda row: (row["resets_at"] or "never")[:10],
    "state": _quota_state,
}
ENDPOINTS: dict[str, commands.Column] = {"endpoints": lambda row: ", ".join(row["endpoints"])}


def status(
    config_file: commands.ConfigFile = None,
    admin_port: commands.AdminPort = None,
    as_json: commands.AsJson = False,
    check: Annotated[bool, typer.Option("--check", help="Only what needs an operator; exit code 1 then.")] = False,
) -> None:
    """Print the state of the service: ready or why not, parts used and left, upstream, who calls, failures.

    The exit code is 0, 1 if it is not ready, and 2 if no service responds.
    """
    settings = commands.configured(config_file)
    admin = settings.admin
    if not admin:
        raise errors.ConfigError("the operators' port has the state of the service: remove `admin: false`")
    url = f"http://{ports.shown(admin.host, admin.port if admin_port is None else admin_port)}"
    found = doctor.read_state(f"{url}/status", admin.token)
    if not found:
        why = "an admin.token that this configuration does not have: name its own with --config"
        raise errors.ConfigError(f"{url}/status is of a v3bridge with {why}")
    if config_file is not None and (other := operators.another(found, settings)):
        own = f"the service of {config_file} needs an operators' port of its own: {ports.OPERATORS_OPTIONS}"
        raise errors.ConfigError(f"{other}, responds at {url}/status; {own}")
    if check:
        wrong = [printable(reason) for reason in reasons(found)]
        typer.echo("\n".join(wrong) or "nothing needs an operator")
        raise typer.Exit(int(bool(wrong)))
    state, running = "ready" if found["ready"] else "not ready", duration(found["uptime_seconds"])
    program, unknown = {"program": "user_agent", "last": "last_seen"}, {"unknown API keys": "fingerprint"}
    failed = {"last failures": "at"} | {name: name for name in ("request", "route", "status", "error")}
    lines: list[commands.Line] = [
        f"{state}, operators' port {url}, version {found['version']}, up {running}",
        *(commands.visible(reason, "red") for reason in reasons(found)),
        commands.table(found["usage"], USAGE),
        commands.table(found["clients"][:ROWS], {"last calls": _name} | ENDPOINTS | program),
        commands.table(found["unknown_keys"][:ROWS], unknown | {"address": "address"} | program),
        commands.table(found["failures"][:ROWS], failed | {"client": _name}),
    ]
    commands.print_result(found, lines, as_json)
    raise typer.Exit(int(not found["ready"]))


def reasons(read: Row) -> Iterator[str]:
    """Yield why a service needs an operator: for scripts, timers and monitoring without Prometheus."""
    yield from (f"not ready: {failed['check']}: {failed['reason']}" for failed in read["reasons"])
    known = {None, *(failed["reason"] for failed in read["reasons"])}
    for token in read["tokens"]:
        if token["refusal"] not in known:
            yield f"credentials of {token['application']} refused: {token['refusal']}"
    yield from (f"circuit breaker of {name} {state}" for name, state in read["breakers"].items() if state != "closed")
    for row in read["usage"]:
        name, used = _name(row), row["used"] + row["uncertain"]
        if row["exhausted_until"]:
            yield f"{name} exhausted until {row['exhausted_until']}: the upstream refuses its requests"
        elif row["limit"] and used >= NEARLY_USED * row["limit"]:
            limit = counted(row["limit"], "part")
            yield f"{name} has used {used:,} of {limit} ({row['period']}): {used / row['limit']:.0%}"


def usage(
    *,
    application: Annotated[str | None, typer.Argument(help="With --forget-results: only those of this one.")] = None,
    config_file: commands.ConfigFile = None,
    as_json: commands.AsJson = False,
    clients: Annotated[bool, typer.Option("--clients", help="Who called in 30 days, and what they lose.")] = False,
    set_: Annotated[
        str | None,
        typer.Option(
            "--set", metavar="APPLICATION=N", help="Replace used parts by what the portal shows; or APPLICATION/KEY=N."
        ),
    ] = None,
    forget_results: Annotated[
        bool, typer.Option("--forget-results", help="Say what stored results cost, ask, and delete them.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before results are deleted.")] = False,
) -> None:
    """Print parts used and remaining by application, API key and day, or who still calls."""
    # Who calls, and the results of all, are found without the account of an application.
    settings = commands.configured(config_file, accounts=application is not None or not (clients or forget_results))
    if [clients, set_ is not None, forget_results].count(True) > 1:
        raise typer.BadParameter("only one of --clients, --set and --forget-results")
    if application is not None and not forget_results:
        raise typer.BadParameter("an application is named for --forget-results only", param_hint="APPLICATION")
    why = NOT_STORED.get("sandbox" if settings.upstream == "sandbox" else settings.store.reveal())
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
    listing = _clients if clients else partial(_usage, store=settings.store.shown)
    commands.print_result(*asyncio.run(_with_state(settings, listing)), as_json)


async def _with_state(settings: config.Config, work: Callable[[StoredState], Awaitable[T]]) -> T:
    """Return what `work` does with the stored state of a configuration. Raises StartError where it cannot be used."""
    async with StoredState.open(settings, clock.Clock()) as state:
        try:
            return await work(state)
        except errors.StoreUnavailable as error:
            raise errors.StartError(f"store: {error}") from error


async def _usage(state: StoredState, store: str) -> tuple[Any, list[commands.Line]]:
    """Return the usage of each application and API key in its period, with its parts by day, and the lines for it."""
    by_day = await state.parts_by_day(DAYS)
    rows = [msgspec.to_builtins(row) | {"days": by_day.get(row.name, {})} for row in await state.usage()]
    days = sorted({day for row in rows for day in row["days"]})
    named = [{"account": _name(row)} | dict.fromkeys(days) | row["days"] for row in rows if days]
    columns: dict[str, commands.Column] = {"parts by day": "account"} | {day: day for day in days}
    lines: list[commands.Line] = [commands.table(rows, USAGE), commands.table(named, columns)]
    if not any(row["used"] or row["uncertain"] or row["reserved"] or row["exhausted_until"] for row in rows):
        lines.append(f"Nothing was used in these periods, or the service has another store than {store}.")
    try:
        await state.check()
    except errors.StoreUnavailable as error:
        lines.append(f"Nothing that costs parts is served: {error}.")
    return rows, lines


def _set(settings: config.Config, text: str) -> None:
    """Replace the usage of an application's current period. Raises BadParameter and ConfigError."""
    name, _, number = text.rpartition("=")
    if not (number.isascii() and number.isdigit() and int(number) <= config.PARTS_MAX):
        example = f"{name or 'APPLICATION'}=250"
        raise typer.BadParameter(f"{number!r} is not a number of parts, such as {example}", param_hint="--set")
    try:
        before = asyncio.run(_with_state(settings, lambda state: state.set_usage(name, int(number))))
    except LookupError as known:
        raise typer.BadParameter(f"{name!r} is none of {known}", param_hint="--set") from None
    counts = {"used_before": before.used, "uncertain_before": before.uncertain, "used": int(number)}
    log.info("usage set", quota_account=name, period=before.period, **counts)
    entry = settings.applications.get(name)
    keys = {} if entry is None else entry.clients
    if limited := [f"{name}/{key}" for key, (_, limit) in keys.items() if limit is not None]:
        typer.echo(f"API keys have limits of their own, whose usage is set alone: {', '.join(limited)}", err=True)


def _forget_results(settings: config.Config, application: str | None, yes: bool) -> None:
    """Say what stored results cost, ask, and delete them, also in services. Raises BadParameter and ConfigError."""
    if application is not None and application not in settings.applications:
        known = ", ".join(settings.applications)
        raise typer.BadParameter(f"{application!r} is none of {known}", param_hint="APPLICATION")
    whose = f"{application}, and others with its client id" if application else "all applications"
    stored = asyncio.run(_with_state(settings, lambda state: state.forget_results(application, only_count=True)))
    commands.say(
        f"The store has {counted(stored, 'part')} of {whose}, free for a day; to fetch them again costs as many."
    )
    if not (yes or sys.stdin.isatty()):
        raise typer.BadParameter("nobody can be asked: confirm with --yes", param_hint="--yes")
    if not (yes or typer.confirm("Forget them?", err=True)):
        raise typer.Exit(1)
    deleted = asyncio.run(_with_state(settings, lambda state: state.forget_results(application)))
    typer.echo(f"{counted(deleted, 'part')} forgotten; running services follow within a second.")


async def _clients(state: StoredState) -> tuple[Any, list[commands.Line]]:
    """Return the programs that called, the most requests first, with what they lost, and the API keys; and lines."""
    seen = await state.seen()
    programs = sorted(operators.clients(seen.clients), key=lambda each: -each["requests"])
    keys = []
    for row in await state.usage():
        if row.key is not None:
            own = [each for each in programs if (each["application"], each["key"]) == (row.application, row.key)]
            key = {"application": row.application, "key": row.key, "parts": row.used}
            key["requests"] = sum(each["requests"] for each in own)
            keys.append(key | {"last_seen": max((each["last_seen"] for each in own), default=None)})
    first = seen.first_day.isoformat()
    last: dict[str, commands.Column] = {"requests": "requests", "last": lambda row: (row["last_seen"] or "never")[:10]}
    program: dict[str, commands.Column] = {f"clients since {first}": _name, **ENDPOINTS, "user agent": "user_agent"}
    program |= last | {"unsupported uses": lambda row: ", ".join(row["unsupported"])}
    by_key = commands.table(keys, {"API key": _name, "parts": "parts", **last})
    return {"first_day": first, "clients": programs, "keys": keys}, [by_key, commands.table(programs, program)]
