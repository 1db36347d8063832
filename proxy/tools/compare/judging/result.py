"""Result of a comparison: comparisons are added up, and made an immutable value of which reports are functions.

Its JSON form is what `--json` writes; docs/compare.schema.json describes it. Texts may come from client data
and hold no key. Times are seconds since 1970.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import msgspec

from proxy.kit import counted
from proxy.tools.compare.judging import known
from proxy.tools.compare.judging.causes import Causes
from proxy.tools.compare.judging.findings import ABSENT, Cause, Comparison, IgnoreRule, Kind
from proxy.traffic.v3_request import UnnamedKey, V3Request

SCHEMA = 3
SAMPLES, CLIENTS, GROUPS = 3, 20, 1000  # most of each that are kept
LONGEST_TARGET = 8000  # characters of a request that is shown; v3 rejected longer ones
SAMPLE_REQUESTS = 100  # compared requests of an endpoint before a sample of its requests can be ready

Verdict = Literal["ready", "not ready", "inconclusive"]
EXIT_CODES: dict[Verdict, int] = {"ready": 0, "not ready": 1, "inconclusive": 2}

COUNTS = ("requests", "occurrences", "equivalent", "not_compared", "succeeded")  # fields of EndpointResult

_json = msgspec.json.Encoder(decimal_format="number")


class EndpointResult(msgspec.Struct, frozen=True):
    """Result of one endpoint.

    `requests` were compared, `occurrences` is the number of such requests in the source, repetitions included;
    `not_compared` failed; to `succeeded` of the compared ones both services responded with 200.
    """

    endpoint: str
    requests: int
    occurrences: int
    equivalent: int
    not_compared: int
    succeeded: int
    verdict: Verdict


class DifferenceSample(msgspec.Struct, frozen=True):
    """Sample of a difference. `baseline` and `candidate` are JSON text, None where a side has no value, truncated where
    long. `message` is the error message of the side that refused, empty if none did."""

    request: str
    origin: str
    place: str
    baseline: str | None
    candidate: str | None
    message: str = ""


class DifferenceGroup(msgspec.Struct, frozen=True):
    """Differences with the same endpoint, path, kind and cause. `requests` have them, `differences` is their total
    number; it `counts` against its requests, or is only reported."""

    endpoint: str
    path: str
    kind: Kind
    cause: Cause
    why: str
    requests: int
    differences: int
    counts: bool
    clients: tuple[str, ...]
    samples: tuple[DifferenceSample, ...]


class RuleUse(msgspec.Struct, frozen=True):
    """Rule, or known difference, and the number of differences that it ignored. `expires` is a date, `YYYY-MM-DD`."""

    name: str
    reason: str
    expires: str | None
    ignored: int
    expired: bool = False


class FailedRequests(msgspec.Struct, frozen=True):
    """Requests that could not be compared for one reason."""

    reason: str
    requests: int
    first_origin: str


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a run. `spent` and `budget` are in parts; `notes` holds remarks for the reader, such as unreadable
    lines of the source."""

    schema: int = SCHEMA
    started: float
    ended: float
    source: str
    baseline: str
    candidate: str
    verdict: Verdict
    rows: tuple[EndpointResult, ...]
    groups: tuple[DifferenceGroup, ...]
    rules: tuple[RuleUse, ...]
    spent: int
    budget: int | None
    failures: tuple[FailedRequests, ...]
    keys: tuple[UnnamedKey, ...] = ()
    notes: tuple[str, ...]
    complete: bool


