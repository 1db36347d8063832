"""A comparison from options to result: reads the requests, opens both sides, asks before parts are spent, and runs."""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import typer

from proxy import config
from proxy.cli import commands
from proxy.config import loader
from proxy.kit import clock, counted
from proxy.mapping import loader as mapping
from proxy.redaction import IsKey, Redaction
from proxy.tools import event_loop
from proxy.tools.compare import run, settings, sides
from proxy.tools.compare.judging import causes, judge, result
from proxy.tools.compare.options import SANDBOX, ComparisonOptions
from proxy.traffic import estimate, reading
from proxy.traffic.recordings import Recorder, Recording
from proxy.traffic.v3_request import Clients, SideName, V3Request

HELD_MAX = 100_000  # distinct requests held in memory, of one to two kilobytes each


class RequestPlan(NamedTuple):
    """Requests of a run, in random order, so that a run that stops early has sent a fair sample.

    `in_source` is the number of distinct requests in the source by endpoint; `dropped` the number of those that are not
    held in memory.
    """

    requests: list[V3Request]
    in_source: dict[str, int]
    dropped: int

    @property
    def distinct(self) -> int:
        """Number of distinct requests in the source."""
        return sum(self.in_source.values())

    @property
    def parts(self) -> int:
        """The most that the requests may cost."""
        return sum(map(estimate.worst_case_parts, self.requests))


class Source(NamedTuple):
    """Requests of a run, the name of their file, and notes for the reader."""

    plan: RequestPlan
    name: str
    notes: list[str]


async def compare(chosen: ComparisonOptions) -> result.ComparisonResult | None:
    """Compare, or only record where there is no candidate. Returns None if the user declined."""
    own, now = settings.load(chosen.rules, os.environ), clock.SystemClock().now
    started, clients = now(), Clients(own.keys)
    service = loader.load(chosen.candidate_config, os.environ) if chosen.candidate_config else None
    # Checked before anything is started: a sandbox takes seconds.
    if chosen.baseline == SANDBOX and service and service.upstream != "sandbox":
        raise typer.BadParameter("the configuration has no upstream: sandbox", param_hint="--baseline")
    async with AsyncExitStack() as stack:
        recorded = Recording(chosen.baseline_file) if chosen.baseline_file else None
        if recorded:
            stack.callback(recorded.close)
        source = _source(chosen, clients, recorded)
        for_all: dict[SideName, config.Secret | None] = {
            "baseline": commands.read_key(chosen.baseline_key, "--baseline-key"),
            "candidate": commands.read_key(chosen.candidate_key, "--candidate-key"),
        }

        def key(client: str, side: SideName) -> str | None:
            given = for_all[side]
            return given.reveal() if given else clients.key(client, side)

        baseline, candidate = recorded or chosen.baseline or "", service or chosen.candidate
        opened = await stack.enter_async_context(sides.open_sides(baseline, candidate, key, own.baseline_rate))
        given = (each.reveal() for each in for_all.values() if each)
        secrets = (*clients.secrets(), *given, *opened.keys, *(recorded.keys if recorded else ()))
        redaction = Redaction(secrets, _is_key_of(service))
        recorder = None
        if chosen.record:
            recorder = Recorder(chosen.record, chosen.baseline or "", redaction)
            stack.callback(recorder.close)
        free = opened.free or opened.candidate is None
        _show(source, chosen.budget, free=free)
        # Nothing that costs a part has been sent so far: declining costs nothing.
        if not commands.confirm_cost(source.plan.parts, chosen.budget, yes=chosen.yes, free=free):
            return None
        today = datetime.fromtimestamp(started, UTC).date()
        standing = [rule for rule in own.rules if rule.expires is None or rule.expires >= today]
        upstream = service.upstream if service else None
        site = upstream.site if isinstance(upstream, config.UpstreamSettings) else None
        why = causes.Causes(site or causes.SITE)
        uids = frozenset(mapping.known_uids(Path(service.uids))) if service and service.uids else frozenset[str]()
        judged = judge.Judge(standing, why, redaction.text, uids) if opened.candidate else None
        # What has been said and confirmed is the most, also where nothing else limits it.
        limit = source.plan.parts if chosen.budget is None else chosen.budget
        tally, budget = result.Tally(), run.Budget(limit)
        running = run.ComparisonRun(opened, budget, tally, redaction, judged, recorder)
        with commands.progress_bar("comparing", len(source.plan.requests)) as update:
            stop = event_loop.stop_on_signal()
            ended = await running.run(source.plan.requests, stop, lambda done: update(done, f"{budget.spent} parts"))
    notes = (*source.notes, *ended.notes())
    return result.summarize(
        tally,
        source.plan.in_source,
        own.rules,
        why,
        today,
        started=started,
        ended=now(),
        source=source.name,
        baseline=chosen.baseline or "",
        candidate=chosen.candidate or str(chosen.candidate_config or ""),
        spent=budget.spent,
        budget=chosen.budget,
        keys=clients.unnamed(),
        notes=tuple(map(redaction.text, notes)),
        complete=ended.stopped is None and not ended.left_out,
    )


