"""Batches: what several flights fetch by the same document is sent in one operation.

A batch is open for others as long as the upstream has all the connections that it may have. It never asks for a number
twice. A search, and what is passed on, is a batch of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable
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


class Batches:
    """Batches of a process. One that has got one of its `connections` to the upstream is to be closed for others."""

    def __init__(self, connections: int, metrics: Metrics) -> None:
        self.connections = asyncio.Semaphore(connections)
        self._waiting = metrics.upstream_waiting
        self._open: dict[Any, Batch] = {}

    def add(self, flight: Flight, parts_max: int) -> Batch | None:
        """Add a flight to the open batch that has room for it, or to a new one, which is returned: it is to be sent."""
        query, application = flight.query, flight.client.application
        key = None
        if not query.is_sent_alone:
            market = application.context.country, application.context.currency
            key = application.account, *market, flight.selected.bits, query.operation, flight.apart
        found = self._open.get(key)
        batch = found if found is not None and found.has_room(flight, parts_max) else Batch(key)
        batch.flights.append(flight)
        batch.parts += flight.fetch.limit
        batch.numbers |= query.numbers
        if batch is found:
            return None
        if key:
            self._open[key] = batch
        self._waiting.inc()
        return batch

    def close(self, batch: Batch) -> None:
        """Close a batch for other flights."""
        self._waiting.inc(by=-1)
        if self._open.get(batch.key) is batch:
            del self._open[batch.key]
