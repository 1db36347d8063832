"""What a comparison came to, as a value: reports are functions of it and compute nothing.

`tally.py` makes it. Its JSON form is what `--json` writes; docs/reference/compare.schema.json describes it. Texts
in it may come from anybody's data and hold no key. Moments are seconds since 1970; shares are between 0 and 1.
"""

from typing import Literal

import msgspec

from proxy.compare.differences import Cause, Kind

SCHEMA = 1

NO_APPLICATION = "no application has the key of"  # how a trouble begins that is a key's

Verdict = Literal["ready", "not ready", "inconclusive"]


class Interval(msgspec.Struct, frozen=True):
    """95 % of a share."""

    low: float
    high: float


class Side(msgspec.Struct, frozen=True):
    """A side of the run: where it is, or what it was read from."""

    name: Literal["old", "new"]
    place: str


class Row(msgspec.Struct, frozen=True):
    """One client at one endpoint. `calls` were compared, `asked` is how often such calls stand in the source;
    `troubled` could not be compared. `share` is that of equivalent calls, None without any.
    """

    client: str
    endpoint: str
    calls: int
    asked: int
    equivalent: int
    troubled: int
    share: float | None
    interval: Interval | None
    verdict: Verdict


class Sample(msgspec.Struct, frozen=True):
    """One place where it showed. `old` and `new` are JSON text, None where a side has nothing, cut where long.

    `said` is the message of the side that refuses, empty where none does; a curl line is empty where its side is none
    that can be asked.
    """

    call: str
    origin: str
    place: str
    old: str | None
    new: str | None
    old_curl: str
    new_curl: str
    said: str = ""


class Group(msgspec.Struct, frozen=True):
    """Differences of one sort at one endpoint. `calls` have it, `differences` is how many there are in all.

    `noise` is the share of calls in which the old side disagrees with itself at this path, None where that was not
    looked at; a group `counts` against its calls only where it exceeds that.
    """

    endpoint: str
    path: str
    kind: Kind
    cause: Cause
    why: str
    calls: int
    differences: int
    noise: float | None
    counts: bool
    first_seen: float
    last_seen: float
    clients: tuple[str, ...]
    samples: tuple[Sample, ...]


class RuleUse(msgspec.Struct, frozen=True):
    """A rule and what it hid. `expires` is a date, `YYYY-MM-DD`."""

    name: str
    reason: str
    expires: str | None
    hidden: int
    expired: bool


class Times(msgspec.Struct, frozen=True):
    """How long one side took at one endpoint, in seconds. `buckets` are counts of answers up to each of `bounds`, and
    one more for those beyond.
    """

    endpoint: str
    side: Literal["old", "new"]
    answers: int
    p50: float
    p95: float
    p99: float
    bounds: tuple[float, ...]
    buckets: tuple[int, ...]


class Cost(msgspec.Struct, frozen=True):
    """Parts. `spent` by this run, `a_month` what the source's calls would come to in 30 days, None where the source
    does not say over what time they were asked, or the new side not what its answers to an endpoint's calls cost.
    """

    spent: int
    budget: int | None
    a_month: int | None


class Trouble(msgspec.Struct, frozen=True):
    """Calls that could not be compared, for one reason."""

    reason: str
    calls: int
    first_origin: str


class SeenKey(msgspec.Struct, frozen=True):
    """A key of the source that the settings do not name. `client` is what reports call it; `fingerprint` are the first
    four hex digits of its SHA-256; `first` and `last` say where it stands in the source, `agent` what it was sent by,
    empty where the source does not say.
    """

    client: str
    fingerprint: str
    first: str
    last: str
    agent: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run. `failed` are the thresholds that it does not keep, in words; `notes` what a reader should know, such
    as lines of the source that were no requests."""

    schema: int = SCHEMA
    started: float
    ended: float
    source: str
    sides: tuple[Side, Side]
    verdict: Verdict
    rows: tuple[Row, ...]
    groups: tuple[Group, ...]
    rules: tuple[RuleUse, ...]
    times: tuple[Times, ...]
    cost: Cost
    troubles: tuple[Trouble, ...]
    keys: tuple[SeenKey, ...] = ()
    failed: tuple[str, ...]
    notes: tuple[str, ...]
    complete: bool
