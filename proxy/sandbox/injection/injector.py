"""Which fault strikes which request. Holds what is declared now; draws come from the random source handed in.

Faults are tried in the order of their declaration, and the first that strikes ends the search: a request has one at
most. Latency alone is drawn apart: it adds up, and meets any other. To act on it is others' business.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass

from proxy.sandbox import faults


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """What a request gets: seconds of `delay`, and the fault."""

    delay: float = 0.0
    fault: faults.RandomFault | None = None


NO_FAULT = InjectedFault()


@dataclass(slots=True)
class _DeclaredFault:
    """A fault and how many requests it will still strike; None: no end."""

    fault: faults.RandomFault
    left: int | None

    def strikes(self, service: str, rng: random.Random) -> bool:
        if self.left == 0 or self.fault.on not in (service, "both") or rng.random() >= self.fault.share:
            return False
        if self.left is not None:
            self.left -= 1
        return True


class FaultInjector:
    """The faults of one sandbox. `fields` are those that the schema has, as Type.field."""

    def __init__(self, declared: Collection[faults.Fault], rng: random.Random, fields: Collection[str]) -> None:
        self._rng, self._fields = rng, fields
        self.replace(declared)

    def replace(self, declared: Collection[faults.Fault]) -> None:
        """From now on these and no others. Raises ValueError, and changes nothing, for a field that is not there."""
        missing = frozenset(fault.field for fault in declared if isinstance(fault, faults.MissingFieldFault))
        for field in sorted(missing - set(self._fields)):
            raise ValueError(f"fault missing-field: the schema has no {field}")
        quotas = [fault for fault in declared if isinstance(fault, faults.QuotaFault)]
        if len(quotas) > 1:
            raise ValueError(f"fault quota: there can be one, not {len(quotas)}")
        self.declared = tuple(declared)
        self.missing = missing
        self.quota = quotas[0] if quotas else None
        self._drawn = [
            _DeclaredFault(fault, fault.count) for fault in declared if isinstance(fault, faults.RandomFault)
        ]
        self._latencies = [one for one in self._drawn if isinstance(one.fault, faults.LatencyFault)]
        self._others = [one for one in self._drawn if not isinstance(one.fault, faults.LatencyFault)]
        self.active = bool(self._drawn)

    def add(self, more: Collection[faults.Fault]) -> None:
        """These beside what is declared, whose counts go on. Raises ValueError as `replace` does."""
        before = self._drawn
        self.replace((*self.declared, *more))
        for old, new in zip(before, self._drawn, strict=False):
            new.left = old.left

    def clear(self) -> None:
        """No faults from now on. A token that was ended stays so."""
        self.replace(())

    def remaining(self) -> list[tuple[faults.Fault, int | None]]:
        """Each fault with the number of requests that it will still strike, None where there is no end."""
        drawn = iter(self._drawn)
        return [(one, next(drawn).left if isinstance(one, faults.RandomFault) else None) for one in self.declared]

    def draw(self, service: str) -> InjectedFault:
        """What strikes the next request of `service`, "graphql" or "token"."""
        late = [one.fault for one in self._latencies if one.strikes(service, self._rng)]
        fault = next((one.fault for one in self._others if one.strikes(service, self._rng)), None)
        delay = sum(fault.ms for fault in late if isinstance(fault, faults.LatencyFault)) / 1000
        return InjectedFault(delay, fault) if late or fault else NO_FAULT
