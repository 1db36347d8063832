"""Tasks of the pipeline: each works for some flights, which end with it, whatever happens."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from proxy import errors
from proxy.gateway.bookings import Booking, Bookings
from proxy.gateway.flights import Flight, Flights
from proxy.gateway.results import Answer


class Tasks:
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
