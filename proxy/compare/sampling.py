"""Fewer calls that stand for many: the same asked once, then some of each stratum. Pure, and the same each time."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

import msgspec

from proxy.compare import estimate
from proxy.compare.calls import Call
from proxy.compare.costs import Asked, Place

KEPT_MOST = 100_000  # distinct calls that are held; a call is a kilobyte or two
SIZES = (0, 1, 3, 10, 30, 60, 100)  # parts at worst, up to which a call is of a size; one more for those beyond


class Stratum(NamedTuple):
    """Calls that are likely to fare alike: of one client, at one endpoint, of one size."""

    endpoint: str
    client: str
    size: int


def stratum(call: Call) -> Stratum:
    """That of a call."""
    parts = estimate.parts_at_worst(call)
    return Stratum(call.endpoint, call.client, sum(parts > most for most in SIZES))


class Distinct:
    """Calls as they come, each kept once with the number of times. `asked` is how many requests there were in all.

    Holds a bounded number. Beyond it, calls of the largest group of kin go, those with the highest ids, which are as
    good as random: what stays is a fair sample, with whole counts. `dropped` says how many requests are not in it;
    `places` count them, too.
    """

    def __init__(self, most: int = KEPT_MOST) -> None:
        self._most = most
        self._calls: dict[str, Call] = {}
        self._times: dict[str, int] = {}
        self._ids: dict[Stratum, list[_Highest]] = defaultdict(list)
        self._below: dict[Stratum, str] = {}
        self.asked = 0
        self.dropped = 0
        self.places: dict[Place, Asked] = {}

    def add(self, call: Call) -> None:
        """Count a call, and keep it if it is new."""
        self.asked += call.times
        known, group = call.id, _kin(call)
        if known in self._times:
            self._times[known] += call.times
        elif group in self._below and known >= self._below[group]:
            self.dropped += call.times
        else:
            self._keep(known, call, group)
            self._count(call, 1)
            return
        self._count(call, 0)

    def _count(self, call: Call, calls: int) -> None:
        place = call.client, call.endpoint
        before = self.places.get(place, Asked(0, 0))
        self.places[place] = Asked(before.calls + calls, before.times + call.times)

    def _keep(self, known: str, call: Call, group: Stratum) -> None:
        self._calls[known], self._times[known] = call, call.times
        heapq.heappush(self._ids[group], _Highest(known))
        if len(self._calls) > self._most:
            self._make_room()

    def calls(self) -> list[Call]:
        """In the order in which they came first."""
        return [msgspec.structs.replace(call, times=self._times[id_]) for id_, call in self._calls.items()]

    def _make_room(self) -> None:
        """Some at once: to find the largest group takes a look at all."""
        group = max(self._ids, key=lambda each: len(self._ids[each]))
        ids = self._ids[group]
        for _ in range(1 + len(ids) // 50):
            highest = heapq.heappop(ids)
            del self._calls[highest]
            self.dropped += self._times.pop(highest)
            self._below[group] = str(highest)


def _kin(call: Call) -> Stratum:
    """Nearly its stratum, and known at once: the size is that of the text."""
    return Stratum(call.endpoint, call.client, sum(len(value) for _, value in call.query).bit_length())


class _Highest(str):
    """An id that stands first in a heap where it is the highest."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def deduplicate(calls: Iterable[Call], most: int = KEPT_MOST) -> Distinct:
    """Each call once, times summed, the origin that of the first."""
    distinct = Distinct(most)
    for call in calls:
        distinct.add(call)
    return distinct


def sample(calls: Sequence[Call], most: int, rng: Random) -> list[Call]:
    """At most so many, in their order: of each stratum one at least, the rest in proportion to what there is.

    Where there are more strata than calls to take, the largest are represented.
    """
    if len(calls) <= most:
        return list(calls)
    strata: dict[Stratum, list[int]] = defaultdict(list)
    for position, call in enumerate(calls):
        strata[stratum(call)].append(position)
    shares = _shares({group: len(strata[group]) for group in sorted(strata)}, most)
    chosen = [position for group, share in shares.items() for position in rng.sample(strata[group], share)]
    return [calls[position] for position in sorted(chosen)]


def _shares(sizes: dict[Stratum, int], most: int) -> dict[Stratum, int]:
    """How many of each: one, and of the others by largest remainder."""
    largest = sorted(sizes, key=lambda group: -sizes[group])
    if most <= len(sizes):
        return dict.fromkeys(largest[: max(0, most)], 1)
    left, others = most - len(sizes), sum(sizes.values()) - len(sizes)
    whole = {group: left * (size - 1) // others for group, size in sizes.items()}
    rest = left - sum(whole.values())
    by_remainder = sorted(sizes, key=lambda group: -(left * (sizes[group] - 1) % others))
    return {group: 1 + whole[group] + (group in by_remainder[:rest]) for group in sizes}
