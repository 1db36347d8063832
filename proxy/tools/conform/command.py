"""`v3bridge conform`: tests what this program assumes about the Nexar services, on the sandbox or on an account."""

import json
import os
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from proxy import config, errors
from proxy.cli import commands
from proxy.config import loader
from proxy.kit import clock, counted, printable
from proxy.tools import running

if TYPE_CHECKING:
    import nexar_sandbox
    from proxy.tools.conform.run import RunResult, Service

SANDBOX = "sandbox"
BUDGET = 20  # parts
CONTRADICTED, UNTESTED = 1, 3  # exit codes; 2 is a mistake in options or configuration
SHOWN = 300  # characters of a value in the terminal; --json has all of it
COLORS = {"confirmed": "green", "not tested": "yellow", "contradicted": "red"}


@dataclass(frozen=True, slots=True)
class ConformOptions:
    """Options of the command."""

    against: Annotated[
        str,
        typer.Option(metavar="sandbox|CONFIG", help="What is tested: the sandbox, or the service of a configuration."),
    ]
    application: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The application under test; the first one with parts if omitted."),
    ] = None
    budget: Annotated[
        int | None, typer.Option(min=0, max=BUDGET, help=f"The most parts that may be spent; {BUDGET} if omitted.")
    ] = None
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Test this assumption only.")] = None
    yes: Annotated[bool, typer.Option("--yes", help="Spend parts without asking.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, without credentials and ids.")] = False


def run(options: ConformOptions) -> None:
    """Test what this program assumes about the Nexar services, and say which assumptions hold."""
    from proxy.tools.conform import assumptions

    names = {assumption.name for assumption in assumptions.ALL}
    if unknown := set(options.only or ()) - names:
        raise typer.BadParameter(f"no assumption is called {min(unknown)!r}", param_hint="--only")
    result = running.run(_result(options))
    if options.as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        _print(result)
    verdicts = {outcome.verdict for outcome in result.outcomes}
    raise typer.Exit(CONTRADICTED if "contradicted" in verdicts else 0 if "confirmed" in verdicts else UNTESTED)


conform = running.command(ConformOptions, run)


async def _result(options: ConformOptions) -> "RunResult":
    """Run on the sandbox, or on the service of a configuration with its applications as accounts."""
    from proxy.gateway import open_session
    from proxy.tools.conform.run import MAIN, NO_PARTS, NO_SPECS, Account, Service

    settings = None if options.against == SANDBOX else loader.load(Path(options.against), os.environ)
    # The addresses of such a configuration are the sandbox's, and nothing else of it is tested.
    if settings is None or settings.upstream == "sandbox":
        import aiohttp

        import nexar_sandbox

        async with nexar_sandbox.serve(conformance_sandbox()) as sandbox, aiohttp.ClientSession() as session:
            return await _run(options, sandbox_service(sandbox, session), None)
    upstream, applications = settings.upstream, settings.applications
    name = options.application or next((key for key, entry in applications.items() if entry.parts != 0), "")
    if name not in applications:
        raise errors.ConfigError(f"--application: {name!r} is none of {', '.join(applications)}")
    accounts: dict[str, Account] = {}
    for key, entry in {name: applications[name], **applications}.items():
        conditions = {MAIN} if key == name else set()
        if entry.parts == 0:
            conditions.add(NO_PARTS)
        elif "TECH_SPECS" not in entry.allowed_features:
            conditions.add(NO_SPECS)
        for condition in conditions - accounts.keys():
            if entry.client_id is None or entry.client_secret is None:
                raise errors.ConfigError(f"applications.{key}: conform needs its client_id and client_secret")
            secret = entry.client_secret.reveal()
            accounts[condition] = Account(str(entry.client_id), secret, entry.allowed_features)
    async with open_session(upstream) as session:
        service = Service(upstream.graphql_url, upstream.token_url, accounts, session)
        return await _run(options, service, (settings, name))


