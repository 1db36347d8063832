"""Batches: what several reservations fetch by the same document is sent in one operation.

A batch is open for a few turns of the event loop (turns.py), and for as long as the upstream has all the connections
that it may have. It never asks for a number twice. What a reservation has waited for too long is not sent at all.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from proxy import errors, model
from proxy.gateway import turns
from proxy.gateway.applications import Application
from proxy.gateway.features import Selected
from proxy.kit.clock import Clock
from proxy.planning import fetches
from proxy.planning.fetches import Fetch, Fetched
from proxy.planning.operations import EncodedOperation
from proxy.store import protocol
from proxy.telemetry.metrics import Metrics
from proxy.upstream.auth.identity import Credentials
from proxy.upstream.classify import SERVICE

Send = Callable[[EncodedOperation, Credentials, float], Awaitable[Any]]
"""Sends an operation once, within so many seconds, and returns its data, or raises an error of this service."""


class Reserved(NamedTuple):
    """What one reservation fetches, of one root field; when it was begun (seconds since 1970), in whose day it is to be
    sent, and when it must have ended (monotonic seconds)."""

    application: Application
    selected: Selected
    fetches: Sequence[Fetch]
    begun: float
    until: float

    @property
    def parts(self) -> int:
        return sum(each.limit for each in self.fetches)

    def is_in_time(self, clock: Clock) -> bool:
        """Return whether the reservation has not ended, and counts in the periods of now."""
        is_same_day = self.begun // protocol.DAY_SECONDS == clock.now() // protocol.DAY_SECONDS
        return is_same_day and self.until > clock.monotonic()


class Sent(NamedTuple):
    """Outcome of an operation for one reservation: what was fetched for each of its queries, or why nothing was. The
    operation had `queries`, which may have cost `parts`, of `reservations`."""

    fetched: Sequence[Fetched]
    error: errors.BridgeError | None
    queries: int
    parts: int
    reservations: int

    @property
    def may_be_billed(self) -> bool:
        """Whether parts may have been billed without data: of a refused operation unless all its errors are of
        validation."""
        if isinstance(self.error, errors.QueryRefused):
            return not all(map(_is_validation, self.error.reported))
        return isinstance(self.error, errors.ServerError) and self.error.may_be_billed

    @property
    def is_outage(self) -> bool:
        """Whether the upstream fails, as opposed to a query that it refuses or a quota that is exhausted."""
        refused = isinstance(self.error, errors.QueryRefused | errors.OversizedOperation)
        return not refused and isinstance(self.error, errors.ServerError | errors.TooManyRequests)


@dataclass(slots=True, eq=False)
class _Batch:
    key: Any
    members: list[tuple[Reserved, asyncio.Future[Sent]]] = field(default_factory=list)
    parts: int = 0
    queries: int = 0
    numbers: set[str] = field(default_factory=set)

    def has_room(self, reserved: Reserved, parts_max: int) -> bool:
        numbers = (number for each in reserved.fetches for number in each.query.numbers)
        most = max(self.parts + reserved.parts, self.queries + len(reserved.fetches))
        return most <= parts_max and self.numbers.isdisjoint(numbers)

    def add(self, reserved: Reserved, future: asyncio.Future[Sent]) -> None:
        self.members.append((reserved, future))
        self.parts += reserved.parts
        self.queries += len(reserved.fetches)
        self.numbers.update(*(each.query.numbers for each in reserved.fetches))


class Batches:
    """Sends what is reserved; at most `connections` operations are under way at a time."""

    def __init__(self, send: Send, clock: Clock, connections: int, metrics: Metrics) -> None:
        self._send_once = send
        self._clock = clock
        self._metrics = metrics
        self._connections = asyncio.Semaphore(connections)
        self._open: dict[Any, _Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, reserved: Reserved, parts_max: int, *, alone: bool = False) -> Sent:
        """Send what is reserved once, with others up to `parts_max` unless `alone`."""
        future: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
        is_search = reserved.fetches[0].query.root in ("supSearch", "supSearchMpn")
        application = reserved.application
        market = application.context.country, application.context.currency
        grouped = application.account, *market, reserved.selected.documents, reserved.fetches[0].query.operation
        key = None if alone or is_search else grouped
        batch = self._open.get(key) if key else None
        if batch is None or not batch.has_room(reserved, parts_max):
            batch = _Batch(key)
            if key:
                self._open[key] = batch
            task = asyncio.create_task(self._run(batch), name="batch")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        batch.add(reserved, future)
        return await future

    async def pass_on(self, reserved: Reserved, operation: EncodedOperation) -> Any:
        """Send an operation for which parts are reserved, and return its data. Raises BridgeErrors."""
        async with self._connection():
            if not reserved.is_in_time(self._clock):
                raise _late()
            seconds = reserved.until - self._clock.monotonic()
            return await self._send_once(operation, reserved.application.credentials, seconds)

    async def _run(self, batch: _Batch) -> None:
        try:
            await turns.quiet(lambda: batch.queries)
            async with self._connection():
                if self._open.get(batch.key) is batch:
                    del self._open[batch.key]
                await self._send(self._in_time(batch))
        finally:
            for _, future in batch.members:
                future.cancel()  # has an effect only where the task was cancelled, or has a mistake

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[None]:
        self._metrics.upstream_waiting.inc()
        try:
            await self._connections.acquire()
        finally:
            self._metrics.upstream_waiting.inc(-1)
        try:
            yield
        finally:
            self._connections.release()

    def _in_time(self, batch: _Batch) -> list[tuple[Reserved, asyncio.Future[Sent]]]:
        """Return the members whose reservations have not ended, and count in the periods of now; the others are told
        so."""
        in_time = []
        for reserved, future in batch.members:
            if reserved.is_in_time(self._clock):
                in_time.append((reserved, future))
            elif not future.done():
                future.set_result(Sent((), _late(), len(reserved.fetches), reserved.parts, 1))
        return in_time

    async def _send(self, members: list[tuple[Reserved, asyncio.Future[Sent]]]) -> None:
        if not members:
            return
        first = members[0][0]
        wanted = [each for reserved, _ in members for each in reserved.fetches]
        if len(members) > 1:
            self._metrics.batched_requests.inc(len(members))
        context = first.application.context
        operation = first.selected.documents.operation(wanted, context.country, context.currency)
        seconds = min(reserved.until for reserved, _ in members) - self._clock.monotonic()
        fetched: list[Fetched] = []
        error = None
        try:
            data = await self._send_once(operation, first.application.credentials, seconds)
            fetched = fetches.read(wanted, data)
        except errors.BridgeError as failure:
            error = failure
        place = 0
        for reserved, future in members:
            own = fetched[place : place + len(reserved.fetches)]
            place += len(reserved.fetches)
            if not future.done():
                future.set_result(Sent(own, error, len(wanted), operation.parts_max, len(members)))


def _late() -> errors.DeadlineExceeded:
    return errors.DeadlineExceeded(f"{SERVICE} was not asked in time")


def _is_validation(error: model.GraphQLError) -> bool:
    return error.path is None or "specifiedBy" in (error.extensions or {})
