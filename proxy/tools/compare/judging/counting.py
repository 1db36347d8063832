"""Counters of a tally: immutable values whose addition is commutative and associative.

Every collection is bounded. Above the bound, the entries with the smallest digests stay: the choice does not depend on
the order of arrival, so a retained entry has been counted from the start.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from proxy.tools.compare.judging.findings import Cause, Kind
from proxy.traffic.clients import SideName
from proxy.traffic.v3_request import MONTH_SECONDS, V3Request

V = TypeVar("V")

SAMPLES, CLIENTS, PATTERNS, IN_PATTERN = 3, 20, 100, 40
BOUNDS = tuple(float(f"{step}e{power}") for power in (-3, -2, -1, 0, 1) for step in (1, 1.5, 2, 3, 4, 5, 7))  # seconds


def digest(*texts: str) -> str:
    """Hash texts to 12 hex digits, evenly distributed."""
    return hashlib.blake2b(msgspec.json.encode(texts), digest_size=6).hexdigest()


def added(one: dict[str, V], other: dict[str, V], plus: Callable[[V, V], V]) -> dict[str, V]:
    """Merge two dicts; values of a key in both are combined with `plus`."""
    return {**one, **{key: plus(one[key], value) if key in one else value for key, value in other.items()}}


def smallest(items: dict[str, V], most: int) -> dict[str, V]:
    """Keep at most `most` items, those with the smallest keys."""
    return items if len(items) <= most else {key: items[key] for key in sorted(items)[:most]}


class KeptSample(msgspec.Struct, frozen=True):
    """Sample of a difference: the request, the place in the response, both values as JSON text, and the error message
    of the side that refused, if any.
    """

    request: V3Request
    at: float
    place: str
    baseline: str | None
    candidate: str | None
    message: str = ""


class GroupCount(msgspec.Struct, frozen=True):
    """Count of the differences with the same endpoint, path, kind and cause."""

    endpoint: str
    path: str
    kind: Kind
    cause: Cause
    requests: int
    differences: int
    first_seen: float
    last_seen: float
    clients: dict[str, str]
    samples: dict[str, KeptSample]

    def __add__(self, other: "GroupCount") -> "GroupCount":
        return msgspec.structs.replace(
            self,
            requests=self.requests + other.requests,
            differences=self.differences + other.differences,
            first_seen=min(self.first_seen, other.first_seen),
            last_seen=max(self.last_seen, other.last_seen),
            clients=smallest(self.clients | other.clients, CLIENTS),
            samples=smallest(added(self.samples, other.samples, _earlier), SAMPLES),
        )


def _earlier(one: KeptSample, other: KeptSample) -> KeptSample:
    return min(
        one,
        other,
        key=lambda kept: (
            kept.at,
            kept.place,
            str(kept.baseline),
            str(kept.candidate),
            kept.request.origin,
            kept.request.times,
        ),
    )


class GroupCombination(msgspec.Struct, frozen=True):
    """Count of the requests that have exactly these groups; `groups` are group ids."""

    groups: tuple[str, ...]
    requests: int

    def __add__(self, other: "GroupCombination") -> "GroupCombination":
        return GroupCombination(self.groups, self.requests + other.requests)


class RowCount(msgspec.Struct, frozen=True):
    """Counts of one client at one endpoint.

    `differing` requests have findings; to `succeeded` ones both services responded with 200; `patterns` holds their
    group combinations, up to PATTERNS. `paid` is the cost in parts of the `priced` requests, which are those of known
    cost; each is weighted with its number of occurrences in the source.
    """

    client: str
    endpoint: str
    compared: int = 0
    occurrences: int = 0
    differing: int = 0
    not_compared: int = 0
    succeeded: int = 0
    paid: int = 0
    priced: int = 0
    patterns: dict[str, GroupCombination] = {}

    def __add__(self, other: "RowCount") -> "RowCount":
        return RowCount(
            self.client,
            self.endpoint,
            self.compared + other.compared,
            self.occurrences + other.occurrences,
            self.differing + other.differing,
            self.not_compared + other.not_compared,
            self.succeeded + other.succeeded,
            self.paid + other.paid,
            self.priced + other.priced,
            smallest(added(self.patterns, other.patterns, GroupCombination.__add__), PATTERNS),
        )


class FailureCount(msgspec.Struct, frozen=True):
    """Count of the requests that could not be compared for one reason; `at` and `origin` are of the first."""

    reason: str
    requests: int
    at: float
    origin: str

    def __add__(self, other: "FailureCount") -> "FailureCount":
        first = min(self, other, key=lambda each: (each.at, each.origin))
        return FailureCount(self.reason, self.requests + other.requests, first.at, first.origin)


class LatencyCount(msgspec.Struct, frozen=True):
    """Latency histogram of one side at one endpoint: responses up to each of BOUNDS, and one bucket beyond."""

    endpoint: str
    side: SideName
    buckets: tuple[int, ...]

    def __add__(self, other: "LatencyCount") -> "LatencyCount":
        both = zip(self.buckets, other.buckets, strict=True)
        return LatencyCount(self.endpoint, self.side, tuple(one + two for one, two in both))

    def quantile(self, share: float) -> float:
        """Estimate a quantile in seconds, interpolated within its bucket."""
        left = share * sum(self.buckets)
        low = 0.0
        for high, answers in zip(BOUNDS, self.buckets, strict=False):
            if answers >= left and answers:
                return low + (high - low) * left / answers
            left, low = left - answers, high
        return BOUNDS[-1]


ClientEndpoint = tuple[str, str]  # client name and endpoint path


class SourceCount(msgspec.Struct, frozen=True):
    """Requests of a client at an endpoint in the source: `requests` are distinct, `times` counts repetitions, too."""

    requests: int
    times: int


def monthly_parts(
    rows: Iterable[RowCount], source_counts: Mapping[ClientEndpoint, SourceCount] | None, seconds: float | None
) -> int | None:
    """Extrapolate the cost of the source to 30 days, in parts, without any benefit of a cache.

    `source_counts` counts the whole source where that is known; otherwise the compared rows are taken for all of it.
    `seconds` is the period that the source covers. Returns None where the period is unknown or where no request of an
    endpoint has a known cost.
    """
    counted = list(rows)
    if not seconds or seconds < 0:
        return None
    prices = {(row.client, row.endpoint): row for row in counted}
    times = (
        {at: found.times for at, found in source_counts.items()}
        if source_counts
        else {at: row.occurrences for at, row in prices.items()}
    )
    parts = [_parts(prices.get(at), at[1], counted, number) for at, number in times.items() if number]
    known = [each for each in parts if each is not None]
    if len(known) < len(parts) or not parts:
        return None
    return math.ceil(sum(known) * MONTH_SECONDS / seconds)


def _parts(row: RowCount | None, endpoint: str, rows: list[RowCount], times: int) -> float | None:
    """Estimate the cost of `times` requests; a client of unknown cost gets the mean of the endpoint's other clients."""
    like = [row] if row and row.priced else [each for each in rows if each.endpoint == endpoint and each.priced]
    priced = sum(each.priced for each in like)
    return times * sum(each.paid for each in like) / priced if priced else None
