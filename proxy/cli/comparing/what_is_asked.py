"""The calls of a run, from a file of requests or of answers, and what a reader should know of where they came from."""

import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proxy.cli.comparing import choice
from proxy.compare import plan, sources
from proxy.compare.clients import Clients
from proxy.compare.recorded import Recorded
from proxy.compare.result import SeenKey
from proxy.kit.wording import counted


class Asked(NamedTuple):
    """`name` is the file's, `place` where it is; `seconds` the time over which it was asked, where that is known.

    `keys` are those in it that the settings do not name.
    """

    plan: plan.Plan
    name: str
    place: str
    seconds: float | None
    notes: tuple[str, ...]
    keys: tuple[SeenKey, ...] = ()


def read(chosen: choice.Choice, clients: Clients, recorded: Recorded | None) -> Asked:
    """Read it whole. Raises SourceError for a file with no call in it."""
    rng = random.Random(chosen.seed)  # noqa: S311 (it is to be foreseen)
    if chosen.requests is not None:
        source = sources.open_source(chosen.requests, clients, kind=chosen.kind, named=chosen.named)
        made = plan.make(source.calls(), chosen.sample, rng)
        notes = (*_counted(source.junk), *_counted(source.skipped), *_held(made))
        return Asked(made, source.name, str(chosen.requests.resolve()), source.seconds, notes, clients.unnamed())
    if recorded is None:
        raise AssertionError("checked before: there are requests or recorded answers")
    made = plan.make(recorded.calls(), chosen.sample, rng)
    return Asked(made, recorded.path.name, str(recorded.path.resolve()), None, tuple(of_recorded(recorded)))


def of_recorded(recorded: Recorded) -> Iterator[str]:
    """What is wrong with a file of answers."""
    if recorded.cut:
        yield f"{recorded.path.name} ends in the middle of a line; what is whole is used"
    if recorded.junk.lines:
        junk = counted(recorded.junk.lines, "line is no answer", "lines are no answers")
        yield f"{recorded.path.name}: {junk}, the first is {recorded.junk.first}"


def _held(made: plan.Plan) -> Iterator[str]:
    if made.dropped:
        dropped = counted(made.dropped, "request is of a call that is", "requests are of calls that are")
        yield f"{dropped} not held: a fair sample is asked, a month counts all"


def _counted(counts: Iterable[sources.Count]) -> Iterator[str]:
    for count in counts:
        yield f"{count.times} × no request: {count.reason} (first: {count.first})"
