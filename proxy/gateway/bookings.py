"""Ends of reservations: usage and results, committed in one transaction for all of a turn of the event loop.

What the store cannot take is repeated until it does. Until then the reservation counts in full.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.flights import Flight, Flights
from proxy.gateway.turns import Gathered
from proxy.gateway.usage import KnownUsage
from proxy.kit.clock import Clock
from proxy.store.protocol import Begin, Finish, Result
from proxy.store.store import Store

REPEAT_SECONDS = 0.5

log = structlog.get_logger()


class Booking(NamedTuple):
    """End of a reservation for a client, and the flights whose results are among its own."""

    client: Client
    begin: Begin
    used: int = 0
    uncertain: int = 0
    results: Sequence[Result] = ()
    flights: Sequence[Flight] = ()


class Bookings:
    """Commits bookings; `is_behind` while the store has not taken one."""

    def __init__(self, store: Store, flights: Flights, usage: KnownUsage, clock: Clock) -> None:
        self._store = store
        self._flights = flights
        self._usage = usage
        self._clock = clock
        self._gathered = Gathered("finish", self._commit)
        self._unfinished: list[Booking] = []
        self._repeating: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        return bool(self._unfinished)

    async def book(self, booking: Booking) -> None:
        """Commit a booking, or see to it that it will be."""
        try:
            await self._gathered(booking)
        except errors.StoreUnavailable as error:
            self._unfinished.append(booking)
            if self._repeating is None or self._repeating.done():
                log.error("usage not written", reason=str(error))
                self._repeating = asyncio.create_task(self._repeat(), name="finish")

    async def aclose(self) -> None:
        """Wait until all is committed."""
        if self._repeating is not None:
            await asyncio.wait((self._repeating,))

    async def _commit(self, bookings: Sequence[Booking], *, is_repeated: bool = False) -> Sequence[None]:
        now = self._clock.now()
        await self._store.finish(
            [
                Finish(
                    each.begin.id,
                    each.begin.scope,
                    each.begin.features,
                    each.results,
                    each.client.accounts(now),
                    each.used,
                    each.uncertain,
                    is_repeated,
                )
                for each in bookings
            ]
        )
        for booking in bookings:
            self._usage.add(booking.client.accounts(now), booking.used, booking.uncertain)
            for flight in booking.flights:
                self._flights.remove(flight)
        return [None] * len(bookings)

    async def _repeat(self) -> None:
        while self._unfinished:
            await asyncio.sleep(REPEAT_SECONDS)
            bookings = [*self._unfinished]
            try:
                await self._commit(bookings, is_repeated=True)
            except errors.StoreUnavailable:
                continue
            del self._unfinished[: len(bookings)]
        log.info("usage written")
