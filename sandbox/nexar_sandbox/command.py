"""`nexar-sandbox`: serves the simulated services until it is stopped."""

import asyncio
import dataclasses
import gc
import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer
from typer import core

from nexar_sandbox import __version__, app, applications, faults, settings, user_directory
from nexar_sandbox.identity import login
from nexar_sandbox.legacy_v3 import service as legacy
from nexar_sandbox.portal import responder

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
    host: Annotated[str, typer.Option(metavar="NAME", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen on; 0: any.")] = 8081,
    catalog: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON Lines file with additional parts.")] = None,
    plan: Annotated[
        Literal["evaluation", "standard", "pro", "enterprise"] | None,
        typer.Option(
            metavar="NAME", help="Plan: evaluation, standard, pro or enterprise; all features, 1000 parts if omitted."
        ),
    ] = None,
    add_on: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Add-on of pro: LEAD_TIME, TECH_SPECS, LIFECYCLE or DATASHEETS."),
    ] = None,
    part_limit: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Its part limit; if omitted that of its plan.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of faults and of the ids of tokens.")] = 1,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help=f'A fault: "5xx share=0.05 status=503". Kinds: {", ".join(faults.KINDS)}.'),
    ] = None,
    legacy_rate: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Requests per second of an API key at the old v3; 0: no limit."),
    ] = 3,
    admin_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Additional host name for /admin.")
    ] = None,
    bill_refused: Annotated[
        bool, typer.Option("--bill-refused", help="Bill parts that an error removes from a response.")
    ] = False,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Accept GraphQL requests without a token.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version, and exit.")] = False,
) -> None:
    """Simulate the Nexar services; print their URLs, a user and client credentials."""
    if version:
        typer.echo(f"nexar-sandbox {__version__}")
        raise typer.Exit
    with _start_errors(host, port):
        chosen = settings.SandboxSettings(
            catalog=catalog,
            applications=(
                _first_application(plan, add_on or [], part_limit),
                applications.DEFAULT_DESIGN_APPLICATION,
            ),
            no_auth=no_auth,
            admin_hosts=(host, *(admin_host or ())),
            bill_refused=bill_refused,
            faults=tuple(each for text in fault or () for each in faults.parse_faults(text)),
            legacy=legacy.LegacySettings(requests_per_second=legacy_rate or None),
        )
        asyncio.run(_serve(host, port, chosen, seed))


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
    except OSError as error:
        # The system's reason only: event loops repeat the address in theirs.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        place = f"the sandbox cannot listen on {host}:{port}: {reason}"
        raise StartError(f"{place}; choose another with --host or --port") from error
    except ValueError as error:
        raise StartError(str(error)) from error


async def _serve(host: str, port: int, chosen: settings.SandboxSettings, seed: int) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    rng = random.Random(seed)  # noqa: S311 - reproducible by --seed
    async with app.serve(chosen, host, port, rng=rng) as running:
        # Nothing that was loaded is looked at again: every third large response took half as long again.
        gc.freeze()
        for label, value in _ways_in(running).items():
            print(f"{label:<26}{value}", flush=True)  # noqa: T201 - one name and value a line, for people and programs
        await stop.wait()


def _ways_in(running: app.Sandbox) -> dict[str, str]:
    """Return URLs and credentials."""
    user, design = user_directory.DEFAULT_USERS[0], applications.DEFAULT_DESIGN_APPLICATION
    return {
        "sandbox": running.url,
        "legacy_url": f"{running.legacy_url}/v3",
        "legacy_apikey": running.legacy.apikeys[0],
        "graphql_url": running.graphql_url,
        "token_url": running.token_url,
        "account_url": running.url + login.ACCOUNT_PATH,
        "portal_url": running.url + responder.PATH,
        **{f"design_{name}_url": url for name, url in running.design_urls.items()},
        "user_email": user.email,
        "user_password": user_directory.DEFAULT_PASSWORD,
        "client_id": running.client_id,
        "client_secret": running.client_secret,
        "design_client_id": design.client_id,
        "design_client_secret": design.client_secret,
    }
