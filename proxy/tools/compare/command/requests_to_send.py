"""Requests of a run: those of a file or a recording."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from proxy.kit.wording import counted
from proxy.tools.compare.command import options
from proxy.tools.compare.running import plan
from proxy.traffic import reading
from proxy.traffic.clients import Clients, UnnamedKey
from proxy.traffic.recording.recorded import Recording
from proxy.traffic.v3_request import V3Request


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
        skipped, times = reading.Skipped(), list[float]()

        def timed(request: V3Request) -> V3Request:
            times[:] = [*(times[:1] or [request.at]), request.at] if request.at is not None else times
            return request

        found = map(timed, reading.read_requests(chosen.requests, clients, skipped))
        request_plan = plan.make_plan(found, chosen.sample, rng)
        notes = (*_counted(skipped), *_held(request_plan))
        seconds = times[-1] - times[0] if times and times[-1] > times[0] else None
        file = chosen.requests
        return RequestsToSend(request_plan, file.name, str(file.resolve()), seconds, notes, clients.unnamed())
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


def _counted(skipped: reading.Skipped) -> Iterator[str]:
    for reason, count in skipped.items():
        yield f"{count.times} × no request: {reason} (first: {count.first})"
