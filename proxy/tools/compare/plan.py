"""Requests of a run: equal requests are sent once; a sample has some of each kind of request. Pure."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from proxy.traffic import estimate
from proxy.traffic.v3_request import V3Request

HELD_MAX = 100_000  # distinct requests held in memory, of one to two kilobytes each


class RequestPlan(NamedTuple):
    """Requests of a run, in random order, so that a run that stops early has sent a fair sample.

    `in_source` is the number of distinct requests in the source by endpoint; `dropped` the number of those that are not
    held in memory.
    """

    requests: list[V3Request]
    in_source: dict[str, int]
    dropped: int

    @property
    def distinct(self) -> int:
        """Number of distinct requests in the source."""
        return sum(self.in_source.values())

    @property
    def parts(self) -> int:
        """The most that the requests may cost."""
        return sum(map(estimate.worst_case_parts, self.requests))


def make_plan(requests: Iterable[V3Request], most: int | None, held: int = HELD_MAX) -> RequestPlan:
    """Plan a run of the distinct requests, at most `most`, in the same order for the same source."""
    rng = random.Random(1)  # noqa: S311 - reproducible
    first: dict[str, V3Request] = {}
    times: Counter[str] = Counter()
    in_source: Counter[str] = Counter()
    dropped = 0
    for request in requests:
        known = request.id
        if known not in first:
            if len(first) >= held:
                dropped += 1
                continue
            first[known] = request
            in_source[request.endpoint] += 1
        times[known] += request.times
    distinct = [msgspec.structs.replace(request, times=times[known]) for known, request in first.items()]
    chosen = distinct if most is None or len(distinct) <= most else _sample(distinct, most, rng)
    rng.shuffle(chosen)  # logs are ordered by time, so their beginning is no fair sample
    return RequestPlan(chosen, dict(in_source), dropped)


def _sample(requests: list[V3Request], most: int, rng: random.Random) -> list[V3Request]:
    """Select `most` requests: one of each endpoint, client and size class in turn, until there are enough."""
    strata: defaultdict[tuple[str, str, int], list[V3Request]] = defaultdict(list)
    for request in requests:
        strata[request.endpoint, request.client, estimate.worst_case_parts(request).bit_length()].append(request)
    groups = [rng.sample(group, len(group)) for group in strata.values()]
    rounds = (group[place] for place in range(max(map(len, groups))) for group in groups if place < len(group))
    return [request for request, _ in zip(rounds, range(most), strict=False)]
