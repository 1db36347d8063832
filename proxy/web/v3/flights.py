"""Coalescing of equal requests in flight, by request target: all get the response of the first, encoded once.

Requests that differ in anything but their queries are coalesced further down, query by query
(gateway/cache/coalescing.py), after they were parsed and planned. A request that waits here for longer than
JOIN_SECONDS continues there, where second attempts and stale entries help against a stalled upstream request.
"""

import asyncio
from typing import NamedTuple

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.web.v3.responses import EncodedBody

JOIN_SECONDS = 0.2  # less than coalescing.stall_seconds, after which a request counts as stalled

FlightKey = tuple[str, bool]  # request target, which names the API key, and whether the client accepts gzip


class FlightResult(NamedTuple):
    """Result of a flight: a body, or the error that all of its requests get. `metadata` is that of its request."""

    metadata: ResponseMetadata
    body: EncodedBody | None
    error: errors.BridgeError | None = None


class Flight:
    """One request that is executed, and the equal ones that wait for its result."""

    __slots__ = ("_flights", "_key", "_timer", "_waiting", "client")

    def __init__(self, flights: "dict[FlightKey, Flight]", key: FlightKey, client: Client) -> None:
        self._flights = flights
        self._key = key
        self._waiting: list[asyncio.Future[FlightResult | None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self.client = client

    async def wait(self) -> FlightResult | None:
        """Return the result; None if the caller has to execute its request itself."""
        loop = asyncio.get_running_loop()
        if self._timer is None:  # most flights are joined by nobody, and need no timer
            self._timer = loop.call_later(JOIN_SECONDS, self.end, None)
        waiting: asyncio.Future[FlightResult | None] = loop.create_future()
        self._waiting.append(waiting)
        return await waiting

    def end(self, result: FlightResult | None) -> None:
        """Give a result to all waiting requests; None lets them continue on their own. Only the first call counts."""
        if self._flights.get(self._key) is self:
            del self._flights[self._key]
        if self._timer is not None:
            self._timer.cancel()
        for waiting in self._waiting:
            if not waiting.done():  # its client may have gone
                waiting.set_result(result)
        self._waiting.clear()


class Flights:
    """Requests in flight. Not `enabled`: none is ever joined."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._flights: dict[FlightKey, Flight] = {}

    def get(self, key: FlightKey) -> Flight | None:
        """The flight of an equal request, if there is one."""
        return self._flights.get(key)

    def begin(self, key: FlightKey, client: Client) -> Flight:
        """Begin a flight that others can join, unless there is one already."""
        flight = Flight(self._flights, key, client)
        if self._enabled:
            self._flights.setdefault(key, flight)
        return flight
