"""Set-up of a run: the requests to send, both sides opened, and all keys known before anything is compared."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import typer

from proxy import config
from proxy.cli import spending
from proxy.config import loader
from proxy.kit.clock import Clock, SystemClock
from proxy.redaction import IsKey, Redaction
from proxy.telemetry import log
from proxy.tools import event_loop
from proxy.tools.compare.command import options, output, sides
from proxy.tools.compare.command.requests_to_send import RequestsToSend, read_requests
from proxy.tools.compare.judging.judge import Judge
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.running import exchange, run
from proxy.tools.compare.running.exchange import ComparisonBudget
from proxy.tools.compare.running.progress import ProgressFile
from proxy.traffic import estimate, http_side
from proxy.traffic.clients import Clients
from proxy.traffic.recording.recorded import Recording
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import ComparedSide

ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - these are not bound here


class ComparisonSetup(NamedTuple):
    """Set-up of a run, ready to start. `baseline` and `candidate` are the addresses of the sides; `service` is the
    configuration of the service started here."""

    chosen: options.ComparisonOptions
    settings: ComparisonSettings
    source: RequestsToSend
    ready: sides.ReadySides
    service: config.Config | None
    redaction: Redaction
    baseline: str | None
    candidate: str | None
    clock: Clock

    def data_time(self) -> float:
        """Return when the candidate's data is fetched, in seconds since 1970; 0 for that of a sandbox, which does not
        end."""
        return 0.0 if self.ready.free else self.clock.now()

    @property
    def limit(self) -> int | None:
        """Budget in parts; None for no limit."""
        return self.settings.budget if self.chosen.budget is None else self.chosen.budget

    @property
    def candidate_url(self) -> str:
        """Address for curl lines; of a service that is started here, where its configuration will let it listen."""
        if self.service is None:
            return self.candidate or ""
        host, port = self.service.listen.host, self.service.listen.port
        return http_side.base_url(f"http://{'127.0.0.1' if host in ANY_ADDRESS else host}:{port}")

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
        own = _recorded(chosen.baseline_file, clock, stack)
        keys.add_secrets(() if own is None else own.keys)
        source = read_requests(chosen, keys.clients, own)
        service = None
        if chosen.config is not None:
            service = loader.load(chosen.config, os.environ)
            # Checked before anything is started: a sandbox takes seconds.
            if chosen.baseline == options.SANDBOX and service.upstream != "sandbox":
                raise typer.BadParameter("the configuration has no upstream: sandbox", param_hint="--baseline")
        ready = await stack.enter_async_context(sides.open_sides(chosen, keys, own, service, clock))
        yield ComparisonSetup(
            chosen,
            settings,
            source,
            ready,
            service,
            Redaction(keys.secrets(), _is_key_of(service)),
            _place(chosen.baseline, ready.sides.baseline),
            str(chosen.config) if chosen.config else _place(chosen.candidate, ready.sides.candidate),
            clock,
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
        notes=tuple(map(ready.redaction.text, source.notes)),
    )
    # Nothing that costs a part has been sent so far: declining costs nothing.
    if not spending.confirm_cost(left.estimate.parts, ready.limit, left.spent, yes=chosen.yes, free=free):
        return None
    budget = ComparisonBudget(ready.limit, left.spent)
    exchanger = exchange.Exchanger(
        ready.ready.sides,
        budget=budget,
        worst=estimate.worst_case_parts,
        paying=progress.sending if progress else lambda *_: None,
        redaction=ready.redaction,
        judge=judge,
    )
    with output.progress_bar(len(left.requests)) as tell:
        running = run.ComparisonRun(
            exchanger,
            judge,
            notes._replace(tell=tell),
            redaction=ready.redaction,
            clock=ready.clock,
            at_once=chosen.baseline_concurrency + chosen.candidate_concurrency,
            spent=lambda: budget.spent,
        )
        return await running.run(left.requests, event_loop.stop_on_signal())
