"""What a run is going to ask, before anything is spent: which calls, how many stand for how many, what they may cost.

Pure but for reading the source.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from proxy.compare import estimate, sampling
from proxy.compare.calls import Call
from proxy.compare.costs import Asked, Place


class Plan(NamedTuple):
    """`calls` in the order in which they are asked, mixed, so that a run that stops early has asked a fair sample.
    `asked` is what the source holds by client and endpoint; `distinct` are its calls that differ from each other, but
    for `dropped` requests, of calls that are too many to be held.
    """

    calls: Sequence[Call]
    asked: Mapping[Place, Asked]
    distinct: int
    dropped: int = 0

    @property
    def digest(self) -> str:
        """The same for the same calls in the same order."""
        found = hashlib.blake2b(digest_size=16)
        for call in self.calls:
            found.update(call.id.encode())
        return found.hexdigest()


def make(calls: Iterable[Call], most: int | None, rng: Random, held: int = sampling.KEPT_MOST) -> Plan:
    """Each call once, at most so many of all strata, in an order that `rng` decides. No more than `held` are held."""
    distinct = sampling.deduplicate(calls, held)
    kept = distinct.calls()
    chosen = kept if most is None else sampling.sample(kept, most, rng)
    mixed = rng.sample(chosen, len(chosen))
    return Plan(mixed, distinct.places, sum(each.calls for each in distinct.places.values()), distinct.dropped)


def left(plan: Plan, done: set[str]) -> tuple[list[Call], estimate.Estimate]:
    """What is still to be asked, and what that comes to."""
    calls = [call for call in plan.calls if call.id not in done]
    return calls, estimate.of(calls)
