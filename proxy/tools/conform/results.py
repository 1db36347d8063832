"""Results of a run: one outcome for each assumption, and what the run cost. `--json` prints them as they are."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from proxy import errors
from proxy.tools.conform.assumptions import Tier

Verdict = Literal["confirmed", "contradicted", "not tested"]
Service = Literal["sandbox", "Nexar", "another service"]


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Outcome of one assumption. `expected` and `got` are set if it was tested; `reason` says why it was not, or has
    the messages of the responses that contradict it."""

    id: str
    tier: Tier
    verdict: Verdict
    expected: Any = msgspec.UNSET
    got: Any = msgspec.UNSET
    reason: str = ""


class RunCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run cost. `at_worst` is the most parts that its requests could return, `returned` the part objects in the
    responses, `billed` those that the ledger of the service counted (None: not known, as for the real service)."""

    requests: int
    token_requests: int
    at_worst: int
    returned: int
    billed: int | None = None


class ResponseTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the response to a request took, and how large it was."""

    seconds: float
    bytes: int


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Plan of the application under test, as configured."""

    features: Literal["all"] | tuple[str, ...] = "all"
    parts: Literal["unlimited"] | int = "unlimited"
    period: Literal["month", "lifetime"] = "month"

    def __str__(self) -> str:
        parts = "unlimited parts" if self.parts == "unlimited" else f"{self.parts:,} parts a {self.period}"
        named = ", ".join(self.features) or "no features"
        return f"{'all features' if self.features == 'all' else named}; {parts.replace('a lifetime', 'once')}"


class RunResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Result of a run, which holds no credentials and nothing of an organization. `date` is that of UTC, `version` the
    program's. `times` are those of one part, by request: whole_part and plain_part."""

    service: Service
    date: str
    version: str
    plan: Plan
    cost: RunCost
    outcomes: tuple[Outcome, ...]
    times: dict[str, ResponseTime] = {}

    def of(self, verdict: Verdict) -> tuple[Outcome, ...]:
        """Return the outcomes with this verdict."""
        return tuple(outcome for outcome in self.outcomes if outcome.verdict == verdict)


def load(file: Path) -> RunResult:
    """Read what `v3bridge conform --json` has printed. Raises ConfigError."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=RunResult)
    except OSError as error:
        raise errors.ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise errors.ConfigError(f"{file}: is not a result of `v3bridge conform --json`: {error}") from error
