"""Request plan of a run: the requests to send, their numbers of occurrences, and their order. Pure, except for reading
the source.

Equal requests are sent once; a sample takes some of each stratum, and is the same for the same seed.
"""

import hashlib
import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple

import msgspec

from proxy.tools.compare.judging.counting import ClientEndpoint, SourceCount
from proxy.traffic import estimate
from proxy.traffic.v3_request import V3Request

HELD_MAX = 100_000  # distinct requests held in memory, of one to two kilobytes each
SIZES = (0, 1, 3, 10, 30, 60, 100)  # upper bounds of the size classes, in parts at worst; one more class lies beyond


class Stratum(NamedTuple):
    """Stratum of a sample: requests of one client, at one endpoint, of one size class, which are likely to behave
    alike.
    """

    endpoint: str
    client: str
    size: int


def stratum(request: V3Request) -> Stratum:
    """Return the stratum of a request."""
    parts = estimate.worst_case_parts(request)
    return Stratum(request.endpoint, request.client, sum(parts > most for most in SIZES))


class DistinctRequests:
    """Distinct requests, each with its number of occurrences and the origin of the first.

    Holds a bounded number. Beyond it, requests of the largest group are dropped, highest ids first. Ids are hashes and
    so as good as random: the rest is a fair sample with complete counts. `dropped` is the number of requests that are
    not in it; `places` counts them, too.
    """

    def __init__(self, most: int = HELD_MAX) -> None:
        self._most = most
        self._requests: dict[str, V3Request] = {}
        self._times: dict[str, int] = {}
        self._ids: dict[Stratum, set[str]] = defaultdict(set)
        self._below: dict[Stratum, str] = {}
        self.dropped = 0
        self.places: dict[ClientEndpoint, SourceCount] = {}

    def add(self, request: V3Request) -> None:
        """Count a request, and keep it if it is new."""
        known, group = request.id, _drop_group(request)
        if known in self._times:
            self._times[known] += request.times
        # Its id is above those kept of a group that was cut: it would have been dropped, too.
        elif group in self._below and known >= self._below[group]:
            self.dropped += request.times
        else:
            self._keep(known, request, group)
            self._count(request, 1)
            return
        self._count(request, 0)

    def _count(self, request: V3Request, requests: int) -> None:
        place = request.client, request.endpoint
        before = self.places.get(place, SourceCount(0, 0))
        self.places[place] = SourceCount(before.requests + requests, before.times + request.times)

    def _keep(self, known: str, request: V3Request, group: Stratum) -> None:
        self._requests[known], self._times[known] = request, request.times
        self._ids[group].add(known)
        if len(self._requests) > self._most:
            self._make_room()

    def requests(self) -> list[V3Request]:
        """List the distinct requests in the order of their first occurrence."""
        return [msgspec.structs.replace(request, times=self._times[id_]) for id_, request in self._requests.items()]

    def _make_room(self) -> None:
        """Drop several requests at once, because finding the largest group scans all groups."""
        group = max(self._ids, key=lambda each: len(self._ids[each]))
        ids = self._ids[group]
        highest = heapq.nlargest(1 + len(ids) // 50, ids)
        for known in highest:
            del self._requests[known]
            self.dropped += self._times.pop(known)
        ids.difference_update(highest)
        self._below[group] = highest[-1]


def _drop_group(request: V3Request) -> Stratum:
    """Return the group of a request for dropping: like its stratum, but by the length of its text, which needs no
    plan.
    """
    return Stratum(request.endpoint, request.client, sum(len(value) for _, value in request.query).bit_length())


def sample(requests: Sequence[V3Request], most: int, rng: Random) -> list[V3Request]:
    """Select at most `most` requests, in their order: at least one of each stratum, the rest in proportion to its size.

    With more strata than `most`, the largest strata are represented.
    """
    if len(requests) <= most:
        return list(requests)
    strata: dict[Stratum, list[int]] = defaultdict(list)
    for position, request in enumerate(requests):
        strata[stratum(request)].append(position)
    shares = _shares({group: len(strata[group]) for group in sorted(strata)}, most)
    chosen = [position for group, share in shares.items() for position in rng.sample(strata[group], share)]
    return [requests[position] for position in sorted(chosen)]


def _shares(sizes: dict[Stratum, int], most: int) -> dict[Stratum, int]:
    """Allocate the sample to the strata: one each, and the rest by largest remainder."""
    largest = sorted(sizes, key=lambda group: -sizes[group])
    if most <= len(sizes):
        return dict.fromkeys(largest[: max(0, most)], 1)
    left, others = most - len(sizes), sum(sizes.values()) - len(sizes)
    whole = {group: left * (size - 1) // others for group, size in sizes.items()}
    rest = left - sum(whole.values())
    by_remainder = sorted(sizes, key=lambda group: -(left * (sizes[group] - 1) % others))
    return {group: 1 + whole[group] + (group in by_remainder[:rest]) for group in sizes}


class RequestPlan(NamedTuple):
    """Requests of a run, in random order, so that a run that stops early has sent a fair sample.

    `source_counts` counts the source by client and endpoint; `distinct` is its number of different requests, `dropped`
    the number of those that were left out to bound memory.
    """

    requests: Sequence[V3Request]
    source_counts: Mapping[ClientEndpoint, SourceCount]
    distinct: int
    dropped: int = 0

    @property
    def digest(self) -> str:
        """Digest of the requests and their order."""
        hasher = hashlib.blake2b(digest_size=16)
        for request in self.requests:
            hasher.update(request.id.encode())
        return hasher.hexdigest()


def make_plan(requests: Iterable[V3Request], most: int | None, rng: Random, held: int = HELD_MAX) -> RequestPlan:
    """Plan a run: distinct requests, at most `most` over all strata, shuffled by `rng`. At most `held` are held in
    memory.
    """
    distinct = DistinctRequests(held)
    for request in requests:
        distinct.add(request)
    requests_held = distinct.requests()
    chosen = requests_held if most is None else sample(requests_held, most, rng)
    # A shuffled copy: logs are ordered by time, so their beginning is no fair sample.
    mixed = rng.sample(chosen, len(chosen))
    return RequestPlan(
        mixed, distinct.places, sum(each.requests for each in distinct.places.values()), distinct.dropped
    )


def remaining(plan: RequestPlan, done: set[str]) -> tuple[list[V3Request], estimate.Estimate]:
    """Return the requests that are not done, and what they may cost at most."""
    requests = [request for request in plan.requests if request.id not in done]
    return requests, estimate.estimate_requests(requests)