def render_json(result: ComparisonResult) -> str:
    """Render the result as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n"


@dataclass
class _Group:
    requests: int = 0
    differences: int = 0
    clients: set[str] = field(default_factory=set)
    samples: list[DifferenceSample] = field(default_factory=list)


GroupKey = tuple[str, str, Kind, Cause]  # endpoint, path, kind, cause


@dataclass
class Tally:
    """Counts of comparisons, of bounded size. `rest` are differences of groups beyond the bound."""

    rows: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # COUNTS by endpoint
    groups: dict[GroupKey, _Group] = field(default_factory=dict)
    uncounted: set[GroupKey] = field(default_factory=set)
    ignored: Counter[str] = field(default_factory=Counter)
    failures: dict[str, FailedRequests] = field(default_factory=dict)
    rest: int = 0

    def add(self, comparison: Comparison) -> None:
        """Count one comparison."""
        request = comparison.request
        self.rows[request.endpoint].update(
            requests=1,
            occurrences=request.times,
            equivalent=int(not comparison.findings),
            succeeded=int(comparison.succeeded),
        )
        self.ignored.update(comparison.ignored)
        target, seen = request.target(), set[GroupKey]()
        for at, finding in enumerate((*comparison.findings, *comparison.moved, *comparison.unknown_uids)):
            each = finding.difference
            key = request.endpoint, each.path, each.kind, finding.cause
            if at >= len(comparison.findings):
                self.uncounted.add(key)
            if key not in self.groups and len(self.groups) >= GROUPS:
                self.rest += 1
                continue
            group = self.groups.setdefault(key, _Group())
            group.differences += 1
            if key in seen:
                continue
            seen.add(key)
            group.requests += 1
            if len(group.clients) < CLIENTS:
                group.clients.add(request.client)
            if len(group.samples) < SAMPLES and len(target) <= LONGEST_TARGET:
                sides = (each.baseline, each.candidate)
                one, other = (None if value is ABSENT else _json.encode(value).decode() for value in sides)
                group.samples.append(DifferenceSample(target, request.origin, each.place, one, other, each.message))

    def fail(self, request: V3Request, reason: str) -> None:
        """Count a request that could not be compared."""
        self.rows[request.endpoint]["not_compared"] += 1
        before = self.failures.get(reason) or FailedRequests(reason, 0, request.origin)
        self.failures[reason] = FailedRequests(reason, before.requests + 1, before.first_origin)


def summarize(
    tally: Tally, in_source: Mapping[str, int], rules: Sequence[IgnoreRule], causes: Causes, today: date, **run: Any
) -> ComparisonResult:
    """Make the result of a run. `in_source` is the number of distinct requests in the source by endpoint; `run` are
    further fields of the result."""
    groups = tuple(
        DifferenceGroup(
            *key,
            causes.why(*key),
            group.requests,
            group.differences,
            key not in tally.uncounted,
            tuple(sorted(group.clients)),
            tuple(group.samples),
        )
        for key, group in tally.groups.items()
    )
    rows = tuple(_rows(tally, in_source))
    notes = [*run["notes"]]
    if unknown := sum(group.differences for key, group in tally.groups.items() if key[3] == "uid not known"):
        notes.append(
            f"{counted(unknown, 'uid is', 'uids are')} not known: v3bridge sends others for the same objects. This does"
            " not count; programs that store uids need a table of them, which v3bridge compare --learn-uids writes"
        )
    if tally.rest:
        notes.append(f"{counted(tally.rest, 'difference')} of further kinds count and are not listed")
    verdicts = {row.verdict for row in rows}
    is_ready = run["complete"] and verdicts == {"ready"}
    return ComparisonResult(
        # The worst of the rows, and never ready if the run is incomplete.
        verdict="not ready" if "not ready" in verdicts else "ready" if is_ready else "inconclusive",
        rows=rows,
        groups=tuple(sorted(groups, key=lambda group: (not group.counts, -group.requests, group.endpoint, group.path))),
        rules=tuple(_rules(tally, rules, today)),
        failures=tuple(sorted(tally.failures.values(), key=lambda each: -each.requests)),
        **{**run, "notes": tuple(notes)},
    )


def _rows(tally: Tally, in_source: Mapping[str, int]) -> Iterator[EndpointResult]:
    # One equivalent request proves nothing, and equal errors do not show that clients are served.
    compared = sum(row["requests"] for row in tally.rows.values())
    is_proof = compared > 1 and any(row["succeeded"] for row in tally.rows.values())
    for endpoint in sorted({*in_source, *tally.rows}):
        counts = tally.rows.get(endpoint) or Counter[str]()
        row = {name: counts[name] for name in COUNTS}
        is_enough = row["requests"] >= min(in_source.get(endpoint, 0), SAMPLE_REQUESTS)
        verdict: Verdict = "inconclusive"
        if row["equivalent"] < row["requests"]:
            verdict = "not ready"
        elif is_proof and row["requests"] and is_enough and not row["not_compared"]:  # what failed may differ
            verdict = "ready"
        yield EndpointResult(endpoint, verdict=verdict, **row)


def _rules(tally: Tally, rules: Sequence[IgnoreRule], today: date) -> Iterator[RuleUse]:
    """Yield the use of each rule, and of each known difference that was found."""
    for rule in rules:
        expires = rule.expires.isoformat() if rule.expires else None
        is_expired = rule.expires is not None and rule.expires < today
        yield RuleUse(rule.name, rule.reason, expires, tally.ignored[rule.name], is_expired)
    for name, reason in known.REASONS.items():
        if tally.ignored[name]:
            yield RuleUse(name, reason, None, tally.ignored[name])
