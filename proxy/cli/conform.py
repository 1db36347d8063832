"""`v3bridge conform`: tests what this program assumes about the Nexar services."""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from proxy import errors
from proxy.cli import embedded
from proxy.kit import clock, event_loop

if TYPE_CHECKING:
    from proxy.conformance import reading, results

SANDBOX = "sandbox"
DEFAULT_BUDGET = 20  # parts


def conform(
    against: Annotated[str, typer.Option(metavar="sandbox|CONFIG", help="The sandbox, or a configuration file.")],
    budget: Annotated[int, typer.Option(min=0, help="The most parts that may be spent.")] = DEFAULT_BUDGET,
    only: Annotated[list[str] | None, typer.Option(metavar="ID", help="Test this assumption only.")] = None,
    deviation: embedded.Deviations = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, without credentials.")] = False,
) -> None:
    """Test what this program assumes about the Nexar services, assumption by assumption."""
    from proxy.conformance import reading

    if against != SANDBOX:
        raise typer.BadParameter(f"{against!r} is not {SANDBOX}", param_hint="--against")
    catalogue = reading.load()
    if only:
        try:
            catalogue = catalogue.only(only)
        except KeyError as error:
            raise typer.BadParameter(f"no assumption is called {error.args[0]!r}", param_hint="--only") from None
    result = event_loop.run(_against_sandbox(catalogue, budget, deviation or []))
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        for outcome in result.outcomes:
            got = "" if outcome.verdict != "contradicted" else f" expected {outcome.expected!r}, got {outcome.got!r}"
            typer.echo(f"{outcome.verdict:12} {outcome.tier:8} {outcome.id}{got} {outcome.reason}")
        typer.echo(f"{result.requests} requests, {result.parts} of at most {result.at_worst} parts")
    raise typer.Exit(1 if result.of("contradicted") else 0)


async def _against_sandbox(catalogue: "reading.Catalogue", budget: int, deviations: list[str]) -> "results.RunResult":
    import aiohttp

    from proxy.conformance import probes, runner
    from proxy.sandbox import app
    from proxy.sandbox import deviations as sandbox_deviations

    try:
        settings = embedded.conformance_sandbox(sandbox_deviations.behaviour(deviations))
    except ValueError as error:
        raise errors.ConfigError(str(error)) from error
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(app.serve(settings))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        target = embedded.conformance_target(upstream)
        prober = probes.Prober(target, session, clock.SystemClock())
        return await runner.run(catalogue, runner.select(catalogue, budget, target.accounts), prober)
