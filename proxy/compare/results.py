"""Result of a comparison, as an immutable value: reports are functions of it and compute nothing.

`judging/summary.py` makes it. Its JSON form is what `--json` writes; docs/reference/compare.schema.json describes it.
Texts may come from client data and hold no key. Times are seconds since 1970; shares are between 0 and 1.
"""

import inspect
import json
import re
from typing import Any, Literal

import msgspec

from proxy.compare.judging.findings import Cause, Kind

SCHEMA = 2
_SURROGATE = re.compile("[\ud800-\udfff]")

NO_APPLICATION = "no application has the key of"  # how a trouble begins that is a key's

Verdict = Literal["ready", "not ready", "inconclusive"]


class Interval(msgspec.Struct, frozen=True):
    """95 % of a share."""

    low: float
    high: float


class SideInfo(msgspec.Struct, frozen=True):
    """A side of the run: where it is, or what it was read from."""

    name: Literal["baseline", "candidate"]
    place: str


class EndpointResult(msgspec.Struct, frozen=True):
    """Result of one client at one endpoint.

    `requests` were compared, `occurrences` is how often such requests stand in the source; `not_compared` failed.
    `share` is that of equivalent requests, None without any.
    """

    client: str
    endpoint: str
    requests: int
    occurrences: int
    equivalent: int
    not_compared: int
    share: float | None
    interval: Interval | None
    verdict: Verdict


class DifferenceSample(msgspec.Struct, frozen=True):
    """One place where it showed. `old` and `new` are JSON text, None where a side has nothing, cut where long.

    `said` is the message of the side that refuses, empty where none does; a curl line is empty where its side is none
    that can be asked.
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
    """Differences of one sort at one endpoint. `requests` have it, `differences` is how many there are in all.

    `noise` is the share of requests in which the baseline disagrees with itself at this path, None where that was not
    looked at; a group `counts` against its requests only where it exceeds that.
    """

    endpoint: str
    path: str
    kind: Kind
    cause: Cause
    why: str
    requests: int
    differences: int
    noise: float | None
    counts: bool
    first_seen: float
    last_seen: float
    clients: tuple[str, ...]
    samples: tuple[DifferenceSample, ...]


class RuleUse(msgspec.Struct, frozen=True):
    """A rule and what it hid. `expires` is a date, `YYYY-MM-DD`."""

    name: str
    reason: str
    expires: str | None
    hidden: int
    expired: bool


class LatencyDistribution(msgspec.Struct, frozen=True):
    """How long one side took at one endpoint, in seconds. `buckets` are counts of answers up to each of `bounds`, and
    one more for those beyond.
    """

    endpoint: str
    side: Literal["baseline", "candidate"]
    answers: int
    p50: float
    p95: float
    p99: float
    bounds: tuple[float, ...]
    buckets: tuple[int, ...]


class ComparisonCost(msgspec.Struct, frozen=True):
    """Parts. `spent` by this run, `a_month` what the source's requests would come to in 30 days, None where the source
    does not say over what time they were asked, or the candidate not what its responses to an endpoint's requests cost.
    """

    spent: int
    budget: int | None
    per_month: int | None


class FailedRequests(msgspec.Struct, frozen=True):
    """Requests that could not be compared, for one reason."""

    reason: str
    requests: int
    first_origin: str


class UnnamedKey(msgspec.Struct, frozen=True):
    """An API key of the source that the settings do not name.

    `client` is its name in reports; `fingerprint` the first four hex digits of its SHA-256; `first` and `last` its
    places in the source, `agent` the program that sent it, empty where the source does not say.
    """

    client: str
    fingerprint: str
    first: str
    last: str
    agent: str


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run. `failed` are the thresholds that it does not keep, in words; `notes` what a reader should know, such
    as lines of the source that were no requests."""

    schema: int = SCHEMA
    started: float
    ended: float
    source: str
    sides: tuple[SideInfo, SideInfo]
    verdict: Verdict
    rows: tuple[EndpointResult, ...]
    groups: tuple[DifferenceGroup, ...]
    rules: tuple[RuleUse, ...]
    times: tuple[LatencyDistribution, ...]
    cost: ComparisonCost
    failures: tuple[FailedRequests, ...]
    keys: tuple[UnnamedKey, ...] = ()
    failed: tuple[str, ...]
    notes: tuple[str, ...]
    complete: bool


def render_json(result: ComparisonResult) -> str:
    """The whole result, indented. Text that UTF-8 cannot carry is written out as JSON writes it."""
    encoded = msgspec.json.encode(_encodable(msgspec.to_builtins(result)))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs written as JSON escapes: the only characters that UTF-8 cannot carry."""
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {name: _encodable(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encodable(each) for each in value]
    return value


PAGE = "docs/reference/compare.schema.json"
RENEW = f"python -c 'from proxy.compare import results; print(results.json_schema_text(), end=\"\")' > {PAGE}"


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12. Objects have all of their keys; readers should allow for more."""
    (root,), parts = msgspec.json.schema_components([ComparisonResult], ref_template="#/$defs/{name}")
    for part in parts.values():
        part["required"] = list(part["properties"])
        part["description"] = inspect.cleandoc(part["description"]).replace("\n", " ")
    parts["ComparisonResult"]["properties"]["schema"] = {
        "const": SCHEMA,
        "description": "The version of this format: another number is another format.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What v3bridge compare --json writes",
        "description": inspect.cleandoc(__doc__ or "").replace("\n", " "),
        **root,
        "$defs": parts,
    }


def json_schema_text() -> str:
    """The file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
