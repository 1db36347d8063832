"""`v3bridge conform`: tests what this program assumes about the Nexar services, on the sandbox or on an account."""

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import proxy
from proxy import config, errors
from proxy.cli import spending
from proxy.cli.option_fields import command
from proxy.cli.shown import FILE_WIDTH
from proxy.config import loader
from proxy.kit import clock as clocks
from proxy.kit.wording import counted, printable
from proxy.tools import event_loop

if TYPE_CHECKING:
    import nexar_sandbox
    from proxy.tools.conform import probes, results
    from proxy.tools.conform.reading import Catalogue
    from proxy.tools.conform.runner import Observations, Selection

SANDBOX = "sandbox"
DEFAULT_BUDGET = 20  # parts
CONFIRMED, CONTRADICTED, UNTESTED = 0, 1, 3  # exit codes; 2 is a mistake in options or configuration
MAX_VALUE = 300  # characters of a value in the terminal; --json has all of it
# In the order of the output: what differs is last, nearest to the totals.
COLORS = {"confirmed": "green", "not tested": "yellow", "contradicted": "red"}


@dataclass(frozen=True, slots=True)
class ConformOptions:
    """Options of `v3bridge conform`."""

    against: Annotated[
        str | None,
        typer.Option(metavar="sandbox|CONFIG", help="What is tested: the sandbox, or the service of a configuration."),
    ] = None
    result: Annotated[
        Path | None, typer.Option(help="Read the result of an earlier run (--json) instead; sends nothing.")
    ] = None
    application: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The application under test; the first one with parts if omitted."),
    ] = None
    budget: Annotated[
        int | None, typer.Option(min=0, help=f"The most parts that may be spent; {DEFAULT_BUDGET} if omitted.")
    ] = None
    only: Annotated[list[str] | None, typer.Option(metavar="ID", help="Test this assumption only.")] = None
    yes: Annotated[bool, typer.Option("--yes", help="Spend parts without asking.")] = False
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; it holds no credentials and no ids.")
    ] = False
    update: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Merge the result into this evidence file, and renew the page beside it."),
    ] = None


def run(options: ConformOptions) -> None:
    """Test what this program assumes about the Nexar services, and say which assumptions hold."""
    from proxy.tools.conform import reading, results

    catalogue = reading.load()
    _check_sources(options)
    # Before parts are spent: the page that is renewed has the same name with .md.
    if options.update is not None and options.update.suffix != ".yaml":
        raise typer.BadParameter(f"{options.update} is not an evidence file, NAME.yaml", param_hint="--update")
    if options.only:
        try:
            catalogue = catalogue.only(options.only)
        except KeyError as error:
            raise typer.BadParameter(f"no assumption is called {error.args[0]!r}", param_hint="--only") from None
    result = results.load(options.result) if options.result else event_loop.run(_Run(options, catalogue).result())
    if options.json:
        typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        _print(result, catalogue)
    if options.update is not None:
        _update(options.update, result)
    raise typer.Exit(_exit_code(result))


conform = command(ConformOptions, run)


def _check_sources(options: ConformOptions) -> None:
    if (options.against is None) is (options.result is None):
        raise typer.BadParameter("one of --against and --result is needed", param_hint="--against")
    if options.result is not None and options.only:
        raise typer.BadParameter("a result is read as a whole", param_hint="--result")


def _exit_code(result: "results.RunResult") -> int:
    if result.of("contradicted"):
        return CONTRADICTED
    return CONFIRMED if result.of("confirmed") else UNTESTED


