"""Flights that begin in the same turns of the event loop are reserved in one transaction.

Nothing waits on a clock: they are reserved as soon as a turn has brought nothing further. Under load turns bring many
requests.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from proxy import errors
from proxy.gateway.applications import Application
from proxy.gateway.bookings import Booking, Bookings
from proxy.gateway.features import Features, Tier
from proxy.gateway.flights import Flight, Flights, wait_for
from proxy.gateway.lookups import Lookups
from proxy.gateway.results import Answer
from proxy.store.protocol import Busy

TURNS_MAX = 8  # under load every turn may bring more
READ_SECONDS = 0.02  # between two looks for what other processes are fetching


class Tasks:
    """Tasks that each work for some flights, which end with it, whatever happens."""

    def __init__(self, flights: Flights, bookings: Bookings) -> None:
        self._flights = flights
        self._bookings = bookings
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], flights: list[Flight]) -> asyncio.Task[None]:
        """Do work in a task of its own, so that a client that leaves loses nothing that was paid for. If it fails, the
        flights are booked, whatever they are reserved for, and end."""
        task = asyncio.create_task(self._guard(work, flights), name="flights")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def aclose(self) -> None:
        """Wait for what is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _guard(self, work: Coroutine[Any, Any, None], flights: list[Flight]) -> None:
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


class Gathering:
    """Flights that are to begin, and those that wait for another process. `reserve` begins some."""

    def __init__(
        self, tasks: Tasks, features: Features, lookups: Lookups, reserve: Callable[[Sequence[Flight]], Awaitable[None]]
    ) -> None:
        self._tasks = tasks
        self._features = features
        self._lookups = lookups
        self._reserve = reserve
        self._gathered: list[Flight] = []
        self._busy: list[Flight] = []
        self._waiting: asyncio.Task[None] | None = None

    def start(self, flights: Sequence[Flight]) -> None:
        """Begin flights, with all others that begin in these turns."""
        if flights and not self._gathered:
            self._tasks.spawn(self._begin(), self._gathered)
        self._gathered += flights

    def wait(self, flight: Flight) -> None:
        """Begin a flight once more when no other process is fetching it."""
        flight.anew = False  # what is stored then is new
        self._busy.append(flight)
        if self._waiting is None or self._waiting.done():
            self._waiting = self._tasks.spawn(self._wait(), self._busy)

    async def _begin(self) -> None:
        """Reserve what has gathered. The first operations of an application have one query each."""
        size = 0
        for _ in range(TURNS_MAX):
            if size == len(self._gathered):
                break
            size = len(self._gathered)
            await asyncio.sleep(0)
        flights, self._gathered = self._gathered, []
        first: dict[Tier, list[Flight]] = {}
        for flight in [*flights]:
            tier = self._features.tier(flight.client.application)
            if not (tier.is_shown or flight.apart or flight.query.passed_on):
                flights.remove(flight)
                first.setdefault(tier, []).append(flight)
        for tier, some in first.items():
            self._tasks.spawn(self._find_features(tier, some), some)
        await self._reserve(flights)

    async def _find_features(self, tier: Tier, flights: list[Flight]) -> None:
        """Fetch for one flight alone, while the features of its application are not known; then begin the others."""
        application = flights[0].client.application
        async with tier.first:
            # Another process may have been first.
            await self._refresh((application,))
            if not tier.is_shown:
                flights[0].apart = object()
                await self._reserve(flights[:1])
                await wait_for(flights[:1])
        self.start([flight for flight in flights if not flight.outcome.done()])

    async def _refresh(self, applications: Iterable[Application]) -> None:
        with contextlib.suppress(errors.StoreUnavailable):
            await self._features.refresh(applications)

    async def _wait(self) -> None:
        """One read serves all that wait."""
        while self._busy:
            await asyncio.sleep(READ_SECONDS)
            waiting = [*self._busy]
            outcomes = await self._lookups.quote(
                [self._lookups.begin(each.client, each.query, each.wanted) for each in waiting]
            )
            both = [*zip(waiting, outcomes, strict=True)]
            free = [flight for flight, outcome in both if not isinstance(outcome, Busy)]
            if first := [flight.client.application for flight in free if flight.apart]:
                await self._refresh(first)  # the other process was first
            self._busy[: len(waiting)] = [flight for flight, outcome in both if isinstance(outcome, Busy)]
            self.start(free)
