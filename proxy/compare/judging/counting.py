"""Counts of a tally, as frozen values that add up: `one + other` is the same in any order.

Every collection is bounded. Where there are too many entries, those with the smallest digests stay: the choice does not
depend on the order of arrival, so an entry that stays has been counted from the start.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from proxy.compare.judging.findings import Cause, Kind
from proxy.compare.requests import V3Request
from proxy.compare.responses import SideName

V = TypeVar("V")

SAMPLES, CLIENTS, PATTERNS, IN_PATTERN = 3, 20, 100, 40
BOUNDS = tuple(float(f"{step}e{power}") for power in (-3, -2, -1, 0, 1) for step in (1, 1.5, 2, 3, 4, 5, 7))  # seconds


def digest(*texts: str) -> str:
    """12 hex digits that stand for some texts, as good as evenly spread."""
    return hashlib.blake2b(msgspec.json.encode(texts), digest_size=6).hexdigest()


def added(one: dict[str, V], other: dict[str, V], plus: Callable[[V, V], V]) -> dict[str, V]:
    """Both, where a key is in both their sum."""
    return {**one, **{key: plus(one[key], value) if key in one else value for key, value in other.items()}}


def smallest(items: dict[str, V], most: int) -> dict[str, V]:
    """The items with the smallest keys, `most` of them."""
    return items if len(items) <= most else {key: items[key] for key in sorted(items)[:most]}


class KeptSample(msgspec.Struct, frozen=True):
    """A sample: a request, where in its response, both values as JSON text, and what a side that refuses said."""

    request: V3Request
    at: float
    place: str
    baseline: str | None
    candidate: str | None
    message: str = ""


class GroupCount(msgspec.Struct, frozen=True):
    """Differences of one sort at one endpoint."""

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
    """Requests that have just these groups, by their ids."""

    groups: tuple[str, ...]
    requests: int

    def __add__(self, other: "GroupCombination") -> "GroupCombination":
        return GroupCombination(self.groups, self.requests + other.requests)


class RowCount(msgspec.Struct, frozen=True):
    """One client at one endpoint. `differing` requests have findings; `patterns` say which, as far as there is room.

    `paid` are the parts of `priced` requests: requests whose price is known, as often as each stands in the source.
    """

    client: str
    endpoint: str
    compared: int = 0
    asked: int = 0
    differing: int = 0
    not_compared: int = 0
    paid: int = 0
    priced: int = 0
    patterns: dict[str, GroupCombination] = {}

    def __add__(self, other: "RowCount") -> "RowCount":
        return RowCount(
            self.client,
            self.endpoint,
            self.compared + other.compared,
            self.asked + other.asked,
            self.differing + other.differing,
            self.not_compared + other.not_compared,
            self.paid + other.paid,
            self.priced + other.priced,
            smallest(added(self.patterns, other.patterns, GroupCombination.__add__), PATTERNS),
        )


class FlakyFieldCount(msgspec.Struct, frozen=True):
    """Requests in which the baseline disagreed with itself at a path."""

    endpoint: str
    path: str
    requests: int

    def __add__(self, other: "FlakyFieldCount") -> "FlakyFieldCount":
        return FlakyFieldCount(self.endpoint, self.path, self.requests + other.requests)


class FailureCount(msgspec.Struct, frozen=True):
    """Requests that could not be compared, for one reason."""

    reason: str
    requests: int
    at: float
    origin: str

    def __add__(self, other: "FailureCount") -> "FailureCount":
        first = min(self, other, key=lambda each: (each.at, each.origin))
        return FailureCount(self.reason, self.requests + other.requests, first.at, first.origin)


class LatencyCount(msgspec.Struct, frozen=True):
    """How long one side took at one endpoint: answers up to each of BOUNDS, and beyond."""

    endpoint: str
    side: SideName
    buckets: tuple[int, ...]

    def __add__(self, other: "LatencyCount") -> "LatencyCount":
        both = zip(self.buckets, other.buckets, strict=True)
        return LatencyCount(self.endpoint, self.side, tuple(one + two for one, two in both))

    def quantile(self, share: float) -> float:
        """Seconds that so many answers took at most, as near as the bounds tell."""
        left = share * sum(self.buckets)
        low = 0.0
        for high, answers in zip(BOUNDS, self.buckets, strict=False):
            if answers >= left and answers:
                return low + (high - low) * left / answers
            left, low = left - answers, high
        return BOUNDS[-1]


MONTH = 30 * 86_400.0

ClientEndpoint = tuple[str, str]  # client and endpoint


class SourceCount(msgspec.Struct, frozen=True):
    """What the source holds of a client at an endpoint: `requests` that differ from each other, and `times` in all."""

    requests: int
    times: int


def monthly_parts(
    rows: Iterable[RowCount], asked: Mapping[ClientEndpoint, SourceCount] | None, seconds: float | None
) -> int | None:
    """Parts in 30 days, each request as dear as when it was compared, however often it is repeated.

    `asked` is the whole source where it is known, else the rows are all there is; `seconds` is the time over which it
    was asked. None where that is unknown, or where no request of an endpoint has a price.
    """
    counted = list(rows)
    if not seconds or seconds < 0:
        return None
    prices = {(row.client, row.endpoint): row for row in counted}
    times = {at: found.times for at, found in asked.items()} if asked else {at: row.asked for at, row in prices.items()}
    parts = [_parts(prices.get(at), at[1], counted, number) for at, number in times.items() if number]
    known = [each for each in parts if each is not None]
    if len(known) < len(parts) or not parts:
        return None
    return math.ceil(sum(known) * MONTH / seconds)


def _parts(row: RowCount | None, endpoint: str, rows: list[RowCount], times: int) -> float | None:
    """Of so many requests; of a client of which no price is known, as of the others at the endpoint."""
    like = [row] if row and row.priced else [each for each in rows if each.endpoint == endpoint and each.priced]
    priced = sum(each.priced for each in like)
    return times * sum(each.paid for each in like) / priced if priced else None