def _update(file: Path, result: "results.RunResult") -> None:
    from proxy.tools.conform import evidence, page, reading

    catalogue = reading.load()  # all of it, whatever --only selects
    merged = evidence.merge(evidence.load(file), result, catalogue)
    evidence.save(file, merged)
    file.with_suffix(".md").write_text(page.render(catalogue, merged), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Run:
    options: ConformOptions
    catalogue: "Catalogue"

    async def result(self) -> "results.RunResult":
        if self.options.against == SANDBOX:
            return await self._on_sandbox()
        file = Path(self.options.against or "")
        settings = loader.load(file, os.environ)
        # The addresses of such a configuration are the sandbox's, and nothing else of it is tested.
        if settings.upstream == "sandbox":
            return await self._on_sandbox()
        return await self._on_account(settings, settings.upstream)

    async def _on_sandbox(self) -> "results.RunResult":
        import aiohttp

        import nexar_sandbox
        from proxy.tools.conform import results

        async with nexar_sandbox.serve(conformance_sandbox()) as upstream, aiohttp.ClientSession() as session:
            target = conformance_target(upstream)
            observed = await self._observe(target, session, self._selection(target))
            billed = sum(upstream.part_usage.used(each.application_id) for each in upstream.applications.all)
            plan = results.Plan("all", upstream.default_application.part_limit)
        cost = msgspec.structs.replace(observed.cost, billed=billed)
        return self._document("sandbox", plan, observed, cost)

    async def _on_account(self, settings: config.Config, upstream: config.UpstreamSettings) -> "results.RunResult":
        from proxy.gateway.core import open_session
        from proxy.tools.conform import targets

        configured = targets.from_config(settings, upstream, self.options.application)
        selection = self._selection(configured.target)
        spending.say(
            f"{counted(len(selection.requests), 'request')} as application {configured.name}: "
            f"at most {counted(selection.at_worst, 'part')}"
        )
        if not spending.confirm_cost(selection.at_worst, self.options.budget, 0, yes=self.options.yes, free=False):
            raise typer.Abort
        async with _booked(settings, configured.name, selection.at_worst) as book, open_session(upstream) as http:
            observed = await self._observe(configured.target, http, selection)
            book(observed)
        return self._document(configured.service, configured.plan, observed, observed.cost)

    def _selection(self, target: "probes.Target") -> "Selection":
        from proxy.tools.conform import runner

        budget = DEFAULT_BUDGET if self.options.budget is None else self.options.budget
        return runner.select(self.catalogue, budget, target.accounts)

    async def _observe(self, target: "probes.Target", session: Any, selection: "Selection") -> "Observations":
        from proxy.tools.conform import probes, runner

        prober = probes.Prober(target, session, clocks.SystemClock())
        with spending.progress_bar("testing", len(selection.requests)) as update:
            return await runner.run(self.catalogue, selection, prober, lambda done: update(done, ""))

    def _document(
        self,
        service: "results.Service",
        plan: "results.Plan",
        observed: "Observations",
        cost: "results.RunCost",
    ) -> "results.RunResult":
        from proxy.tools.conform import results

        today = datetime.now(UTC).date().isoformat()
        return results.RunResult(service, today, proxy.__version__, plan, cost, observed.outcomes, observed.times)


def conformance_sandbox() -> "nexar_sandbox.SandboxSettings":
    """Return settings of a sandbox with an application for each condition of an assumption's request."""
    import dataclasses

    import nexar_sandbox

    default = nexar_sandbox.DEFAULT_APPLICATION

    def another(number: int, **changed: Any) -> nexar_sandbox.SandboxApplication:
        identity = f"8c0f6d3e-51f4-4a8e-9f0b-2f7d5f1d9b{number:02}"
        client = f"55555555-5555-4555-8555-5555555555{number:02}"
        return dataclasses.replace(default, application_id=identity, client_id=client, plan=None, **changed)

    return nexar_sandbox.SandboxSettings(
        applications=(
            default,
            nexar_sandbox.DEFAULT_DESIGN_APPLICATION,
            another(1, name="no_parts", part_limit=0),
            another(2, name="feature_missing", features=frozenset()),
        ),
        token_windows=(),  # nothing that is tested depends on them, and waiting would take most of a run
    )


def conformance_target(upstream: "nexar_sandbox.Sandbox") -> "probes.Target":
    """Return a sandbox of `conformance_sandbox` as the target of probe requests."""
    from proxy.tools.conform import probes

    default, _, *others = (
        probes.Account(each.client_id, each.client_secret, features=each.features) for each in upstream.applications.all
    )
    conditions = zip((each.name for each in upstream.applications.all[2:]), others, strict=True)
    accounts: dict[str | None, probes.Account] = {None: default, **dict(conditions)}
    return probes.Target(upstream.graphql_url, upstream.token_url, accounts, tokens_a_second=0.0)


@asynccontextmanager
async def _booked(settings: config.Config, name: str, at_worst: int) -> "AsyncIterator[Callable[[Observations], None]]":
    """Reserve the worst case of a run; yields the function that takes what it cost. A run that fails is booked as
    uncertain usage."""
    from proxy.gateway.core import StoredState

    async with AsyncExitStack() as stack:
        state = await StoredState.open(settings, clocks.SystemClock())
        stack.push_async_callback(state.aclose)
        try:
            book = await stack.enter_async_context(state.booked(name, at_worst))
        except errors.QuotaExhausted as error:
            raise errors.ConfigError(f"applications.{name}: {error.message}; lower --budget") from error
        except errors.StoreUnavailable as error:
            raise errors.ConfigError(f"store: {error.message}") from error
        yield lambda observed: book(observed.cost.returned, observed.uncertain)


def _print(result: "results.RunResult", catalogue: "Catalogue") -> None:
    """Print a table for each tier, and the totals last, where a terminal shows them."""
    from proxy.tools.conform.page import TIERS
    from proxy.tools.conform.runner import TIMED

    terminal = Console(highlight=False)
    console = terminal if terminal.is_terminal else Console(width=FILE_WIDTH, highlight=False)
    statements = {assumption.id: assumption.statement for assumption in catalogue.assumptions}
    for tier in TIERS:
        outcomes = [outcome for outcome in result.outcomes if outcome.tier == tier]
        if outcomes:
            console.print(_tier_table(tier, outcomes, statements))
    console.print(_totals(result, TIERS))
    cost = result.cost
    ledger = "" if cost.billed is None else f"; the sandbox's ledger has {cost.billed:,}"
    console.print(
        f"{counted(cost.requests, 'request')}, {counted(cost.token_requests, 'token request')}; "
        f"{counted(cost.returned, 'part')} returned, at most {cost.at_worst:,}{ledger}",
        soft_wrap=True,
    )
    if times := [f"{TIMED[name]}: {each.bytes:,} bytes in {each.seconds:.3f} s" for name, each in result.times.items()]:
        console.print("; ".join(times), soft_wrap=True)


def _tier_table(tier: str, outcomes: "list[results.Outcome]", statements: dict[str, str]) -> Table:
    table = Table(title=tier.capitalize(), title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    reasons: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.verdict == "not tested":
            reasons.setdefault(outcome.reason, []).append(outcome.id)

    def add(verdict: str, subject: str, *lines: RenderableType) -> None:
        table.add_row(Text(verdict, style=COLORS[verdict]), subject, Group(*lines))

    for outcome in outcomes:
        if outcome.verdict == "confirmed":
            add(outcome.verdict, outcome.id, statements.get(outcome.id, ""))
    # A reason often concerns many: a service that is down would fill pages.
    for reason, ids in reasons.items():
        subject = ids[0] if len(ids) == 1 else counted(len(ids), "assumption")
        add(
            "not tested",
            subject,
            Text(printable(_shortened(reason))),
            *([Text(", ".join(ids))] if len(ids) > 1 else []),
        )
    for outcome in outcomes:
        if outcome.verdict == "contradicted":
            add(outcome.verdict, outcome.id, statements.get(outcome.id, ""), *_details(outcome))
    return table


def _details(outcome: "results.Outcome") -> list[RenderableType]:
    """Return the lines below an assumption that is contradicted."""
    values = (("expected", outcome.expected), ("got", outcome.got))
    shown = [f"{name:8} {_shortened(json.dumps(value, ensure_ascii=False))}" for name, value in values]
    if outcome.reason:
        shown.append(f"{'reason':8} {_shortened(outcome.reason)}")
    return [Padding(Text(printable(line)), (0, 0, 0, 2)) for line in shown]


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_VALUE else text[:MAX_VALUE] + "…"


def _totals(result: "results.RunResult", tiers: Iterable[str]) -> Table:
    """Return coverage and correctness of each tier: a run that tests little may have nothing wrong."""
    table = Table("tier", "assumptions", "tested (coverage)", "confirmed (correctness)", "contradicted")
    for tier in (*tiers, "all"):
        verdicts = Counter(each.verdict for each in result.outcomes if tier in (each.tier, "all"))
        whole, tested = verdicts.total(), verdicts["confirmed"] + verdicts["contradicted"]
        table.add_row(
            tier,
            str(whole),
            _share(tested, whole),
            _share(verdicts["confirmed"], tested),
            str(verdicts["contradicted"]),
        )
    return table


def _share(number: int, whole: int) -> str:
    return f"{number} of {whole}" + (f" ({number / whole:.0%})" if whole else "")
