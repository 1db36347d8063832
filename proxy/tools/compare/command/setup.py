"""Set-up of a run: the requests to send, both sides opened, and all keys known before anything is compared."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import typer

from proxy import config
from proxy.cli import spending
from proxy.kit import event_loop
from proxy.kit.clock import Clock, SystemClock
from proxy.kit.wording import counted
from proxy.redaction import IsKey, Redaction
from proxy.telemetry import log
from proxy.tools.compare.command import local_service, options, output, sides
from proxy.tools.compare.command.requests_to_send import RequestsToSend, generate, read_requests
from proxy.tools.compare.judging.judge import Judge
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.running import exchange, run
from proxy.tools.compare.running.costs import WorstCaseCosts
from proxy.tools.compare.running.exchange import ComparisonBudget
from proxy.tools.compare.running.progress import ProgressFile
from proxy.tools.compare.running.upstream_side import UpstreamSide
from proxy.traffic import estimate, http_side
from proxy.traffic.recording.recorded import Recording
from proxy.traffic.sources.clients import Clients
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import ComparedSide

ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - these are not bound here

# Goes on with a run that is complete, within its budget.
AfterRun = Callable[[run.ComparisonRun], Awaitable[None]]


class ComparisonSetup(NamedTuple):
    """Set-up of a run, ready to start. `baseline` and `candidate` are the addresses of the sides, known even if a
    side is replayed; `service` is the configuration of the service started here."""

    chosen: options.ComparisonOptions
    settings: ComparisonSettings
    source: RequestsToSend
    ready: sides.ReadySides
    service: config.Config | None
    redaction: Redaction
    baseline: str | None
    candidate: str | None
    clock: Clock
    replayed: Recording | None = None

    def data_time(self) -> float:
        """Return when the candidate's data is fetched, in seconds since 1970; 0 for that of a sandbox, which does not
        end."""
        if self.replayed is not None:
            return self.replayed.oldest
        return 0.0 if self.ready.free else self.clock.now()

    @property
    def limit(self) -> int | None:
        """Budget in parts; None for no limit."""
        return self.settings.budget if self.chosen.budget is None else self.chosen.budget

    @property
    def candidate_url(self) -> str:
        """Address for curl lines; of a service that is started here, where its configuration will let it listen."""
        if self.service is None or self.replayed is not None:
            return self.candidate or ""
        host, port = self.service.listen.host, self.service.listen.port
        return http_side.base_url(f"http://{'127.0.0.1' if host in ANY_ADDRESS else host}:{port}")

    @property
    def costs(self) -> WorstCaseCosts:
        """Maximum costs of requests, at both sides."""
        return WorstCaseCosts(self.site, baseline_billed=isinstance(self.ready.sides.baseline, UpstreamSide))

    @property
    def site(self) -> str | None:
        """Site of the service that is started here; None if there is none."""
        return _site(self.service)


class RemainingRequests(NamedTuple):
    """Requests still to be sent, their worst-case cost, and the parts spent by earlier runs."""

    requests: list[V3Request]
    estimate: estimate.Estimate
    spent: int = 0


@asynccontextmanager
async def open_setup(chosen: options.ComparisonOptions, settings: ComparisonSettings) -> AsyncIterator[ComparisonSetup]:
    """Read the requests, and open both sides. Raises StartError for invalid settings, sources or recordings."""
    log.configure(chosen.log_level, "console", sys.stderr)
    clock = SystemClock()
    keys = sides.SideKeys(Clients(settings.keys), chosen)
    async with AsyncExitStack() as stack:
        replayed, own = (_recorded(file, clock, stack) for file in (chosen.replay, chosen.baseline_file))
        keys.add_secrets(() if own is None else own.keys)
        source = read_requests(chosen, keys.clients, replayed or own)
        service = None
        if chosen.config is not None or chosen.replay is not None:
            service = local_service.load_config(chosen.config, replayed=chosen.replay is not None)
            # Checked before anything is started: a sandbox takes seconds.
            if chosen.baseline == options.SANDBOX and service.upstream != "sandbox":
                raise typer.BadParameter("the configuration has no upstream: sandbox", param_hint="--baseline")
        ready = await stack.enter_async_context(
            sides.open_sides(chosen, keys, (own or replayed, replayed), service, clock)
        )
        if chosen.generate is not None and ready.sides.baseline is not None:
            source = await generate(chosen.generate, chosen.seed, source, ready.sides.baseline, _site(service))
        yield ComparisonSetup(
            chosen,
            settings,
            source,
            ready,
            service,
            Redaction(keys.secrets(), _is_key_of(service)),
            _place(chosen.baseline, ready.sides.baseline),
            str(chosen.config)
            if chosen.config and not chosen.replay
            else _place(chosen.candidate, ready.sides.candidate),
            clock,
            replayed,
        )


def _site(service: config.Config | None) -> str | None:
    upstream = None if service is None else service.upstream
    return upstream.site if isinstance(upstream, config.UpstreamSettings) else None


def _is_key_of(service: config.Config | None) -> IsKey | None:
    """Return what tells that a text is an API key of the service, of which the configuration may have digests only."""
    if service is None:
        return None
    digests = {key.key for application in service.applications.values() for key in application.apikeys}
    return lambda text: config.digest(text) in digests


def _recorded(file: Path | None, clock: Clock, stack: AsyncExitStack) -> Recording | None:
    """Open a file of responses, closed with `stack`; None without a file."""
    if file is None:
        return None
    recorded = Recording(file, clock.now())
    stack.callback(recorded.close)
    return recorded


def _place(given: str | None, side: ComparedSide | None) -> str | None:
    if given is not None and "://" in given:
        return http_side.base_url(given)
    return given or (None if side is None else side.place)


async def execute(
    ready: ComparisonSetup,
    left: RemainingRequests,
    notes: run.RunSinks,
    judge: Judge | None = None,
    progress: ProgressFile | None = None,
    *,
    after: AfterRun | None = None,
) -> run.RunOutcome | None:
    """Show the plan, ask for confirmation if it costs parts, and run it. Returns None if the user declined.

    What comes `after` a complete run may cost as much again.
    """
    chosen, source, free = ready.chosen, ready.source, ready.ready.free
    most, limit = left.estimate.parts, ready.limit
    if after is not None:
        most = 2 * most
        limit = left.spent + most if limit is None else limit
    costly = []
    if not free and any(map(ready.costs.baseline, left.requests)):
        costly.append(
            "a document is paid for twice: to the upstream itself, and through v3bridge, which has no cache here"
        )
    if not free and most > left.estimate.parts:
        costly.append(
            f"differences that are found are shrunk, for at most {counted(most - left.estimate.parts, 'part')} more"
        )
    output.show_plan(
        source.name,
        left.estimate,
        distinct=source.plan.distinct,
        budget=ready.limit,
        spent=left.spent,
        free=free,
        notes=(*map(ready.redaction.text, source.notes), *costly),
    )
    # Nothing that costs a part has been sent so far: declining costs nothing.
    if not spending.confirm_cost(most, ready.limit, left.spent, yes=chosen.yes, free=free):
        return None
    budget = ComparisonBudget(limit, left.spent)
    exchanger = exchange.Exchanger(
        ready.ready.sides,
        budget=budget,
        worst=(lambda _: 0) if chosen.replay else ready.costs.candidate,
        baseline_worst=ready.costs.baseline,
        paying=progress.sending if progress else lambda *_: None,
        redaction=ready.redaction,
        judge=judge,
        upstream_recorder=ready.ready.upstream_recorder,
    )
    with output.progress_bar(len(left.requests)) as tell:
        running = run.ComparisonRun(
            exchanger,
            judge,
            notes._replace(
                tell=tell, upstream_recorder=ready.ready.upstream_recorder, application=ready.ready.application
            ),
            redaction=ready.redaction,
            clock=ready.clock,
            at_once=chosen.baseline_concurrency + chosen.candidate_concurrency,
            spent=lambda: budget.spent,
        )
        ended = await running.run(left.requests, event_loop.stop_on_signal())
    if after is None or ended.stopped is not None:
        return ended
    await after(running)
    return ended._replace(spent=budget.spent)