def _source(chosen: ComparisonOptions, clients: Clients, recorded: Recording | None) -> Source:
    """Read the requests of the chosen file, or of the recorded baseline. Raises SourceError."""
    notes: list[str] = []
    if recorded and recorded.unreadable:
        lines = counted(recorded.unreadable, "line is no response", "lines are no responses")
        notes.append(f"{recorded.path.name}: {lines}, the first is {recorded.first_unreadable}")
    if chosen.requests is None:
        plan = make_plan(recorded.requests() if recorded else [], chosen.sample)
    else:
        skipped = reading.Skipped()
        plan = make_plan(reading.read_requests(chosen.requests, clients, skipped), chosen.sample)
        notes += [f"{each.times} × no request: {why} (first: {each.first})" for why, each in skipped.items()]
    if plan.dropped:
        notes.append(f"{counted(plan.dropped, 'request')} are not held in memory: compare the file in pieces")
    if len(plan.requests) < plan.distinct:
        notes.append(f"a sample: {len(plan.requests)} of {plan.distinct} different requests")
    return Source(plan, (chosen.requests or chosen.baseline_file or Path()).name, notes)


def _show(source: Source, budget: int | None, *, free: bool) -> None:
    """Print the requests to be sent and their worst-case cost to standard error: standard output is for reports."""
    limit = "no budget" if budget is None else f"budget {counted(budget, 'part')}"
    cost = "free of charge" if free else f"{counted(source.plan.parts, 'part')} at most; {limit}"
    plan = source.plan
    commands.say(f"{counted(len(plan.requests), 'request')} of {plan.distinct} in {source.name}; {cost}")
    for note in source.notes:
        commands.say(f"note: {note}")


def _is_key_of(service: config.Config | None) -> IsKey | None:
    """Return what tells that a text is an API key of the service, of which the configuration may have digests only."""
    if service is None:
        return None
    digests = {key.key for application in service.applications.values() for key in application.apikeys}
    return lambda text: config.digest(text) in digests


def make_plan(requests: Iterable[V3Request], most: int | None, held: int = HELD_MAX) -> RequestPlan:
    """Plan a run: equal requests are sent once; of more than `most` a sample, which has some of each kind. The order is
    the same for the same source."""
    rng = random.Random(1)  # noqa: S311 - reproducible
    first: dict[str, V3Request] = {}
    times: Counter[str] = Counter()
    in_source: Counter[str] = Counter()
    dropped = 0
    for request in requests:
        known = request.id
        if known not in first:
            if len(first) >= held:
                dropped += 1
                continue
            first[known] = request
            in_source[request.endpoint] += 1
        times[known] += request.times
    distinct = [msgspec.structs.replace(request, times=times[known]) for known, request in first.items()]
    chosen = distinct if most is None or len(distinct) <= most else _sample(distinct, most, rng)
    rng.shuffle(chosen)  # logs are ordered by time, so their beginning is no fair sample
    return RequestPlan(chosen, dict(in_source), dropped)


def _sample(requests: list[V3Request], most: int, rng: random.Random) -> list[V3Request]:
    """Select `most` requests: one of each endpoint, client and size class in turn, until there are enough."""
    strata: defaultdict[tuple[str, str, int], list[V3Request]] = defaultdict(list)
    for request in requests:
        strata[request.endpoint, request.client, estimate.worst_case_parts(request).bit_length()].append(request)
    groups = [rng.sample(group, len(group)) for group in strata.values()]
    rounds = (group[place] for place in range(max(map(len, groups))) for group in groups if place < len(group))
    return [request for request, _ in zip(rounds, range(most), strict=False)]
