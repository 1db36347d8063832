"""Recording of what this process has seen: who called, unknown API keys and failures are written to the store.

They are written every INTERVAL_SECONDS and at the end. A process that is killed loses what it has seen since its last
write. While the store is unavailable they wait in memory, bounded (telemetry/seen.py).
"""

import asyncio
import secrets

import structlog

from proxy import errors
from proxy.kit.clock import Clock
from proxy.kit.tasks import PeriodicTask
from proxy.model import Seen
from proxy.store.protocol import CLIENT_DAYS, DAY_SECONDS, FAILURE
from proxy.store.store import Store
from proxy.telemetry.seen import SeenRequests

INTERVAL_SECONDS = 10.0  # between two writes

log = structlog.get_logger()


class Recorder:
    """Background task that writes what was seen, and deletes what is older than CLIENT_DAYS."""

    def __init__(self, seen: SeenRequests, store: Store, clock: Clock) -> None:
        self._seen = seen
        self._store = store
        self._clock = clock
        self._id = ""
        self._rows: list[Seen] = []  # that the store has not confirmed
        self._first_day = -1
        seconds = INTERVAL_SECONDS
        self._writing = PeriodicTask("recording", self.write, seconds, delay=seconds, logged=errors.StoreUnavailable)
        self.start = self._writing.start

    async def close(self) -> None:
        """Write what is left, and end."""
        # Not cancelled: a write that is interrupted may have been carried out.
        await self._writing.close(None)
        await self._writing.call()
        if self._rows:
            log.warning("caller counts lost", requests=sum(row.requests for row in self._rows))

    async def write(self) -> None:
        """Write all that was seen; once a day, delete what is old. Raises StoreUnavailable: it waits for the next
        call."""
        first_day = int(self._clock.now() // DAY_SECONDS) - CLIENT_DAYS + 1
        if self._rows:  # under the same id, so that they are added once
            await self._add(first_day)
        self._id = secrets.token_hex(16)
        for row in self._seen.take():
            self._rows.append(row)
            if row.kind == FAILURE:  # to hide keys in it takes a millisecond
                await asyncio.sleep(0)
        if self._rows or first_day != self._first_day:
            await self._add(first_day)

    async def _add(self, first_day: int) -> None:
        await self._store.add_seen(self._id, self._rows, first_day)
        self._rows, self._first_day = [], first_day
