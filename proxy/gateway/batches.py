"""Batches: what several flights fetch by the same document is sent in one operation.

A batch is open for others as long as the upstream has all the connections that it may have. It never asks for a number
twice. A search, and what is passed on, is a batch of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from proxy.gateway.flights import Flight
from proxy.metrics import Metrics
from proxy.model import EncodedOperation
from proxy.upstream.identity import Credentials

Send = Callable[[EncodedOperation, Credentials, float], Awaitable[Any]]
"""Sends an operation once, within so many seconds, and returns its data, or raises an error of this service."""


@dataclass(slots=True, eq=False)
class Batch:
    """Flights of one account and market, with the same features and root field; None as its key: it stays alone."""

    key: Any
    flights: list[Flight] = field(default_factory=list)
    parts: int = 0
    numbers: set[str] = field(default_factory=set)

    def has_room(self, flight: Flight, parts_max: int) -> bool:
        most = max(self.parts + flight.fetch.limit, len(self.flights) + 1)
        return most <= parts_max and self.numbers.isdisjoint(flight.query.numbers)

    def add(self, flight: Flight) -> None:
        self.flights.append(flight)
        self.parts += flight.fetch.limit
        self.numbers |= flight.query.numbers


class Batches:
    """Batches of a process, of which at most `connections` are under way at a time."""

    def __init__(self, connections: int, metrics: Metrics) -> None:
        self._metrics = metrics
        self._connections = asyncio.Semaphore(connections)
        self._open: dict[Any, Batch] = {}

    def add(self, flight: Flight, parts_max: int) -> Batch | None:
        """Add a flight to the open batch that has room for it, or to a new one, which is returned: it is to be sent."""
        query, application = flight.query, flight.client.application
        key = None
        if not query.is_sent_alone:
            market = application.context.country, application.context.currency
            key = application.account, *market, flight.selected.bits, query.operation, flight.apart
        batch = self._open.get(key) if key else None
        if batch is not None and batch.has_room(flight, parts_max):
            batch.add(flight)
            return None
        new = Batch(key)
        new.add(flight)
        if key:
            self._open[key] = new
        return new

    @asynccontextmanager
    async def connection(self, batch: Batch) -> AsyncIterator[None]:
        """Wait for a connection; when there is one, the batch is closed for other flights."""
        self._metrics.upstream_waiting.inc()
        try:
            await self._connections.acquire()
        finally:
            self._metrics.upstream_waiting.inc(-1)
        try:
            if self._open.get(batch.key) is batch:
                del self._open[batch.key]
            yield
        finally:
            self._connections.release()
