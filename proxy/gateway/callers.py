"""Recording of callers: writes this process's counts to the store.

Counts are written every INTERVAL_SECONDS and at the end. A process that is killed loses what it has counted since its
last write. While the store is unavailable counts wait in memory, bounded (telemetry/callers.py).
"""

import secrets
from collections import deque
from typing import NamedTuple

import structlog

from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.periodic import PeriodicTask
from proxy.stores.protocols import CallerStore
from proxy.telemetry.callers import DAY_SECONDS, CallerCount, CallerCounts, UnknownKey

INTERVAL_SECONDS = 10.0  # between two writes
BATCH_MAX = 1_000  # counts that are written at once

log = structlog.get_logger()


class _Batch(NamedTuple):
    """Counts that are written together. The id stays with a retry, so that a batch is added once."""

    id: str
    counts: list[CallerCount]
    unknown: list[UnknownKey]


def _batches(taken: CallerCounts) -> list[_Batch]:
    """Take all counts, in batches of a size that keeps no other user of the store waiting."""
    counts, unknown = taken.take()
    batches = []
    for start in range(0, len(counts) or bool(unknown), BATCH_MAX):
        batches.append(_Batch(secrets.token_hex(8), counts[start : start + BATCH_MAX], unknown))
        unknown = []
    return batches


class CallerRecorder:
    """Background task that writes counts, and deletes those older than `days` days; 0 deletes all."""

    def __init__(
        self, counts: CallerCounts, store: CallerStore, days: int, clock: Clock, *, interval: float = INTERVAL_SECONDS
    ) -> None:
        self._counts = counts
        self._store = store
        self._days = days
        self._clock = clock
        self._batches: deque[_Batch] = deque()  # that the store has not confirmed
        self._pruned = -1
        self._writing = PeriodicTask("callers", self.write, interval, delay=interval, logged=errors.StoreUnavailable)

    def start(self) -> None:
        """Begin to write, in the background."""
        self._writing.start()

    async def close(self) -> None:
        """Write what is left, and end."""
        # Not cancelled: a write that is interrupted may have been carried out.
        await self._writing.close(None)
        await self._writing.call()
        if self._batches:
            lost = sum(count.requests for batch in self._batches for count in batch.counts)
            log.warning("caller counts lost", requests=lost)

    async def write(self) -> None:
        """Write all counts; once a day, delete old ones. Raises StoreUnavailable: the counts wait for the next call."""
        was_waiting = bool(self._batches)
        await self._write_batches()
        if was_waiting:
            await self._write_batches()
        today = int(self._clock.now() // DAY_SECONDS)
        if today != self._pruned:
            await self._store.prune_callers(today - self._days + 1)
            self._pruned = today

    async def _write_batches(self) -> None:
        # New counts are taken when all earlier ones are written: until then they add up where they are bounded.
        if not self._batches:
            self._batches.extend(_batches(self._counts))
        while self._batches:
            batch = self._batches[0]
            await self._store.add_callers(*batch)
            self._batches.popleft()
