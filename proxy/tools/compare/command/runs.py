"""Runs of `compare` and `record`, from options to result: resumable, recorded on request.

The order of requests and the budget are decided in proxy/tools/compare. Exit codes: compare/judging/verdict.py.
"""

import hashlib
import os
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import typer

from proxy.cli import spending
from proxy.kit import event_loop, shipped
from proxy.kit.wording import counted
from proxy.mapping import loader as mapping
from proxy.stores import open as stores
from proxy.tools.compare.command import checks, options, setup
from proxy.tools.compare.generating import exercised, shrinking
from proxy.tools.compare.judging import summary, v3_fields, verdict
from proxy.tools.compare.judging.findings import Comparison
from proxy.tools.compare.judging.settings import ComparisonSettings
from proxy.tools.compare.judging.tally import Tally
from proxy.tools.compare.results import ComparisonResult
from proxy.tools.compare.running import judgement, plan, run
from proxy.tools.compare.running.progress import ProgressFile, ProgressHeader
from proxy.traffic.recording.recorder import Recorder, RecordingHeader
from proxy.traffic.v3_request import V3Request

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
    """Record without comparing. Returns None if the user declined."""
    async with setup.open_setup(chosen, settings) as ready:
        if ready.ready.sides == (None, None):
            raise typer.BadParameter(
                "there is no service to send requests to: --baseline, --candidate or --config is missing",
                param_hint="--baseline",
            )
        with ExitStack() as stack:
            recorder = open_recorder(ready, chosen.record, stack)
            known = recorder.known if recorder else set()
            costs = ready.costs
            requests, worst = plan.remaining(
                ready.source.plan, known, costs.both if ready.ready.sides.candidate else costs.baseline
            )
            if known:
                spending.say(f"resuming: {counted(len(known), 'request was', 'requests were')} recorded before")
            left = setup.RemainingRequests(requests, worst)
            ended = await setup.execute(ready, left, run.RunSinks(recorder=recorder))
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
    if ended.left_out:
        spending.say(f"{counted(ended.left_out, 'request is', 'requests are')} not covered by the budget")
    spending.say(f"progress is saved: run the same command again to resume ({chosen.record})")


NAMED = 3  # clients that a note names
LACKING = "request that was compared before is", "requests that were compared before are"
BEFORE = "request was compared before", "requests were compared before"
NOT_SHRUNK = "difference of fewer requests is not shrunk", "differences of fewer requests are not shrunk"
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
            for comparison in progress.comparisons() if progress else ():
                tally.add(comparison)
            tally.drop_ended(started)
            left = _remaining(ready, progress)
            recorder = open_recorder(ready, ready.chosen.record, stack)
            # Such requests are not sent again, because their comparison is saved and parts would be spent twice.
            if progress and recorder and (lacking := progress.done - recorder.known):
                spending.say(f"{counted(len(lacking), *LACKING)} not recorded; with --fresh all are")
            notes = run.RunSinks(note=progress.note if progress else None, add=tally.add, recorder=recorder)
            generated = GeneratedRun(ready, judged, tally) if ready.chosen.generate is not None else None
            if generated is not None:
                notes = notes._replace(seen=generated.exercised.add)
            after = None if generated is None else generated.shrink
            ended = await setup.execute(ready, left, notes, judged.judge, progress, after=after)
            if ended is None:
                return None
            _say_ended(ready, progress, ended, tally)
        about = _about(ready, started, ended, tally, generated.notes if generated else ())
        return judged.summary.result(tally, about)


class GeneratedRun:
    """What a run of generated requests does besides: notes what it exercised, and shrinks what it found."""

    def __init__(self, ready: setup.ComparisonSetup, judged: judgement.Judgement, tally: Tally) -> None:
        self.exercised = exercised.Exercised(v3_fields.load(ready.site or judgement.SITE))
        self._at_once = ready.chosen.candidate_concurrency
        self._judged = judged
        self._tally = tally
        self._left = 0

    async def shrink(self, running: run.ComparisonRun) -> None:
        """Replace the samples of the differences that count by shrunk ones."""

        async def examine(request: V3Request) -> Comparison:
            comparison = await running.examine(request)
            self._tally.spent += comparison.parts
            return comparison

        groups = {key: self._tally.groups[key] for key in self._judged.summary.counting(self._tally)}
        most = sorted(groups, key=lambda key: (-groups[key].requests, key))
        self._left = len(most[shrinking.GROUPS :])
        chosen = {key: groups[key] for key in most[: shrinking.GROUPS]}
        self._tally.groups |= await shrinking.Shrinker(examine, self._at_once).shrink(chosen)

    @property
    def notes(self) -> tuple[str, ...]:
        left = [counted(self._left, *NOT_SHRUNK)] if self._left else []
        return (*left, *self.exercised.never())


def _remaining(ready: setup.ComparisonSetup, progress: ProgressFile | None) -> setup.RemainingRequests:
    done, spent = (progress.done, progress.spent) if progress else (set(), 0)
    requests, estimate = plan.remaining(ready.source.plan, done, ready.costs.both)
    if done:
        spending.say(f"resuming: {len(done)} of {counted(len(ready.source.plan.requests), *BEFORE)}")
    return setup.RemainingRequests(requests, estimate, spent)


def _progress(ready: setup.ComparisonSetup, stack: ExitStack) -> ProgressFile | None:
    """Open the progress file; None for a replay, which costs nothing, takes seconds, and is not resumable."""
    chosen = ready.chosen
    if chosen.replay is not None:
        return None
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
    """Return a digest of everything that a judgement depends on: rules, noise, latency and, if the service is
    started here, its configuration and mappings."""
    files = () if config_file is None else (config_file, *shipped.mapping_files())
    parts = (chosen.rules, chosen.noise, chosen.latency, shipped.digest(files))
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _usual(header: ProgressHeader, chosen: options.ComparisonOptions) -> Path:
    """Return the default path of the progress file, in the state folder: the same for the same command."""
    message = msgspec.json.encode(
        (
            header.baseline,
            header.candidate,
            header.source,
            chosen.kind,
            checks.columns(chosen),
            chosen.sample,
            chosen.seed,
            chosen.generate,
        )
    )
    name = hashlib.blake2b(message + repr(chosen.rules).encode(), digest_size=8).hexdigest()
    return stores.default_file(os.environ).parent / "compare" / f"{name}.jsonl"


def _say_ended(
    ready: setup.ComparisonSetup, progress: ProgressFile | None, ended: run.RunOutcome, tally: Tally
) -> None:
    """Print how the run ended. The progress file is removed once every request is compared."""
    if ended.stopped is not None:
        spending.say(f"stopped: {ended.stopped}")
    if ended.left_out:
        spending.say(counted(ended.left_out, *LEFT_OUT))
    if progress is None:
        return
    if not ended.complete or tally.failures:
        spending.say(f"progress is saved: run the same command again to resume ({progress.path})")
    elif ready.chosen.progress is None:
        progress.remove()


def _about(
    ready: setup.ComparisonSetup, started: float, ended: run.RunOutcome, tally: Tally, more: tuple[str, ...]
) -> summary.RunInfo:
    notes = [*ready.source.notes, *more]
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
