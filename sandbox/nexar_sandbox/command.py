"""`nexar-sandbox`: serves the simulated services until it is stopped."""

import asyncio
import dataclasses
import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from typer import core

from nexar_sandbox import __version__, app, applications, behavior, faults, settings, user_directory
from nexar_sandbox.catalog import store
from nexar_sandbox.design import services
from nexar_sandbox.legacy_v3 import disturbances
from nexar_sandbox.legacy_v3 import settings as legacy

DESIGN_PORTS = 4

cli = typer.Typer(
    name="nexar-sandbox",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


class Command(core.TyperCommand):
    """A command whose help shows no type for flags, which would be `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters = super().get_params(ctx)
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class StartError(Exception):
    """The sandbox cannot start; the message names the option or file, and says why."""


@cli.command("nexar-sandbox", cls=Command)
def sandbox(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free port, printed.")] = 8081,
    design_port: Annotated[
        int,
        typer.Option(min=0, max=65532, help="First of the four ports of the design services; 0: free ports."),
    ] = 0,
    parts: Annotated[int | None, typer.Option(min=1, help="Number of parts; missing ones are generated.")] = None,
    catalog: Annotated[Path | None, typer.Option(help="JSON Lines file with additional parts.")] = None,
    prepared: Annotated[
        Path | None,
        typer.Option(help="File with the prepared catalog; created if missing."),
    ] = None,
    plan: Annotated[
        Literal["evaluation", "standard", "pro", "enterprise"] | None,
        typer.Option(help="Plan of the first application; 1000 parts a month with all features if omitted."),
    ] = None,
    add_on: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Add-on of pro: LEAD_TIME, TECH_SPECS, LIFECYCLE or DATASHEETS."),
    ] = None,
    part_limit: Annotated[
        int | None, typer.Option(min=0, help="Part limit of the first application; if omitted that of its plan.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of offers, prices and faults.")] = 1,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help=f'A fault: "5xx share=0.05 status=503". Kinds: {", ".join(faults.KINDS)}.'),
    ] = None,
    legacy_rate: Annotated[
        int,
        typer.Option(min=0, help="Rate limit of the legacy v3 service per API key, in requests per second; 0: none."),
    ] = 3,
    state: Annotated[
        Path | None,
        typer.Option(help="File that persists users, applications, part usage and changes; in memory if omitted."),
    ] = None,
    admin_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Additional host name for /admin.")
    ] = None,
    disturb: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help='Disturbance of the legacy v3 service, such as "price-drift share=0.5".'),
    ] = None,
    observed: Annotated[
        Path | None,
        typer.Option("--as", metavar="FILE", help="Behave as observed: a result of `v3bridge conform --json`."),
    ] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Accept GraphQL requests without a token.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version, and exit.")] = False,
) -> None:
    """Simulate the Nexar services; print their URLs, a user and client credentials."""
    if version:
        typer.echo(f"nexar-sandbox {__version__}")
        raise typer.Exit
    if port and design_port <= port < design_port + DESIGN_PORTS:
        raise StartError(f"--port {port} is one of the design services' ports, --design-port {design_port}")
    with _start_errors(host, port):
        chosen = settings.SandboxSettings(
            parts=parts,
            catalog=catalog,
            prepared=prepared,
            seed=seed,
            design_port=design_port,
            applications=(
                _first_application(plan, add_on or [], part_limit),
                applications.DEFAULT_DESIGN_APPLICATION,
            ),
            state=state,
            no_auth=no_auth,
            admin_hosts=(host, *(admin_host or ())),
            behavior=behavior.Behavior() if observed is None else _observed_behavior(observed),
            faults=tuple(each for text in fault or () for each in faults.parse_faults(text)),
            legacy=legacy.LegacySettings(
                requests_per_second=legacy_rate or None,
                disturbances=tuple(map(disturbances.parse_disturbance, disturb or ())),
            ),
        )
        # Before a catalog is built, which may take minutes.
        app.check_settings(chosen, host, port)
    if prepared is not None and not prepared.exists():
        _prepare_catalog(prepared, parts, catalog, seed)
    with _start_errors(host, port):
        asyncio.run(_serve(host, port, chosen))


def _first_application(
    plan: str | None, add_ons: Sequence[str], part_limit: int | None
) -> applications.SandboxApplication:
    application = applications.DEFAULT_APPLICATION
    if plan is not None:
        return applications.with_plan(application, plan, add_ons, part_limit)
    if add_ons:
        raise ValueError("--add-on needs --plan pro")
    return application if part_limit is None else dataclasses.replace(application, part_limit=part_limit)


def main(arguments: list[str] | None = None, program: str = "nexar-sandbox", name: str = "nexar-sandbox") -> NoReturn:
    """Run the command line, `sys.argv` if there are no arguments. A mistake is one line, which begins with `name`; the
    exit code is 2. `program` is shown in the usage."""
    try:
        code = cli(arguments, prog_name=program, standalone_mode=False)
    except StartError as error:
        _end(name, str(error), 2)
    except typer.TyperException as error:
        _end(name, _message(error), error.exit_code)
    except typer.Abort:
        _end(name, "aborted", 1)
    sys.exit(code)


def _message(error: typer.TyperException) -> str:
    """Return what is wrong. Messages of pydantic, which say only what a value should be, get the value."""
    for mistake in getattr(error.__cause__, "errors", list)()[:1]:
        text = mistake["msg"].removeprefix("Value error, ").split(", unable")[0]
        rule = text.removeprefix("Input should ")
        error.message = text if rule == text else f"must {rule}, not {mistake['input']}"
    return error.format_message().rstrip(".")


def _end(name: str, message: str, code: int) -> NoReturn:
    for line in message.splitlines():
        typer.echo(f"{name}: {line if line.isprintable() else ascii(line)[1:-1]}", err=True)
    sys.exit(code)


@contextmanager
def _start_errors(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except services.PortError as error:
        place = f"{services.HOST}:{error.port}"
        raise StartError(_refused(f"the design service {error.service}", place, error, "--design-port")) from error
    except OSError as error:
        raise StartError(_refused("the sandbox", f"{host}:{port}", error, "--host or --port")) from error
    except ValueError as error:
        raise StartError(str(error)) from error


def _refused(service: str, place: str, error: OSError, options: str) -> str:
    # The system's reason only: event loops repeat the address in theirs.
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
    return f"{service} cannot listen on {place}: {reason}; choose another with {options}"


def _observed_behavior(file: Path) -> behavior.Behavior:
    """Return the behavior of a JSON file with a member `behavior`; say what is imitated, and what cannot be."""
    try:
        result = msgspec.json.decode(file.read_bytes(), type=_Observed)
    except OSError as error:
        raise StartError(f"{file}: cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise StartError(f"{file}: is not a result of `v3bridge conform --json`: {error}") from error
    known = {field.name for field in dataclasses.fields(behavior.Behavior)}
    values: dict[str, object] = {}
    for field, value in result.behavior.items():
        if field not in known:
            typer.echo(f"not imitated: {field}: the sandbox has no such behavior", err=True)
            continue
        try:
            # One by one: a value of an unexpected kind must not keep the sandbox from imitating the others.
            msgspec.convert({field: value}, behavior.Behavior)
        except msgspec.ValidationError as error:
            typer.echo(f"not imitated: {field}: {error}", err=True)
        else:
            values[field] = value
            typer.echo(f"as observed: {field} = {value!r}", err=True)
    return msgspec.convert(values, behavior.Behavior)


class _Observed(msgspec.Struct):
    behavior: dict[str, object]


async def _serve(host: str, port: int, chosen: settings.SandboxSettings) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    rng = random.Random(chosen.seed)  # noqa: S311 - reproducible by --seed
    async with app.serve(chosen, host, port, rng=rng) as running:
        _print(_ways_in(running))
        await stop.wait()


def _ways_in(running: app.Sandbox) -> dict[str, str]:
    """Return URLs and default credentials; credentials changed in a state file are omitted."""
    ways = {
        "sandbox": running.url,
        "legacy_url": f"{running.legacy_url}/v3",
        "legacy_apikey": running.legacy.apikeys[0],
        "graphql_url": running.graphql_url,
        "token_url": running.token_url,
        "account_url": running.account_url,
        "portal_url": running.portal_url,
        **{f"design_{name}_url": url for name, url in running.design_urls.items()},
    }
    user = running.users.by_id(user_directory.DEFAULT_USERS[0].id)
    if user is not None and user.password == user_directory.DEFAULT_USERS[0].password:
        ways |= {"user_email": user.email, "user_password": user_directory.DEFAULT_PASSWORD}
    design = running.applications.by_application(applications.DEFAULT_DESIGN_APPLICATION.application_id)
    first = next((account for account in running.applications.all if applications.SUPPLY_SCOPE in account.scopes), None)
    for name, account in (("client", first), ("design_client", design)):
        if account is not None:
            ways |= {f"{name}_id": account.client_id, f"{name}_secret": account.client_secret}
    return ways


def _print(ways: dict[str, str]) -> None:
    """Print in a terminal two tables, else one name and value per line, for programs."""
    console = Console(soft_wrap=True, highlight=False)
    if not console.is_terminal:
        console.print(_filled(Table(show_header=False, box=None, pad_edge=False), ways))
        return
    labels = {name.removesuffix("_url").replace("_", " "): value for name, value in ways.items()}
    services_table, credentials = Table("service", "address"), Table("credential", "value")
    console.print(_filled(services_table, {name: value for name, value in labels.items() if "://" in value}))
    console.print(_filled(credentials, {name: value for name, value in labels.items() if "://" not in value}))


def _filled(table: Table, rows: dict[str, str]) -> Table:
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def _prepare_catalog(path: Path, parts: int | None, catalog: Path | None, seed: int) -> None:
    """Create the file of a prepared catalog. An interrupted run leaves no file behind."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress, _ended_like_an_interrupt():
        task = progress.add_task(f"making {path.name}", total=None)

        def show(parts_done: int, wanted: int) -> None:
            done = parts_done >= wanted
            description = f"indexing {path.name}" if done else f"making {path.name}"
            progress.update(task, completed=parts_done, total=wanted, description=description)

        try:
            store.prepare_catalog(path, parts, catalog, seed, progress=show)
        except OSError as error:
            raise StartError(f"{path}: cannot be written: {error.strerror}") from error
        except ValueError as error:
            raise StartError(str(error)) from error


@contextmanager
def _ended_like_an_interrupt() -> Iterator[None]:
    """Treat SIGTERM as an interrupt, so that the unfinished file is removed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
