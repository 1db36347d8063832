"""One comparison, from what was chosen to its result: judged, noted so that it can go on, recorded where that is asked.

Puts rooms together; what is asked when, and what is spent, is decided in proxy/compare.
"""

import hashlib
import os
from contextlib import ExitStack
from pathlib import Path

import msgspec
import typer

from proxy.cli.comparing import choice, judgement, opened, recording, shown
from proxy.compare import plan, run, summary
from proxy.compare.progress_file import Header, ProgressFile
from proxy.compare.result import Result
from proxy.compare.settings import Settings
from proxy.compare.tally import Tally
from proxy.kit.wording import counted
from proxy.stores import open as stores

NAMED = 3  # clients that a note names
LACKING = "call that was compared before is", "calls that were compared before are"
BEFORE = "call was compared before", "calls were compared before"
LEFT_OUT = (
    "call was left out: the budget does not cover what it may cost",
    "calls were left out: the budget does not cover what they may cost",
)


async def result(chosen: choice.Choice, settings: Settings) -> Result | None:
    """Compare. None where somebody said no."""
    async with opened.opened(chosen, settings) as ready:
        if None in ready.ready.sides:
            option = "--old" if ready.ready.sides.old is None else "--new"
            raise typer.BadParameter("there is nothing to compare with: this side is missing", param_hint=option)
        return await _compare(ready)


async def _compare(ready: opened.Opened) -> Result | None:
    started, baseline = ready.clock.now(), ready.chosen.baseline
    own_uids = ready.service.uids if ready.service else None
    judged = judgement.of(
        ready.settings, ready.site, ready.clock, ready.redaction.text, baseline=baseline, own_uids=own_uids
    )
    tally = Tally()
    with ExitStack() as stack:
        progress = _progress(ready, stack)
        for comparison in progress.comparisons() if progress else ():
            tally.add(comparison)
        left = _left(ready, progress)
        recorder = recording.recorder(ready, ready.chosen.record, stack)
        if progress and recorder and (lacking := progress.done - recorder.known):
            shown.say(f"{counted(len(lacking), *LACKING)} not recorded; with --fresh all are")
        notes = run.Notes(note=progress.note if progress else None, add=tally.add, recorder=recorder)
        ended = await opened.go(ready, left, notes, judged.judge, progress)
        if ended is None:
            return None
        _end(ready, progress, ended, tally)
    return judged.summary.result(tally, _about(ready, started, ended, tally))


def _left(ready: opened.Opened, progress: ProgressFile | None) -> opened.Left:
    done, spent = (progress.done, progress.spent) if progress else (set(), 0)
    calls, estimate = plan.left(ready.asked.plan, done)
    if done:
        shown.say(f"going on: {len(done)} of {counted(len(ready.asked.plan.calls), *BEFORE)}")
    return opened.Left(calls, estimate, spent)


def _progress(ready: opened.Opened, stack: ExitStack) -> ProgressFile | None:
    """Where the run notes what it does. A replay costs nothing and takes seconds: there is nothing to go on with."""
    chosen = ready.chosen
    if chosen.replay is not None:
        return None
    header = Header(
        old=str(ready.old),
        new=str(ready.new),
        source=ready.asked.place,
        settings=judgement.digest(ready.settings, chosen.config),
        calls=ready.asked.plan.digest,
    )
    path = chosen.progress or _usual(header, chosen)
    progress = ProgressFile(path, header, fresh=chosen.fresh)
    stack.callback(progress.close)
    return progress


def _usual(header: Header, chosen: choice.Choice) -> Path:
    """In the state folder, for the same command the same."""
    said = msgspec.json.encode(
        (header.old, header.new, header.source, chosen.kind, chosen.named, chosen.sample, chosen.seed)
    )
    name = hashlib.blake2b(said + repr(chosen.rules).encode(), digest_size=8).hexdigest()
    return stores.default_file(os.environ).parent / "compare" / f"{name}.jsonl"


def _end(ready: opened.Opened, progress: ProgressFile | None, ended: run.Ended, tally: Tally) -> None:
    """Say how it ended. What was noted is of no more use when every call was compared."""
    if ended.stopped is not None:
        shown.say(f"stopped: {ended.stopped}")
    if ended.left_out:
        shown.say(counted(ended.left_out, *LEFT_OUT))
    if progress is None:
        return
    if not ended.complete or tally.troubles:
        shown.say(f"nothing is lost: the same command goes on from here ({progress.path})")
    elif ready.chosen.progress is None:
        progress.remove()


def _about(ready: opened.Opened, started: float, ended: run.Ended, tally: Tally) -> summary.Run:
    notes = [*ready.asked.notes]
    if ended.stopped is not None:
        notes.append(f"the run was stopped: {ended.stopped}")
    if ended.left_out:
        notes.append(counted(ended.left_out, *LEFT_OUT))
    if ended.spent > tally.spent:
        notes.append(
            f"{counted(ended.spent - tally.spent, 'part')} more may have been spent: on calls that were cut off"
        )
    if len(ready.asked.plan.calls) < ready.asked.plan.distinct:
        notes.append(f"a sample: {len(ready.asked.plan.calls)} of {ready.asked.plan.distinct} different calls")
    return summary.Run(
        started=min(started, started if tally.first is None else tally.first),
        ended=ready.clock.now(),
        source=ready.asked.name,
        old=str(ready.old),
        new=str(ready.new),
        asked=ready.asked.plan.asked,
        seconds=ready.asked.seconds,
        budget=ready.limit,
        notes=tuple(map(ready.redaction.text, notes)),
        keys=tuple(msgspec.structs.replace(each, agent=ready.redaction.text(each.agent)) for each in ready.asked.keys),
        complete=ended.complete,
    )
