"""Set-up of a run: the requests to send, both sides opened, and all keys known before anything is sent."""

import random
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
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
from proxy.tools.compare.command import checks, local_service, options, output, sides
from proxy.tools.compare.judging.judge import Judge
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.running import exchange, plan, run
from proxy.tools.compare.running.costs import WorstCaseCosts
from proxy.tools.compare.running.exchange import ComparisonBudget
from proxy.tools.compare.running.progress import ProgressFile
from proxy.tools.compare.running.upstream_side import UpstreamSide
from proxy.traffic import estimate, http_side
from proxy.traffic.recording.recorded import Recording
from proxy.traffic.sources import source as sources
from proxy.traffic.sources.clients import Clients, UnnamedKey
from proxy.traffic.v3_request import V3Request, parse_any_target
from proxy.traffic.v3_response import ComparedSide


class RequestsToSend(NamedTuple):
    """Requests of a source. `name` is the file's name, `place` its path; `seconds` is the time span of the recorded
    traffic, None if unknown.

    `keys` are those in it that the settings do not name.
    """

    plan: plan.RequestPlan
    name: str
    place: str
    seconds: float | None
    notes: tuple[str, ...]
    keys: tuple[UnnamedKey, ...] = ()


def read_requests(chosen: options.ComparisonOptions, clients: Clients, recorded: Recording | None) -> RequestsToSend:
    """Read the requests of the chosen source. Raises SourceError for a file without requests."""
    rng = random.Random(chosen.seed)  # noqa: S311 - reproducible by --seed
    if chosen.requests is not None:
        opened = sources.open_source(
            chosen.requests, clients, kind=chosen.kind, named=checks.columns(chosen), parse=parse_any_target
        )
        request_plan = plan.make_plan(opened.requests(), chosen.sample, rng)
        notes = (*_counted(opened.junk), *_counted(opened.skipped), *_held(request_plan))
        return RequestsToSend(
            request_plan, opened.name, str(chosen.requests.resolve()), opened.seconds, notes, clients.unnamed()
        )
    if recorded is None:
        raise AssertionError("checked before: there are requests or recorded responses")
    request_plan = plan.make_plan(recorded.requests(), chosen.sample, rng)
    return RequestsToSend(
        request_plan, recorded.path.name, str(recorded.path.resolve()), None, tuple(recording_notes(recorded))
    )


def recording_notes(recorded: Recording) -> Iterator[str]:
    """Yield notes about damage in a file of responses."""
    if recorded.cut:
        yield f"{recorded.path.name} ends in the middle of a line; what is whole is used"
    if recorded.junk.lines:
        junk = counted(recorded.junk.lines, "line is not a response", "lines are not responses")
        yield f"{recorded.path.name}: {junk}, the first is {recorded.junk.first}"


def _held(request_plan: plan.RequestPlan) -> Iterator[str]:
    if request_plan.dropped:
        dropped = counted(request_plan.dropped, "request is", "requests are")
        yield f"{dropped} not held in memory: the others are a fair sample, and the cost per month counts all"


def _counted(counts: Iterable[sources.SkipCount]) -> Iterator[str]:
    for count in counts:
        yield f"{count.times} × no request: {count.reason} (first: {count.first})"


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
    def costs(self) -> WorstCaseCosts:
        """Maximum costs of requests, at both sides."""
        return WorstCaseCosts(self.site, baseline_billed=isinstance(self.ready.sides.baseline, UpstreamSide))

    @property
    def site(self) -> str | None:
        """Site of the service that is started here; None if there is none."""
        upstream = None if self.service is None else self.service.upstream
        return upstream.site if isinstance(upstream, config.UpstreamSettings) else None


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
        recorded = sides.SideRecordings(baseline=own or replayed, candidate=replayed)
        keys.add_secrets(() if own is None else own.keys)
        source = read_requests(chosen, keys.clients, replayed or own)
        service = None
        if chosen.config is not None or chosen.replay is not None:
            service = local_service.load_config(chosen.config, replayed=chosen.replay is not None)
            # Checked before anything is started: a sandbox takes seconds.
            if chosen.baseline == options.SANDBOX and service.upstream != "sandbox":
                raise typer.BadParameter("the configuration has no upstream: sandbox", param_hint="--baseline")
        ready = await stack.enter_async_context(sides.open_sides(chosen, keys, recorded, service, clock))
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


def _twice(ready: ComparisonSetup, left: RemainingRequests) -> Iterator[str]:
    if not ready.ready.free and any(map(ready.costs.baseline, left.requests)):
        yield "a document is paid for twice: to the upstream itself, and through v3bridge, which has no cache here"


async def execute(
    ready: ComparisonSetup,
    left: RemainingRequests,
    notes: run.RunSinks,
    judge: Judge | None = None,
    progress: ProgressFile | None = None,
) -> run.RunOutcome | None:
    """Show the plan, ask for confirmation if it costs parts, and run it. Returns None if the user declined."""
    chosen, source, free = ready.chosen, ready.source, ready.ready.free
    output.show_plan(
        source.name,
        left.estimate,
        distinct=source.plan.distinct,
        budget=ready.limit,
        spent=left.spent,
        free=free,
        notes=(*map(ready.redaction.text, source.notes), *_twice(ready, left)),
    )
    # Nothing has been sent so far: declining costs nothing.
    if not spending.confirm_cost(left.estimate.parts, ready.limit, left.spent, yes=chosen.yes, free=free):
        return None
    budget = ComparisonBudget(ready.limit, left.spent)
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
        return await running.run(left.requests, event_loop.stop_on_signal())
