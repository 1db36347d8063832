"""What outlives the configuration of a process, so that a reload loses none of it."""

import asyncio
import math
import random
import secrets

import structlog

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.bookings import Bookings
from proxy.gateway.flights import Flights
from proxy.gateway.free_operations import Lists
from proxy.gateway.quota import ExhaustedQuotas, KnownUsage
from proxy.kit.clock import Clock, SlidingWindow, Window
from proxy.kit.tasks import PeriodicTask
from proxy.kit.wording import counted
from proxy.mapping import loader
from proxy.metrics import Metrics
from proxy.model import Seen
from proxy.planning.projection_cache import ProjectionCache
from proxy.seen import SeenRequests
from proxy.store.protocol import CLIENT_DAYS, DAY_SECONDS, FAILURE
from proxy.store.store import Store
from proxy.upstream.policies import CircuitBreaker

INTERVAL_SECONDS = 10.0  # between two writes of what was seen

log = structlog.get_logger()


# What the mappings are made of, and the mappings with their compiled projections.
Translation = tuple[tuple[str, str], loader.Mappings, ProjectionCache]


class ProcessState:
    """The store, clock, random source and metrics of one of `workers`, and what its pipelines share: one after a
    reload joins the flights of the one before, and begins nothing while a booking of that one is not committed."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random, metrics: Metrics, workers: int = 1) -> None:
        self.store = store
        self.clock = clock
        self.rng = rng
        self.breaker = CircuitBreaker(clock=clock, rng=rng, metrics=metrics)
        self.metrics = metrics
        self.workers = workers
        self.flights = Flights()
        self.exhausted = ExhaustedQuotas(store, clock)
        self.usage = KnownUsage(store, clock)
        self.bookings = Bookings(store, self.flights, self.usage, clock)
        self._lists: tuple[tuple[str, ...], Lists] = (), {}
        self._rates: dict[tuple[str, int], SlidingWindow] = {}  # of API keys

    def lists_of(self, sources: tuple[str, ...]) -> Lists:
        """Return the lists of an upstream that are made by these mappings, and forget others."""
        if self._lists[0] != sources:
            self._lists = sources, {}
        return self._lists[1]

    def admit(self, client: Client) -> None:
        """Count a request against the rate of its API key, of which each worker admits its part. Raises
        TooManyRequests. v3 limited its free tier to 3 a second (contract v3-rest.md §5)."""
        if not client.rate:
            return
        key = client.name, client.rate
        if key not in self._rates:
            own = Window(math.ceil(client.rate / self.workers), 1.0)
            self._rates[key] = SlidingWindow(own, self.clock)
        if wait := self._rates[key].try_take():
            raise errors.TooManyRequests(
                f"{client.name} may make no more than {counted(client.rate, 'request')} in a second",
                retry_after=max(1, math.ceil(wait)),
            )


class Recorder:
    """Background task that writes what this process has seen to the store, and deletes what is older than CLIENT_DAYS:
    who called, unknown API keys and failures. A process that is killed loses what it has seen since its last write."""

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
