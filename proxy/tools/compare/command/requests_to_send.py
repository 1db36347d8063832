"""Requests of a run: those of a file or a recording, or generated ones."""

import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proxy.kit import shipped
from proxy.kit.wording import counted
from proxy.mapping import loader
from proxy.tools.compare.command import checks, options
from proxy.tools.compare.generating import contents
from proxy.tools.compare.generating.grammar import RequestGenerator
from proxy.tools.compare.running import plan
from proxy.tools.compare.running.judgement import SITE
from proxy.traffic.recording.recorded import Recording
from proxy.traffic.sources import source as sources
from proxy.traffic.sources.clients import NO_KEY, Clients, UnnamedKey
from proxy.traffic.v3_request import parse_any_target
from proxy.traffic.v3_response import ComparedSide

OBJECT_REQUESTS = 100  # of a file, that are sent to the baseline for the objects that generated requests are for
OBJECTS = {
    "Part": ("part", "parts"),
    "Brand": ("brand", "brands"),
    "Seller": ("seller", "sellers"),
    "Category": ("category", "categories"),
}


class RequestsToSend(NamedTuple):
    """Requests of a source. `name` is the file's name, `place` its path; `seconds` is the time span of the recorded
    traffic, None if unknown.

    `keys` are those in it that the settings do not name; `client` sends requests without a key.
    """

    plan: plan.RequestPlan
    name: str
    place: str
    seconds: float | None
    notes: tuple[str, ...]
    keys: tuple[UnnamedKey, ...] = ()
    client: str = NO_KEY


def read_requests(chosen: options.ComparisonOptions, clients: Clients, recorded: Recording | None) -> RequestsToSend:
    """Read the requests of the chosen source; to generate others, some of them. Raises SourceError for a file without
    requests."""
    rng = random.Random(chosen.seed)  # noqa: S311 - reproducible by --seed
    if chosen.requests is not None:
        most = OBJECT_REQUESTS if chosen.generate else chosen.sample
        opened = sources.open_source(
            chosen.requests, clients, kind=chosen.kind, named=checks.columns(chosen), parse=parse_any_target
        )
        request_plan = plan.make_plan(opened.requests(), most, rng)
        notes = (*_counted(opened.junk), *_counted(opened.skipped), *_held(request_plan))
        return RequestsToSend(
            request_plan, opened.name, str(chosen.requests.resolve()), opened.seconds, notes, clients.unnamed()
        )
    if chosen.generate is not None:
        return RequestsToSend(plan.make_plan((), None, rng), "", "", None, (), client=clients.name(None))
    if recorded is None:
        raise AssertionError("checked before: there are requests or recorded responses")
    request_plan = plan.make_plan(recorded.requests(), chosen.sample, rng)
    return RequestsToSend(
        request_plan, recorded.path.name, str(recorded.path.resolve()), None, tuple(recording_notes(recorded))
    )


async def generate(
    number: int, seed: int, known: RequestsToSend, baseline: ComparedSide, site: str | None
) -> RequestsToSend:
    """Generate requests for the objects that the baseline returns to the `known` requests, or lists if there are none.

    Raises SourceError if it returns no part.
    """
    seen = [request for request in known.plan.requests if request.is_v3]
    client = seen[0].client if seen else known.client
    found = await contents.read(baseline, client, seen)
    mappings = loader.load(shipped.path("mappings"), site or SITE)
    requests = RequestGenerator(found, mappings, site or SITE, client, seed).requests(number)
    counts = ", ".join(counted(len(found[name]), *words) for name, words in OBJECTS.items())
    notes = [f"generated for {counts} of the baseline"]
    if len(requests) < number:
        notes.append(f"no more than {counted(len(requests), 'different request')} can be generated for these")
    name = f"generated requests, seed {seed}"
    return RequestsToSend(
        plan.make_plan(requests, None, random.Random(seed)),  # noqa: S311 - reproducible by --seed
        f"{name}, for {known.name}" if known.name else name,
        f"{name} {known.place}",
        None,
        (*known.notes, *notes),
        known.keys,
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
