"""Runs of `compare`, from options to result: resumable, recorded on request.

The order of requests and the budget are decided in proxy/tools/compare. Exit codes: compare/judging/verdict.py.
"""

import hashlib
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import typer

from proxy.cli import spending
from proxy.config import store_place
from proxy.kit import shipped
from proxy.kit.wording import counted
from proxy.mapping import loader as mapping
from proxy.tools import event_loop
from proxy.tools.compare.command import checks, options, setup
from proxy.tools.compare.judging import summary, verdict
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.judging.tally import Tally
from proxy.tools.compare.results import ComparisonResult
from proxy.tools.compare.running import judgement, plan, run
from proxy.tools.compare.running.progress import ProgressFile, ProgressHeader
from proxy.traffic import estimate
from proxy.traffic.recording.recorder import Recorder, RecordingHeader

T = TypeVar("T")


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end. A run that a second signal cancels exits with NOT_COMPARED: code 1 would mean differences."""
    try:
        return event_loop.run(main)
    except SystemExit:
        raise typer.Exit(verdict.NOT_COMPARED) from None


def open_recorder(ready: setup.ComparisonSetup, path: Path | None, stack: ExitStack) -> Recorder | None:
    """Open the recorder of a file, closed with `stack`; None without a file."""
    if path is None:
        return None
    header = RecordingHeader(
        made=ready.clock.now(), baseline=ready.baseline, candidate=ready.candidate, source=ready.source.name
    )
    recorder = Recorder(path, header, ready.redaction, ready.data_time)
    stack.callback(recorder.close)
    return recorder


async def record(chosen: options.ComparisonOptions, settings: ComparisonSettings) -> run.RunOutcome | None:
    """Record the responses of the baseline without comparing. Returns None if the user declined."""
    async with setup.open_setup(chosen, settings) as ready:
        with ExitStack() as stack:
            recorder = open_recorder(ready, chosen.record, stack)
            known = recorder.known if recorder else set()
            requests, _ = plan.remaining(ready.source.plan, known)
            if known:
                spending.say(f"resuming: {counted(len(known), 'request was', 'requests were')} recorded before")
            free = estimate.estimate_requests(requests, lambda _: 0)
            ended = await setup.execute(ready, setup.RemainingRequests(requests, free), run.RunSinks(recorder=recorder))
            if ended is not None:
                _say_recorded(ended, chosen)
            return ended


def _say_recorded(ended: run.RunOutcome, chosen: options.ComparisonOptions) -> None:
    if ended.complete and not ended.not_compared:
        spending.say(f"recorded: {chosen.record}")
        return
    if ended.stopped:
        spending.say(f"stopped: {ended.stopped}")
    if ended.not_compared:
        spending.say(f"{counted(ended.not_compared, 'request was', 'requests were')} not recorded: {ended.failure}")
    spending.say(f"progress is saved: run the same command again to resume ({chosen.record})")


LACKING = "request that was compared before is", "requests that were compared before are"
BEFORE = "request was compared before", "requests were compared before"
LEFT_OUT = (
    "request was left out: the budget does not cover what it may cost",
    "requests were left out: the budget does not cover what they may cost",
)


async def compare(chosen: options.ComparisonOptions, settings: ComparisonSettings) -> ComparisonResult | None:
    """Compare. Returns None if the user declined."""
    async with setup.open_setup(chosen, settings) as ready:
        started, baseline = ready.clock.now(), checks.ignored_counts(ready.chosen)
        own = ready.service.uids if ready.service else None
        uids = frozenset(mapping.known_uids(Path(own)) if own else ())
        judged = judgement.build(
            ready.settings, ready.site, ready.clock, ready.redaction.text, baseline=baseline, uids=uids
        )
        tally = Tally()
        with ExitStack() as stack:
            progress = _progress(ready, stack)
            for comparison in progress.comparisons():
                tally.add(comparison)
            tally.drop_ended(started)
            left = _remaining(ready, progress)
            recorder = open_recorder(ready, ready.chosen.record, stack)
            # Such requests are not sent again, because their comparison is saved and parts would be spent twice.
            if recorder and (lacking := progress.done - recorder.known):
                spending.say(f"{counted(len(lacking), *LACKING)} not recorded; with --fresh all are")
            notes = run.RunSinks(note=progress.note, add=tally.add, recorder=recorder)
            ended = await setup.execute(ready, left, notes, judged.judge, progress)
            if ended is None:
                return None
            _say_ended(ready, progress, ended, tally)
        return judged.summary.result(tally, _about(ready, started, ended, tally))


def _remaining(ready: setup.ComparisonSetup, progress: ProgressFile) -> setup.RemainingRequests:
    requests, worst = plan.remaining(ready.source.plan, progress.done)
    if progress.done:
        spending.say(f"resuming: {len(progress.done)} of {counted(len(ready.source.plan.requests), *BEFORE)}")
    return setup.RemainingRequests(requests, worst, progress.spent)


def _progress(ready: setup.ComparisonSetup, stack: ExitStack) -> ProgressFile:
    """Open the progress file."""
    chosen = ready.chosen
    header = ProgressHeader(
        baseline=str(ready.baseline),
        candidate=str(ready.candidate),
        source=ready.source.place,
        settings=_digest(ready.settings, chosen.config),
        requests=ready.source.plan.digest,
    )
    path = chosen.progress or _usual(header, chosen)
    progress = ProgressFile(path, header, fresh=chosen.fresh)
    stack.callback(progress.close)
    return progress


def _digest(chosen: ComparisonSettings, config_file: Path | None) -> str:
    """Return a digest of everything that a judgement depends on: rules, latency and, if the service is
    started here, its configuration and mappings."""
    files = () if config_file is None else (config_file, *shipped.mapping_files())
    parts = (chosen.rules, chosen.latency, shipped.digest(files))
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _usual(header: ProgressHeader, chosen: options.ComparisonOptions) -> Path:
    """Return the default path of the progress file, in the state folder: the same for the same command."""
    message = msgspec.json.encode(
        (
            header.baseline,
            header.candidate,
            header.source,
            chosen.sample,
            chosen.seed,
        )
    )
    name = hashlib.blake2b(message + repr(chosen.rules).encode(), digest_size=8).hexdigest()
    return store_place.state_folder() / "compare" / f"{name}.jsonl"


def _say_ended(ready: setup.ComparisonSetup, progress: ProgressFile, ended: run.RunOutcome, tally: Tally) -> None:
    """Print how the run ended. The progress file is removed once every request is compared."""
    if ended.stopped is not None:
        spending.say(f"stopped: {ended.stopped}")
    if ended.left_out:
        spending.say(counted(ended.left_out, *LEFT_OUT))
    if not ended.complete or tally.failures:
        spending.say(f"progress is saved: run the same command again to resume ({progress.path})")
    elif ready.chosen.progress is None:
        progress.remove()


def _about(ready: setup.ComparisonSetup, started: float, ended: run.RunOutcome, tally: Tally) -> summary.RunInfo:
    notes = [*ready.source.notes]
    if ended.stopped is not None:
        notes.append(f"the run was stopped: {ended.stopped}")
    if ended.left_out:
        notes.append(counted(ended.left_out, *LEFT_OUT))
    if ended.spent > tally.spent:
        notes.append(
            f"{counted(ended.spent - tally.spent, 'part')} more may have been spent: on requests that were cut off"
        )
    if len(ready.source.plan.requests) < ready.source.plan.distinct:
        notes.append(f"a sample: {len(ready.source.plan.requests)} of {ready.source.plan.distinct} different requests")
    return summary.RunInfo(
        started=min(started, started if tally.first is None else tally.first),
        ended=ready.clock.now(),
        source=ready.source.name,
        baseline=str(ready.baseline),
        candidate=str(ready.candidate),
        candidate_url=ready.candidate_url,
        source_counts=ready.source.plan.source_counts,
        seconds=ready.source.seconds,
        budget=ready.limit,
        notes=tuple(map(ready.redaction.text, notes)),
        keys=tuple(msgspec.structs.replace(each, agent=ready.redaction.text(each.agent)) for each in ready.source.keys),
        complete=ended.complete,
    )
