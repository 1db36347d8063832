"""A comparison from options to result: reads settings and requests, opens both sides, asks before parts are spent, and
runs.

Settings are those of compare.yaml, frozen, with everything resolved and checked. A ConfigError has every mistake, one
line each, such as `compare.yaml:12:5: rules[0].path: …`; none holds a key. A description completes the words "it
accepts" of an error message.
"""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from msgspec import Meta

from proxy import config
from proxy.cli import commands
from proxy.config import loader
from proxy.kit import clock, counted
from proxy.mapping import loader as mapping
from proxy.redaction import Redaction
from proxy.tools import running
from proxy.tools.compare import run, sides
from proxy.tools.compare.judging import causes, judge, result
from proxy.tools.compare.judging.findings import IgnoreRule
from proxy.tools.compare.options import SANDBOX, ComparisonOptions
from proxy.traffic import reading
from proxy.traffic.recordings import Recorder, Recording
from proxy.traffic.v3_request import ClientKeys, Clients, SideName, V3Request

HELD_MAX = 100_000  # distinct requests held in memory, of one to two kilobytes each
V3_RATE = 3.0  # requests per second that v3 allowed its free tier
SHIPPED = Path(__file__).with_name("compare.yaml")


class ComparisonSettings(config.Settings, frozen=True):
    """All settings."""

    keys: Annotated[
        tuple[ClientKeys, ...], Meta(description="a list of blocks with name, source, baseline and candidate")
    ] = ()
    rules: Annotated[tuple[IgnoreRule, ...], Meta(description="a list of blocks with path, reason and expires")] = ()
    baseline_rate: Annotated[float, Meta(ge=0, le=1000, description="requests a second, 0 (no limit) to 1000")] = (
        V3_RATE
    )


def load_settings(path: Path | None, environ: Mapping[str, str]) -> ComparisonSettings:
    """Read a file of settings, the shipped one where there is none. `env:` keys come from `environ`, `file:` ones from
    beside the file. Raises ConfigError."""
    reader = loader.Blocks(path or SHIPPED, environ)
    raw = {} if reader.located.data is None else reader.located.data
    if isinstance(raw, dict):
        raw = {name: value for name, value in raw.items() if value is not None}
        keys, rules = ([*listed] if isinstance(listed := raw.get(name), list) else [] for name in ("keys", "rules"))
        # What follows involves several keys or entries; msgspec checks each by itself.
        names = [entry.get("name") if isinstance(entry, dict) else None for entry in keys]
        for at, name in enumerate(names):
            if name and name in names[:at]:
                reader.report(("keys", at), f"the name {name} is given already")
        for at, entry in enumerate(rules):
            if not isinstance(entry, dict):
                continue
            if entry.get("path") is None and entry.get("cause") is None:
                reader.report(("rules", at), "needs path or cause")
            if "expires" in entry and entry["expires"] is None:
                reader.report(("rules", at, "expires"), "is empty; a rule that shall last says never")
            if entry.get("expires") == "never":
                rules[at] = entry | {"expires": None}
        raw |= {"rules": rules} if rules else {}
    return reader.checked(reader.block(ComparisonSettings, raw))


class RequestPlan(NamedTuple):
    """Requests of a run, in random order, so that a run that stops early has sent a fair sample, and the most `parts`
    that they may cost.

    `in_source` is the number of distinct requests in the source by endpoint, `distinct` that of all; `dropped` the
    number of those that are not held in memory.
    """

    requests: list[V3Request]
    parts: int
    in_source: dict[str, int]
    distinct: int
    dropped: int


async def compare(chosen: ComparisonOptions) -> result.ComparisonResult | None:
    """Compare, or only record where there is no candidate. Returns None if the user declined."""
    own, now = load_settings(chosen.rules, os.environ), clock.Clock().now
    started = now()
    for_all: dict[SideName, config.Secret | None] = {
        "baseline": running.read_key(chosen.baseline_key, "--baseline-key"),
        "candidate": running.read_key(chosen.candidate_key, "--candidate-key"),
    }
    clients = Clients(own.keys, for_all)
    service = loader.load(chosen.candidate_config, os.environ) if chosen.candidate_config else None
    # Checked before anything is started: a sandbox takes seconds.
    if chosen.baseline == SANDBOX and service and service.upstream != "sandbox":
        raise typer.BadParameter("the configuration has no upstream: sandbox", param_hint="--baseline")
    async with AsyncExitStack() as stack:
        recorded = Recording(chosen.baseline_file) if chosen.baseline_file else None
        if recorded:
            stack.callback(recorded.close)
        plan, notes = _plan(chosen, clients, recorded)
        source = (chosen.requests or chosen.baseline_file or Path()).name
        baseline, candidate = recorded or chosen.baseline or "", service or chosen.candidate
        opened = await stack.enter_async_context(sides.open_sides(baseline, candidate, clients.key, own.baseline_rate))
        redaction = _redaction((*clients.secrets(), *opened.keys, *(recorded.keys if recorded else ())), service)
        recorder = None
        if chosen.record:
            recorder = Recorder(chosen.record, chosen.baseline or "", redaction)
            stack.callback(recorder.close)
        if opened.free:
            notes.append("these parts are the embedded sandbox's, and free of charge")
        if not _confirm(chosen, plan, f"{plan.distinct} in {source}", notes, opened):
            return None
        today = datetime.fromtimestamp(started, UTC).date()
        judging = _judge(own, service, redaction, today)
        judged = judging if opened.candidate else None
        # What has been said and confirmed is the most, also where nothing else limits it.
        most = plan.parts if chosen.budget is None else chosen.budget
        tally, budget = result.Tally(), run.Budget(most)
        comparing = run.ComparisonRun(opened, budget, tally, redaction, judged, recorder)
        with running.progress_bar("comparing", len(plan.requests)) as update:
            stop = running.stop_on_signal()
            unfinished = await comparing.run(plan.requests, stop, lambda done: update(done, f"{budget.spent} parts"))
    return result.summarize(
        tally,
        plan.in_source,
        own.rules,
        judging.causes,
        today,
        started=started,
        ended=now(),
        source=source,
        baseline=chosen.baseline or "",
        candidate=chosen.candidate or str(chosen.candidate_config or ""),
        spent=budget.spent,
        budget=chosen.budget,
        keys=tuple(clients.unnamed.values()),
        notes=tuple(map(redaction.text, (*notes, *unfinished))),
        complete=not unfinished,
    )


