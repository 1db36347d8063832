"""Parameters of a soak, its measured outcome, and the checks of that outcome. Pure."""

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.soak.response_judge import EXPIRED_TOKEN, LATE, ResponseJudge

CACHE_BYTES = 16_000  # per distinct request; a response and its source records are larger
MEMORY_GROWTH = 0.10  # allowed in the second half of the load
EXTRA_DESCRIPTORS = 8
EXTRA_TASKS = 8
FAILURE_MARGIN = 5  # failed responses that are always allowed
TOKEN_BACK_OFF = 1.0  # seconds without token requests after one that failed (docs/explanation/faults.md)
SLOW_SHARE = 0.01  # of upstream requests; if more are late without a fault, the machine is too slow


class LedgerTotals(NamedTuple):
    """Lifetime usage of the application, in parts."""

    used: int
    uncertain: int
    reserved: int


@dataclass(frozen=True, slots=True)
class SoakPlan:
    """Parameters of a soak: seconds of load, requests per second, seed, share of upstream requests with a fault."""

    seconds: float
    rate: float
    seed: int
    fault_share: float

    @property
    def requests(self) -> int:
        """Number of requests under load."""
        return max(1, round(self.seconds * self.rate))

    @property
    def distinct_requests(self) -> int:
        """Few enough that each request repeats: while its response is cached, in flight, and expired."""
        return min(250, max(40, self.requests // 8))

    @property
    def cache_bytes(self) -> int:
        """Size of the cache, smaller than all responses together, so that it is full before the load."""
        return CACHE_BYTES * self.distinct_requests

    @property
    def unavailable(self) -> int:
        """Maximum number of 503 responses under load: a fifth of the upstream requests that would have a fault without
        coalescing and caching."""
        return math.ceil(self.requests * self.fault_share / 5) + FAILURE_MARGIN


@dataclass(slots=True)
class SoakOutcome:
    """Measurements and errors of a soak.

    `memory`: MB before the load, after its first half and after its second, with no request in flight. `succeeded`:
    requests with a 200 under load, by kind. `upstream_requests` and `faulted`: upstream requests under load, and those
    with an injected fault. `late`: upstream requests that timed out or stalled without a fault, on a machine that is
    too slow; the sandbox counts their responses as read, the service counts their parts as uncertain usage.
    """

    judge: ResponseJudge = field(default_factory=ResponseJudge)
    run_errors: list[str] = field(default_factory=list)
    succeeded: Counter[str] = field(default_factory=Counter)
    rate: float = 0.0
    memory: list[float] = field(default_factory=list)
    upstream_requests: int = 0
    faulted: int = 0
    descriptors: tuple[int, int, int] = (0, 0, 0)
    tasks: tuple[int, int, int] = (0, 0, 0)
    ledger: LedgerTotals = field(default_factory=lambda: LedgerTotals(0, 0, 0))
    totals: Any = None
    late: int = 0

    @property
    def errors(self) -> list[str]:
        """Errors of responses, then errors of the run."""
        return self.judge.errors + self.run_errors


def check(plan: SoakPlan, outcome: SoakOutcome, kinds: Collection[str]) -> Iterator[str]:
    """Check a finished soak, except for single responses; yields errors. `kinds`: the kinds of its requests."""
    yield from _check_usage(outcome)
    yield from _check_faults(plan, outcome)
    yield from outcome.judge.unexplained({**outcome.totals["faults"], LATE: outcome.late})
    if failed := [kind for kind in kinds if not outcome.succeeded[kind]]:
        yield f"no request succeeded under load of: {', '.join(sorted(failed))}"
    if outcome.judge.baseline_bytes < plan.cache_bytes:
        yield f"the cache of {plan.cache_bytes} bytes was never full: all responses have {outcome.judge.baseline_bytes}"
    _, first, last = outcome.memory
    if last > first * (1 + MEMORY_GROWTH):
        yield f"memory grew from {first:.0f} to {last:.0f} MB"
    if outcome.descriptors[2] > outcome.descriptors[0] + EXTRA_DESCRIPTORS:
        yield f"{outcome.descriptors[2]} descriptors are open, {outcome.descriptors[0]} were open before the load"
    if outcome.tasks[2] > outcome.tasks[0] + EXTRA_TASKS:
        yield f"{outcome.tasks[2]} tasks are not done, {outcome.tasks[0]} were not done before the load"


def _check_usage(outcome: SoakOutcome) -> Iterator[str]:
    """Compare the usage ledger of the service with the usage that the sandbox billed."""
    (used, uncertain, reserved), totals = outcome.ledger, outcome.totals
    read = totals["parts"] - totals["spoiled_parts"]
    if used > read or (used < read and not outcome.late):
        yield f"{used} parts are booked, the sandbox returned {read} in readable responses"
    if uncertain < totals["parts"] - used:
        yield f"{uncertain} parts are uncertain usage, fewer than the {totals['parts'] - used} billed and not booked"
    if reserved:
        yield f"{reserved} parts are still reserved by finished requests"
    if outcome.judge.cost > used + uncertain:
        yield f"responses state a cost of {outcome.judge.cost} parts, {used} are booked, {uncertain} uncertain"


def _check_faults(plan: SoakPlan, outcome: SoakOutcome) -> Iterator[str]:
    """Check that enough faults were injected, and that few of them reached clients."""
    if outcome.faulted < plan.fault_share * outcome.upstream_requests / 3:
        yield f"{outcome.faulted} of {outcome.upstream_requests} upstream requests had a fault, too few"
    statuses = outcome.judge.statuses
    # While the service backs off from token requests, it refuses what arrives. How much that is depends on whether the
    # back-off of a fault falls into the load, so on the machine; more back-offs than faults are an error.
    token_faults = sum(outcome.totals["faults"].get(kind, 0) for kind in EXPIRED_TOKEN.split())
    backed_off = min(outcome.judge.without_token, round(plan.rate * TOKEN_BACK_OFF * token_faults))
    unavailable = statuses[503] - backed_off
    if unavailable > plan.unavailable and outcome.late <= SLOW_SHARE * outcome.upstream_requests:
        yield f"{unavailable} responses are a 503, more than {plan.unavailable}"
    if statuses[200] < sum(statuses.values()) / 4 and outcome.late <= SLOW_SHARE * outcome.upstream_requests:
        yield "most requests failed"
