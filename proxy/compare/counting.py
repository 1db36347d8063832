"""What a tally counts, as frozen values that add up: `one + other` is the same in whatever order.

Nothing grows without end, whatever the data brings. Where there are too many of a kind, those with the smallest digests
stay: which they are does not depend on the order in which they came, so what stays has been counted from the start.
"""

import hashlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

from proxy.compare.calls import Call
from proxy.compare.differences import Cause, Kind
from proxy.compare.replies import SideName

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


class Kept(msgspec.Struct, frozen=True):
    """A sample: a call, where in its reply, both values as JSON text, and what a side that refuses said."""

    call: Call
    at: float
    place: str
    old: str | None
    new: str | None
    said: str = ""


class GroupCount(msgspec.Struct, frozen=True):
    """Differences of one sort at one endpoint."""

    endpoint: str
    path: str
    kind: Kind
    cause: Cause
    calls: int
    differences: int
    first_seen: float
    last_seen: float
    clients: dict[str, str]
    samples: dict[str, Kept]

    def __add__(self, other: "GroupCount") -> "GroupCount":
        return msgspec.structs.replace(
            self,
            calls=self.calls + other.calls,
            differences=self.differences + other.differences,
            first_seen=min(self.first_seen, other.first_seen),
            last_seen=max(self.last_seen, other.last_seen),
            clients=smallest(self.clients | other.clients, CLIENTS),
            samples=smallest(added(self.samples, other.samples, _earlier), SAMPLES),
        )


def _earlier(one: Kept, other: Kept) -> Kept:
    return min(
        one,
        other,
        key=lambda kept: (kept.at, kept.place, str(kept.old), str(kept.new), kept.call.origin, kept.call.times),
    )


class Pattern(msgspec.Struct, frozen=True):
    """Calls that have just these groups, by their ids."""

    groups: tuple[str, ...]
    calls: int

    def __add__(self, other: "Pattern") -> "Pattern":
        return Pattern(self.groups, self.calls + other.calls)


class RowCount(msgspec.Struct, frozen=True):
    """One client at one endpoint. `differing` calls have findings; `patterns` say which, as far as there is room.

    `paid` are the parts of `priced` requests: calls whose price is known, as often as each stands in the source.
    """

    client: str
    endpoint: str
    compared: int = 0
    asked: int = 0
    differing: int = 0
    troubled: int = 0
    paid: int = 0
    priced: int = 0
    patterns: dict[str, Pattern] = {}

    def __add__(self, other: "RowCount") -> "RowCount":
        return RowCount(
            self.client,
            self.endpoint,
            self.compared + other.compared,
            self.asked + other.asked,
            self.differing + other.differing,
            self.troubled + other.troubled,
            self.paid + other.paid,
            self.priced + other.priced,
            smallest(added(self.patterns, other.patterns, Pattern.__add__), PATTERNS),
        )


class WaverCount(msgspec.Struct, frozen=True):
    """Calls in which the old side disagreed with itself at a path."""

    endpoint: str
    path: str
    calls: int

    def __add__(self, other: "WaverCount") -> "WaverCount":
        return WaverCount(self.endpoint, self.path, self.calls + other.calls)


class TroubleCount(msgspec.Struct, frozen=True):
    """Calls that could not be compared, for one reason."""

    reason: str
    calls: int
    at: float
    origin: str

    def __add__(self, other: "TroubleCount") -> "TroubleCount":
        first = min(self, other, key=lambda each: (each.at, each.origin))
        return TroubleCount(self.reason, self.calls + other.calls, first.at, first.origin)


class TimeCount(msgspec.Struct, frozen=True):
    """How long one side took at one endpoint: answers up to each of BOUNDS, and beyond."""

    endpoint: str
    side: SideName
    buckets: tuple[int, ...]

    def __add__(self, other: "TimeCount") -> "TimeCount":
        both = zip(self.buckets, other.buckets, strict=True)
        return TimeCount(self.endpoint, self.side, tuple(one + two for one, two in both))

    def quantile(self, share: float) -> float:
        """Seconds that so many answers took at most, as near as the bounds tell."""
        left = share * sum(self.buckets)
        low = 0.0
        for high, answers in zip(BOUNDS, self.buckets, strict=False):
            if answers >= left and answers:
                return low + (high - low) * left / answers
            left, low = left - answers, high
        return BOUNDS[-1]