def _redaction(secrets: tuple[str, ...], service: config.Config | None) -> Redaction:
    """Return what hides these secrets, and the API keys of a service, of which its configuration may have digests."""
    entries = service.applications.values() if service else ()
    digests = {key.key for entry in entries for key in entry.apikeys}
    return Redaction(secrets, (lambda text: config.digest(text) in digests) if digests else None)


def _plan(chosen: ComparisonOptions, clients: Clients, recorded: Recording | None) -> tuple[RequestPlan, list[str]]:
    """Read the requests of the chosen file, or of the recorded baseline, with notes for the reader. Raises
    SourceError."""
    notes: list[str] = []
    if recorded and recorded.unreadable:
        lines = counted(recorded.unreadable, "line is no response", "lines are no responses")
        notes.append(f"{recorded.path.name}: {lines}, the first is {recorded.first_unreadable}")
    if chosen.requests is None:
        plan = make_plan(recorded.requests.values() if recorded else [], chosen.sample)
    else:
        skipped = reading.Skipped()
        plan = make_plan(reading.read_requests(chosen.requests, clients, skipped), chosen.sample)
        notes += [f"{each.times} × no request: {why} (first: {each.first})" for why, each in skipped.items()]
    if plan.dropped:
        notes.append(f"{counted(plan.dropped, 'request')} are not held in memory: compare the file in pieces")
    if len(plan.requests) < plan.distinct:
        notes.append(f"a sample: {len(plan.requests)} of {plan.distinct} different requests")
    return plan, notes


def _confirm(chosen: ComparisonOptions, plan: RequestPlan, of: str, notes: list[str], opened: sides.Sides) -> bool:
    """Say what will be sent, and the most that it costs, on standard error, because standard output is for reports; and
    ask. Nothing that costs a part has been sent so far: declining costs nothing."""
    limit = "no budget" if chosen.budget is None else f"budget {counted(chosen.budget, 'part')}"
    cost = f"{counted(plan.parts, 'part')} at most; {limit}" if opened.candidate else "free of charge"
    commands.say(f"{counted(len(plan.requests), 'request')} of {of}; {cost}")
    for note in notes:
        commands.say(f"note: {note}")
    free = opened.free or opened.candidate is None
    return running.confirm_cost(plan.parts, chosen.budget, yes=chosen.yes, free=free)


def _judge(own: ComparisonSettings, service: config.Config | None, redaction: Redaction, today: date) -> judge.Judge:
    """Make the judge of a run, which knows the uids and the site of the service that is started here."""
    standing = [rule for rule in own.rules if rule.expires is None or rule.expires >= today]
    upstream = service.upstream if service else None
    site = upstream.site if isinstance(upstream, config.UpstreamSettings) else None
    tables = mapping.read_uids(Path(service.uids)) if service and service.uids else {}
    uids = frozenset(each.uid for entries in tables.values() for each in entries)
    return judge.Judge(standing, causes.Causes(site or causes.SITE), redaction.text, uids)


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
    chosen = [msgspec.structs.replace(request, times=times[known]) for known, request in first.items()]
    if most is not None and len(chosen) > most:
        # One of each endpoint, client and size class in turn, until there are enough.
        strata: defaultdict[tuple[str, str, int], list[V3Request]] = defaultdict(list)
        for request in chosen:
            strata[request.endpoint, request.client, reading.worst_case_parts(request).bit_length()].append(request)
        groups = [rng.sample(group, len(group)) for group in strata.values()]
        rounds = (group[place] for place in range(max(map(len, groups))) for group in groups if place < len(group))
        chosen = [request for request, _ in zip(rounds, range(most), strict=False)]
    rng.shuffle(chosen)  # logs are ordered by time, so their beginning is no fair sample
    parts = sum(map(reading.worst_case_parts, chosen))
    return RequestPlan(chosen, parts, dict(in_source), in_source.total(), dropped)
