"""Result of a comparison, as an immutable value: reports are functions of it and compute nothing.

`judging/summary.py` makes it. Its JSON form is what `--json` writes; docs/reference/compare.schema.json describes it.
Texts may come from client data and hold no key. Times are seconds since 1970; shares are between 0 and 1.
"""

import re
from typing import Literal

import msgspec

from proxy.tools import json_texts
from proxy.tools.compare.judging.findings import Cause, Kind
from proxy.traffic.clients import UnnamedKey

SCHEMA = 2
_SURROGATE = re.compile("[\ud800-\udfff]")

Verdict = Literal["ready", "not ready", "inconclusive"]


class Interval(msgspec.Struct, frozen=True):
    """95 % confidence interval of a share."""

    low: float
    high: float


class SideInfo(msgspec.Struct, frozen=True):
    """Side of the run: its location, or the file that it was read from."""

    name: Literal["baseline", "candidate"]
    place: str


class EndpointResult(msgspec.Struct, frozen=True):
    """Result of one client at one endpoint.

    `requests` were compared, `occurrences` is the number of such requests in the source, repetitions included;
    `not_compared` failed; to `succeeded` of the compared ones both services responded with 200. `share` is the share of
    equivalent requests, None without any.
    """

    client: str
    endpoint: str
    requests: int
    occurrences: int
    equivalent: int
    not_compared: int
    succeeded: int
    share: float | None
    interval: Interval | None
    verdict: Verdict


class DifferenceSample(msgspec.Struct, frozen=True):
    """Sample of a difference. `baseline` and `candidate` are JSON text, None where a side has no value, truncated where
    long.

    `message` is the error message of the side that refused, empty if none did; a curl line is empty where its side
    cannot be requested.
    """

    request: str
    origin: str
    place: str
    baseline: str | None
    candidate: str | None
    baseline_curl: str
    candidate_curl: str
    message: str = ""


class DifferenceGroup(msgspec.Struct, frozen=True):
    """Differences with the same endpoint, path, kind and cause. `requests` have them, `differences` is their total
    number; it `counts` against its requests, or is only reported.
    """

    endpoint: str
    path: str
    kind: Kind
    cause: Cause
    why: str
    requests: int
    differences: int
    counts: bool
    first_seen: float
    last_seen: float
    clients: tuple[str, ...]
    samples: tuple[DifferenceSample, ...]


class RuleUse(msgspec.Struct, frozen=True):
    """Rule and the number of differences that it ignored. `expires` is a date, `YYYY-MM-DD`."""

    name: str
    reason: str
    expires: str | None
    ignored: int
    expired: bool


class LatencyDistribution(msgspec.Struct, frozen=True):
    """Latency histogram of one side at one endpoint. `buckets` are counts of responses up to each of `bounds`
    (seconds), and one more for those beyond.
    """

    endpoint: str
    side: Literal["baseline", "candidate"]
    responses: int
    p50: float
    p95: float
    p99: float
    bounds: tuple[float, ...]
    buckets: tuple[int, ...]


class ComparisonCost(msgspec.Struct, frozen=True):
    """Cost in parts. `spent` is that of this run, `per_month` the extrapolated cost of the source's requests in 30
    days, None where the source covers an unknown period or the candidate does not state its costs.
    """

    spent: int
    budget: int | None
    per_month: int | None


class FailedRequests(msgspec.Struct, frozen=True):
    """Requests that could not be compared for one reason."""

    reason: str
    requests: int
    first_origin: str


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a run. `failed` describes the exceeded thresholds; `notes` holds remarks for the reader, such as
    unreadable lines of the source.
    """

    schema: int = SCHEMA
    started: float
    ended: float
    source: str
    sides: tuple[SideInfo, SideInfo]
    verdict: Verdict
    rows: tuple[EndpointResult, ...]
    groups: tuple[DifferenceGroup, ...]
    rules: tuple[RuleUse, ...]
    latencies: tuple[LatencyDistribution, ...]
    cost: ComparisonCost
    failures: tuple[FailedRequests, ...]
    keys: tuple[UnnamedKey, ...] = ()
    failed: tuple[str, ...]
    notes: tuple[str, ...]
    complete: bool


def render_json(result: ComparisonResult) -> str:
    """Render the result as indented JSON. Text that UTF-8 cannot encode is escaped."""
    encoded = msgspec.json.encode(json_texts.changed(msgspec.to_builtins(result), encodable))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def encodable(text: str) -> str:
    """Replace lone surrogates, the only characters that UTF-8 cannot encode, by JSON escapes."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
