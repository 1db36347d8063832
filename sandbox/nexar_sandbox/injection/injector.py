"""Selects the fault for each request. Holds the active faults; draws use the given random source.

Faults are drawn in the order of declaration; a request gets the first that applies. Latency is drawn separately: it
adds up, and combines with any other fault. `exchanges.py` applies the result.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass

from nexar_sandbox import faults


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """Faults selected for a request: `delay` in seconds, and at most one other fault."""

    delay: float = 0.0
    fault: faults.RandomFault | None = None


NO_FAULT = InjectedFault()


@dataclass(slots=True)
class _DeclaredFault:
    """A fault with its number of requests left; None: unlimited."""

    fault: faults.RandomFault
    left: int | None

    def strikes(self, service: str, rng: random.Random) -> bool:
        if self.left == 0 or self.fault.on not in (service, "both") or rng.random() >= self.fault.share:
            return False
        if self.left is not None:
            self.left -= 1
        return True


class FaultInjector:
    """The active faults of one sandbox. `fields`: all fields of the schema, as Type.field."""

    def __init__(self, declared: Collection[faults.Fault], rng: random.Random, fields: Collection[str]) -> None:
        self._rng, self._fields = rng, fields
        self.replace(declared)

    def replace(self, declared: Collection[faults.Fault]) -> None:
        """Replace all faults. Raises ValueError, and changes nothing, for an unknown field."""
        missing = frozenset(fault.field for fault in declared if isinstance(fault, faults.MissingFieldFault))
        for field in sorted(missing - set(self._fields)):
            raise ValueError(f"fault missing-field: the schema has no field {field}")
        quotas = [fault for fault in declared if isinstance(fault, faults.QuotaFault)]
        if len(quotas) > 1:
            raise ValueError(f"fault quota: only one is allowed, not {len(quotas)}")
        self.declared = tuple(declared)
        self.missing = missing
        self.quota = quotas[0] if quotas else None
        self._drawn = [
            _DeclaredFault(fault, fault.count) for fault in declared if isinstance(fault, faults.RandomFault)
        ]
        self._latencies = [
            drawn_fault for drawn_fault in self._drawn if isinstance(drawn_fault.fault, faults.LatencyFault)
        ]
        self._response_faults = [
            drawn_fault for drawn_fault in self._drawn if not isinstance(drawn_fault.fault, faults.LatencyFault)
        ]
        self.active = bool(self._drawn)

    def add(self, more: Collection[faults.Fault]) -> None:
        """Add faults; counts of the others continue. Raises ValueError as `replace` does."""
        before = self._drawn
        self.replace((*self.declared, *more))
        # The faults of before are the first ones, in the same order.
        for old, new in zip(before, self._drawn, strict=False):
            new.left = old.left

    def clear(self) -> None:
        """Remove all faults. Revoked tokens stay revoked."""
        self.replace(())

    def remaining(self) -> list[tuple[faults.Fault, int | None]]:
        """Each fault with its number of requests left, None: unlimited."""
        drawn = iter(self._drawn)
        return [(fault, next(drawn).left if isinstance(fault, faults.RandomFault) else None) for fault in self.declared]

    def draw(self, service: str) -> InjectedFault:
        """Select faults for the next request of `service`, "graphql" or "token"."""
        # Every latency is drawn, of the other faults those up to the first that strikes: a draw uses up its count.
        late = [fault.fault for fault in self._latencies if fault.strikes(service, self._rng)]
        fault = next((fault.fault for fault in self._response_faults if fault.strikes(service, self._rng)), None)
        delay = sum(fault.ms for fault in late if isinstance(fault, faults.LatencyFault)) / 1000
        return InjectedFault(delay, fault) if late or fault else NO_FAULT
