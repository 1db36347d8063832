"""Recording in a command: where it goes, and a run that does nothing else."""

from contextlib import ExitStack
from pathlib import Path

import typer

from proxy.cli.comparing import choice, opened, shown
from proxy.compare import estimate, plan, run
from proxy.compare.recording import Header, Recorder
from proxy.compare.settings import Settings
from proxy.kit.wording import counted


def recorder(ready: opened.Opened, path: Path | None, stack: ExitStack) -> Recorder | None:
    """What writes into a file, until `stack` is closed."""
    if path is None:
        return None
    header = Header(made=ready.clock.now(), old=ready.old, new=ready.new, source=ready.asked.name)
    made = Recorder(path, header, ready.redaction)
    stack.callback(made.close)
    return made


async def only(chosen: choice.Choice, settings: Settings) -> run.Ended | None:
    """Record, and compare nothing. None where somebody said no."""
    async with opened.opened(chosen, settings) as ready:
        if ready.ready.sides == (None, None):
            raise typer.BadParameter("there is nobody to ask: --old, --new or --config is missing", param_hint="--old")
        with ExitStack() as stack:
            made = recorder(ready, chosen.record, stack)
            known = made.known if made else set()
            calls, worst = plan.left(ready.asked.plan, known)
            if known:
                shown.say(f"going on: {counted(len(known), 'call was', 'calls were')} recorded before")
            left = opened.Left(calls, worst if ready.ready.sides.new else estimate.Estimate(()))
            ended = await opened.go(ready, left, run.Notes(recorder=made))
            if ended is not None:
                _end(ended, chosen)
            return ended


def _end(ended: run.Ended, chosen: choice.Choice) -> None:
    if ended.complete and not ended.troubled:
        shown.say(f"recorded: {chosen.record}")
        return
    if ended.stopped:
        shown.say(f"stopped: {ended.stopped}")
    if ended.troubled:
        shown.say(f"{counted(ended.troubled, 'call')} met with trouble")
    if ended.left_out:
        shown.say(f"{counted(ended.left_out, 'call is', 'calls are')} not covered by the budget")
    shown.say(f"nothing is lost: the same command goes on from here ({chosen.record})")
