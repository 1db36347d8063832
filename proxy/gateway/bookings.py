"""Ends of reservations: usage and results, committed in one transaction for all of an operation.

What the store cannot take is repeated until it does. Until then the reservation counts in full.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from proxy import errors
from proxy.gateway.flights import Flight, Flights
from proxy.gateway.quota import KnownUsage
from proxy.kit.clock import Clock
from proxy.store.protocol import Account, Begin, Finish, Result
from proxy.store.store import Store

REPEAT_SECONDS = 0.5

log = structlog.get_logger()


class Booking(NamedTuple):
    """End of a flight's reservation, with the bits of the features that its results have."""

    flight: Flight
    used: int = 0
    uncertain: int = 0
    results: Sequence[Result] = ()
    features: int = 0


class _Unfinished(NamedTuple):
    booking: Booking
    begin: Begin


class Bookings:
    """Commits bookings; `is_behind` while the store has not taken one."""

    def __init__(self, store: Store, flights: Flights, usage: KnownUsage, clock: Clock) -> None:
        self._store = store
        self._flights = flights
        self._usage = usage
        self._clock = clock
        self._unfinished: list[_Unfinished] = []
        self._repeating: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        return bool(self._unfinished)

    async def book(self, bookings: Sequence[Booking]) -> None:
        """Commit bookings of flights that are reserved, or see to it that they will be."""
        ends = []
        for booking in bookings:
            if booking.flight.begin is not None:
                ends.append(_Unfinished(booking, booking.flight.begin))
                booking.flight.begin = None
        try:
            await self._commit(ends)
        except errors.StoreUnavailable as error:
            self._unfinished += ends
            if self._repeating is None or self._repeating.done():
                log.error("usage not written", reason=str(error))
                self._repeating = asyncio.create_task(self._repeat(), name="finish")

    async def aclose(self) -> None:
        """Wait until all is committed."""
        if self._repeating is not None:
            await asyncio.wait((self._repeating,))

    async def _commit(self, ends: Sequence[_Unfinished], *, is_repeated: bool = False) -> None:
        if not ends:
            return
        now = self._clock.now()
        await self._store.finish([_finish(*end, end.booking.flight.client.accounts(now), is_repeated) for end in ends])
        for booking, _ in ends:
            self._usage.add(booking.flight.client.accounts(now), booking.used, booking.uncertain)
            if booking.results:
                self._flights.remove(booking.flight)

    async def _repeat(self) -> None:
        while self._unfinished:
            await asyncio.sleep(REPEAT_SECONDS)
            ends = [*self._unfinished]
            try:
                await self._commit(ends, is_repeated=True)
            except errors.StoreUnavailable:
                continue
            del self._unfinished[: len(ends)]
        log.info("usage written")


def _finish(booking: Booking, begin: Begin, accounts: Sequence[Account], is_repeated: bool) -> Finish:
    _, used, uncertain, results, features = booking
    return Finish(begin.id, begin.scope, features, results, accounts, used, uncertain, is_repeated)
