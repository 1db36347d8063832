"""Results of a run: one outcome for each assumption, with what was spent. `--json` prints them as they are."""

from typing import Any, Literal

import msgspec

from proxy.conformance.assumptions import Tier

Verdict = Literal["confirmed", "contradicted", "not tested"]


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """Outcome of one assumption. `expected` and `got` are set if it was tested, `reason` if it was not, or if the
    observed response explains the difference."""

    id: str
    tier: Tier
    verdict: Verdict
    expected: Any = msgspec.UNSET
    got: Any = msgspec.UNSET
    reason: str = ""


class RunResult(msgspec.Struct, frozen=True):
    """Result of a run. `at_worst` is the most parts that the sent requests could cost, `parts` the part objects in
    their responses."""

    outcomes: tuple[Outcome, ...]
    requests: int
    token_requests: int
    at_worst: int
    parts: int

    def of(self, verdict: Verdict) -> tuple[Outcome, ...]:
        """The outcomes with this verdict."""
        return tuple(outcome for outcome in self.outcomes if outcome.verdict == verdict)
