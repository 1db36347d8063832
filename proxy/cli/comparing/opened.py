"""What `compare` and `record` need before they ask anybody: the calls, both sides ready, and everybody's keys known."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import typer

from proxy import config
from proxy.cli.comparing import beside, choice, shown, sides, what_is_asked
from proxy.compare import addresses, estimate, exchange, run
from proxy.compare.asking import Answering
from proxy.compare.budget import Budget
from proxy.compare.calls import Call
from proxy.compare.clients import Clients
from proxy.compare.judging import Judge
from proxy.compare.progress_file import ProgressFile
from proxy.compare.recorded import Recorded
from proxy.compare.redaction import Redaction
from proxy.compare.settings import Settings
from proxy.kit import event_loop
from proxy.kit.clock import Clock, SystemClock
from proxy.telemetry import log


class Opened(NamedTuple):
    """Ready to go. `old` and `new` say where the sides are, also when they are gone; `service` is the configuration of
    the one that is started here."""

    chosen: choice.Choice
    settings: Settings
    asked: what_is_asked.Asked
    ready: sides.Ready
    service: config.Config | None
    redaction: Redaction
    old: str | None
    new: str | None
    clock: Clock

    @property
    def limit(self) -> int | None:
        """The budget, in parts."""
        return self.settings.budget if self.chosen.budget is None else self.chosen.budget

    @property
    def site(self) -> str | None:
        """Of the service that is started here."""
        upstream = None if self.service is None else self.service.upstream
        return upstream.site if isinstance(upstream, config.Upstream) else None


class Left(NamedTuple):
    """What is still to be asked, what it can cost, and what was spent before."""

    calls: list[Call]
    estimate: estimate.Estimate
    spent: int = 0


@asynccontextmanager
async def opened(chosen: choice.Choice, settings: Settings) -> AsyncIterator[Opened]:
    """Read what is to be asked, and make both sides ready. Raises StartError for whatever is not as it should be."""
    log.configure(chosen.log_level, "console", sys.stderr)
    clock = SystemClock()
    keys = sides.Keys(Clients(settings.keys), chosen)
    async with AsyncExitStack() as stack:
        replayed, own = (_recorded(file, stack) for file in (chosen.replay, chosen.old_file))
        recorded = sides.Recordings(old=own or replayed, new=replayed)
        keys.also(() if own is None else own.keys)
        asked = what_is_asked.read(chosen, keys.clients, replayed or own)
        service = None
        if chosen.config is not None or chosen.replay is not None:
            service = beside.load(chosen.config, replayed=chosen.replay is not None)
            if chosen.old == choice.SANDBOX and service.upstream != "sandbox":
                raise typer.BadParameter("the configuration has no upstream: sandbox", param_hint="--old")
        ready = await stack.enter_async_context(sides.ready(chosen, keys, recorded, service, clock))
        yield Opened(
            chosen,
            settings,
            asked,
            ready,
            service,
            Redaction(keys.secrets()),
            _place(chosen.old, ready.sides.old),
            str(chosen.config) if chosen.config and not chosen.replay else _place(chosen.new, ready.sides.new),
            clock,
        )


def _recorded(file: Path | None, stack: AsyncExitStack) -> Recorded | None:
    """A file of answers, open until `stack` is closed."""
    if file is None:
        return None
    recorded = Recorded(file)
    stack.callback(recorded.close)
    return recorded


def _place(given: str | None, side: Answering | None) -> str | None:
    if given is not None and "://" in given:
        return addresses.base_of(given)
    return given or (None if side is None else side.place)


async def go(
    ready: Opened, left: Left, notes: run.Notes, judge: Judge | None = None, progress: ProgressFile | None = None
) -> run.Ended | None:
    """Show the plan, and do it, if it may be done. None where somebody said no."""
    chosen, asked, free = ready.chosen, ready.asked, ready.ready.free
    shown.plan(
        asked.name,
        left.estimate,
        distinct=asked.plan.distinct,
        budget=ready.limit,
        spent=left.spent,
        free=free,
        notes=tuple(map(ready.redaction.text, asked.notes)),
    )
    if not shown.agree(left.estimate, ready.limit, left.spent, yes=chosen.yes, free=free):
        return None
    budget = Budget(ready.limit, left.spent)
    exchanger = exchange.Exchanger(
        ready.ready.sides,
        budget=budget,
        worst=(lambda _: 0) if chosen.replay else estimate.parts_at_worst,
        paying=progress.asking if progress else lambda *_: None,
        redaction=ready.redaction,
        judge=judge,
        tape=ready.ready.tape,
    )
    with shown.bar(len(left.calls)) as tell:
        running = run.Run(
            exchanger,
            judge,
            notes._replace(tell=tell, tape=ready.ready.tape, application=ready.ready.application),
            redaction=ready.redaction,
            clock=ready.clock,
            at_once=chosen.old_at_once + chosen.new_at_once,
            spent=lambda: budget.spent,
        )
        return await running.go(left.calls, event_loop.stop_on_signal())
