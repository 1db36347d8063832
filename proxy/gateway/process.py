"""What outlives the configuration of a process, so that a reload loses none of it: flights, and the ends of their
reservations: usage and results, committed in one transaction for all of an operation. What the store cannot take is
repeated until it does. Until then the reservation counts in full.
"""

import asyncio
import math
import random
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import cachetools
import structlog

from proxy import errors
from proxy.gateway.applications import Client, periods
from proxy.gateway.flights import Answer, Flight, Flights
from proxy.gateway.free_operations import Lists
from proxy.gateway.quota import Quotas
from proxy.kit import counted
from proxy.kit.clock import Clock, SlidingWindow, Window
from proxy.mapping import loader
from proxy.metrics import Metrics
from proxy.planning.documents import ProjectionCache
from proxy.store.protocol import DAY_SECONDS, Begin, Finish, Result
from proxy.store.store import Store
from proxy.upstream.sending import CircuitBreaker

REPEAT_SECONDS = 0.5
ADDRESSES_MAX = 4_096  # whose wrong keys are counted; the least recently used is forgotten

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class Booking:
    """End of a flight's reservation: its `begin`, if it has one, which the flight loses when that is booked. `features`
    are the bits of those that its results have."""

    flight: Flight
    used: int = 0
    uncertain: int = 0
    results: Sequence[Result] = ()
    features: int = 0
    begin: Begin | None = None


class Bookings:
    """Commits bookings; `is_behind` while the store has not taken one."""

    def __init__(self, store: Store, flights: Flights, quotas: Quotas, clock: Clock) -> None:
        self._store = store
        self._flights = flights
        self._quotas = quotas
        self._clock = clock
        self._unfinished: list[Booking] = []
        self._repeating: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        return bool(self._unfinished)

    async def book(self, bookings: Sequence[Booking]) -> None:
        """Commit bookings of flights that are reserved, or see to it that they will be."""
        for each in bookings:
            each.begin, each.flight.begin = each.flight.begin, None
        try:
            await self._commit(bookings)
        except errors.StoreUnavailable as error:
            self._unfinished += bookings
            if self._repeating is None or self._repeating.done():
                log.error("usage not written", reason=str(error))
                self._repeating = asyncio.create_task(self._repeat(), name="finish")

    async def aclose(self) -> None:
        """Wait until all is committed."""
        if self._repeating is not None:
            await asyncio.wait((self._repeating,))

    async def _commit(self, bookings: Sequence[Booking], *, is_repeated: bool = False) -> None:
        day = self._clock.now() // DAY_SECONDS
        reserved = [(each, each.begin, periods(each.flight.client.charged, day)) for each in bookings if each.begin]
        if reserved:
            await self._store.finish(
                [
                    Finish(begin, each.features, each.results, present.every, each.used, each.uncertain, is_repeated)
                    for each, begin, present in reserved
                ]
            )
        for each, _, present in reserved:
            self._quotas.add(present.own, each.used, each.uncertain)
        for each in bookings:
            if each.results:
                self._flights.remove(each.flight)

    async def _repeat(self) -> None:
        while self._unfinished:
            await asyncio.sleep(REPEAT_SECONDS)
            repeated = [*self._unfinished]
            try:
                await self._commit(repeated, is_repeated=True)
            except errors.StoreUnavailable:
                continue
            del self._unfinished[: len(repeated)]
        log.info("usage written")


class Tasks:
    """Tasks of a pipeline that each work for some flights, which end with it, whatever happens."""

    def __init__(self, flights: Flights, bookings: Bookings) -> None:
        self._flights = flights
        self._bookings = bookings
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], flights: list[Flight]) -> asyncio.Task[None]:
        """Guard work in a task of its own, so that a client that leaves loses nothing that was paid for."""
        task = asyncio.create_task(self.guard(work, flights), name="flights")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def aclose(self) -> None:
        """Wait for what is under way, and until all is booked."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._bookings.aclose()

    async def guard(self, work: Coroutine[Any, Any, None], flights: list[Flight]) -> None:
        """Do work; if it fails, the flights are booked, whatever they are reserved for, and end."""
        try:
            await work
        except (Exception, asyncio.CancelledError) as error:
            failed = [*flights]
            flights.clear()
            await self._bookings.book([Booking(each, uncertain=each.parts) for each in failed])
            if isinstance(error, errors.BridgeError):
                self._flights.end(failed, Answer(None, error))
                return
            self._flights.end(failed, Answer(None, errors.ServerError("internal error")))
            raise


# What the mappings are made of, and the mappings with their compiled projections.
Translation = tuple[tuple[str, str], loader.Mappings, ProjectionCache]


class ProcessState:
    """The store, clock, random source and metrics of one of `workers`, and what its pipelines share: one after a
    reload joins the flights of the one before, and begins nothing while a booking of that one is not committed."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random, metrics: Metrics, workers: int = 1) -> None:
        self.store, self.clock, self.rng, self.metrics, self.workers = store, clock, rng, metrics, workers
        self.started = clock.now()
        self.breaker = CircuitBreaker(clock=clock, rng=rng, metrics=metrics)
        self.flights = Flights()
        self.quotas = Quotas(store, clock)
        self.bookings = Bookings(store, self.flights, self.quotas, clock)
        self.lists: dict[tuple[str, ...], Lists] = {}  # by the mappings and the upstream that they are made with
        self.wrong_keys: cachetools.LRUCache[str, SlidingWindow] = cachetools.LRUCache(ADDRESSES_MAX)  # of addresses
        # When a key was last used from an address, by address and account, the latest last.
        self.recent_keys: dict[tuple[str, str], float] = {}
        self._rates: dict[tuple[str, int], SlidingWindow] = {}  # of API keys

    def admit(self, client: Client) -> None:
        """Count a request against the rate of its API key, which has one, and of which each worker admits its part.
        Raises TooManyRequests. v3 limited its free tier to 3 a second (contract v3-rest.md §5)."""
        key = client.name, client.rate
        if key not in self._rates:
            own = Window(math.ceil(client.rate / self.workers), 1.0)
            self._rates[key] = SlidingWindow(own, self.clock)
        if self._rates[key].try_take():
            message = f"{client.name} may make no more than {counted(client.rate, 'request')} in a second"
            raise errors.TooManyRequests(message, retry_after=1)
