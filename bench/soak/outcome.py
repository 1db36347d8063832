"""What a soak is to be, what came of it, and what is wrong with that. Nothing here runs anything."""

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.soak.replies import LATE, ResponseJudge

ANSWER_BYTES = 16_000  # of the cache for each question; a response and the records that it is made of have more
MEMORY_GROWTH = 0.10  # in the second half of the load
DESCRIPTORS_MORE = 8
TASKS_MORE = 8
FEW = 5  # failed responses that are too few to count
SLOW = 0.01  # of the upstream requests; more that are late without a fault tell of a machine that is too slow


class Ledger(NamedTuple):
    """Parts of the application, for ever: returned, in doubt, held."""

    used: int
    doubtful: int
    reserved: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how often, and what is drawn."""

    seconds: float
    rate: float
    seed: int
    share: float

    @property
    def requests(self) -> int:
        """In all, under load."""
        return max(1, round(self.seconds * self.rate))

    @property
    def questions(self) -> int:
        """So many that each comes again and again: while its answer is kept, under way, and forgotten."""
        return min(250, max(40, self.requests // 8))

    @property
    def answer_bytes(self) -> int:
        """Bytes of the cache: fewer than the responses to all questions have, so that it is full before the load."""
        return ANSWER_BYTES * self.questions

    @property
    def unavailable(self) -> int:
        """So many responses under load may be a 503: a fifth of the upstream requests that would be struck if none
        were shared or kept."""
        return math.ceil(self.requests * self.share / 5) + FEW


@dataclass(slots=True)
class Outcome:
    """What came of it. `memory` in MB before the load, after its first half and after its second, with nothing under
    way; `answered` is how many requests of each kind got a 200 under load.

    `struck` and `asked` are upstream requests under load. `late` is how many of them ran out of time or stalled though
    no fault held them up, on a machine that is too slow: the sandbox takes such responses for read, the service has
    their parts as uncertain usage.
    """

    judge: ResponseJudge = field(default_factory=ResponseJudge)
    findings: list[str] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    rate: float = 0.0
    memory: list[float] = field(default_factory=list)
    asked: int = 0
    struck: int = 0
    descriptors: tuple[int, int, int] = (0, 0, 0)
    tasks: tuple[int, int, int] = (0, 0, 0)
    ledger: Ledger = field(default_factory=lambda: Ledger(0, 0, 0))
    totals: Any = None
    late: int = 0

    @property
    def wrong(self) -> list[str]:
        """Everything that is not as it should be."""
        return self.judge.findings + self.findings


def findings(plan: Plan, outcome: Outcome, kinds: Collection[str]) -> Iterator[str]:
    """What is wrong, beside single responses, when a soak is over. `kinds` are those of its questions."""
    yield from _parts(outcome)
    yield from _faults(plan, outcome)
    yield from outcome.judge.unexplained({**outcome.totals["faults"], LATE: outcome.late})
    if silent := [kind for kind in kinds if not outcome.answered[kind]]:
        yield f"nothing was answered under load of: {', '.join(sorted(silent))}"
    if outcome.judge.learned < plan.answer_bytes:
        yield f"the cache of {plan.answer_bytes} bytes was never full: {outcome.judge.learned} to keep"
    _, first, last = outcome.memory
    if last > first * (1 + MEMORY_GROWTH):
        yield f"memory has grown from {first:.0f} to {last:.0f} MB"
    if outcome.descriptors[2] > outcome.descriptors[0] + DESCRIPTORS_MORE:
        yield f"{outcome.descriptors[2]} descriptors are open, {outcome.descriptors[0]} were before the load"
    if outcome.tasks[2] > outcome.tasks[0] + TASKS_MORE:
        yield f"{outcome.tasks[2]} tasks are not done, {outcome.tasks[0]} were not before the load"


def _parts(outcome: Outcome) -> Iterator[str]:
    """Both sides' books."""
    (used, doubtful, reserved), totals = outcome.ledger, outcome.totals
    read = totals["parts"] - totals["spoiled_parts"]
    if used > read or (used < read and not outcome.late):
        yield f"{used} parts are booked, the sandbox has returned {read} in answers that could be read"
    if doubtful < totals["parts"] - used:
        yield f"{doubtful} parts are in doubt, fewer than the {totals['parts'] - used} billed and not booked"
    if reserved:
        yield f"{reserved} parts are held by requests that are over"
    if outcome.judge.cost > used + doubtful:
        yield f"replies say that they cost {outcome.judge.cost} parts, {used} are booked, {doubtful} in doubt"


def _faults(plan: Plan, outcome: Outcome) -> Iterator[str]:
    """Whether there were enough of them, and what they came to for clients."""
    if outcome.struck < plan.share * outcome.asked / 3:
        yield f"{outcome.struck} of {outcome.asked} upstream requests were struck, too few"
    statuses = outcome.judge.statuses
    if statuses[503] > plan.unavailable and outcome.late <= SLOW * outcome.asked:
        yield f"{statuses[503]} responses are a 503, more than {plan.unavailable}"
    if statuses[200] < sum(statuses.values()) / 4 and outcome.late <= SLOW * outcome.asked:
        yield "most requests have failed"