async def _run(options: ConformOptions, service: "Service", booked: tuple[config.Config, str] | None) -> "RunResult":
    """Run the chosen assumptions; on an account, say what they may cost, ask, and book it."""
    from proxy.gateway import StoredState
    from proxy.tools.conform import assumptions
    from proxy.tools.conform import run as runs

    chosen = [each for each in assumptions.ALL if not options.only or each.name in options.only]
    budget = BUDGET if options.budget is None else options.budget
    selection = runs.select(chosen, budget, service)
    with_cost = f"{counted(len(selection.probes), 'request')}: at most {counted(selection.at_worst, 'part')}"
    async with AsyncExitStack() as stack:
        cost = None
        if booked:
            settings, name = booked
            commands.say(f"application {name}, {with_cost}")
            if not running.confirm_cost(selection.at_worst, options.budget, yes=options.yes, free=False):
                raise typer.Abort
            state = await stack.enter_async_context(StoredState.open(settings, clock.Clock()))
            try:  # a run that fails is booked as uncertain usage
                cost = await stack.enter_async_context(state.booked(name, selection.at_worst))
            except errors.QuotaExhausted as error:
                raise errors.ConfigError(f"applications.{name}: {error.message}; lower --budget") from error
            except errors.StoreUnavailable as error:
                raise errors.ConfigError(f"store: {error}") from error
        with running.progress_bar("testing", len(selection.probes)) as update:
            result = await runs.run(chosen, selection, service, lambda done: update(done, ""))
        if cost:
            cost[:] = result.returned, result.uncertain
    return result


def conformance_sandbox() -> "nexar_sandbox.SandboxSettings":
    """Return settings of a sandbox with an application for each condition of a probe."""
    import dataclasses

    import nexar_sandbox

    default = nexar_sandbox.DEFAULT_APPLICATION
    others = [
        dataclasses.replace(default, application_id=f"{n}" * 32, client_id=f"{n}" * 32, name=f"{n}", plan=None, **more)
        for n, more in ((1, {"part_limit": 0}), (2, {"features": frozenset()}))
    ]
    # Nothing that is tested depends on the windows of tokens, and waiting would take most of a run.
    return nexar_sandbox.SandboxSettings(applications=(default, *others), token_windows=())


def sandbox_service(upstream: "nexar_sandbox.Sandbox", session: "object") -> "Service":
    """Return a sandbox of `conformance_sandbox` as the service under test, with its ledger."""
    from proxy.tools.conform.run import MAIN, NO_PARTS, NO_SPECS, Account, Service

    conditions = zip((MAIN, NO_PARTS, NO_SPECS), upstream.applications.all, strict=False)
    accounts = {name: Account(each.client_id, each.client_secret, each.features) for name, each in conditions}
    return Service(
        upstream.graphql_url,
        upstream.token_url,
        accounts,
        session,  # type: ignore[arg-type]
        lambda: sum(upstream.part_usage.used(each.application_id) for each in upstream.applications.all),
        (0.0, 0.0),
    )


def _print(result: "RunResult") -> None:
    """Print what differs last, and the totals after it, where a terminal shows them."""
    console = Console(highlight=False, soft_wrap=True)
    order = list(COLORS)
    for outcome in sorted(result.outcomes, key=lambda outcome: order.index(outcome.verdict)):
        console.print(
            Text.assemble((outcome.verdict, COLORS[outcome.verdict]), f"  {outcome.name}: {outcome.question}")
        )
        if outcome.reason:
            console.print(Text(f"    {printable(outcome.reason)}"))
        if outcome.verdict == "contradicted":
            console.print(Text(f"    observed: {printable(json.dumps(outcome.observed))[:SHOWN]}"))
    verdicts = Counter[str](outcome.verdict for outcome in result.outcomes)
    totals = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in COLORS)
    ledger = "" if result.billed is None else f"; the sandbox billed {result.billed}"
    parts = f"{counted(result.returned, 'part')} returned, at most {result.at_worst}{ledger}"
    console.print(Text(f"{totals}; {counted(result.requests, 'request')}, {parts}"))
