"""Batching: queries with the same batch key that come in successive turns of the event loop are sent in one operation.

A batch key is an application and a document. No query waits on a clock: a batch is flushed as soon as a turn of the
event loop has brought it no further query, which for a single request takes microseconds. Under load turns handle many
requests, so that batches grow by themselves. While as many requests are in flight as the upstream may have connections,
batches wait for the end of one, and take further queries meanwhile. How queries are merged into one operation,
planning/operations.py knows.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

from proxy import errors
from proxy.kit.event_loop import in_turns
from proxy.kit.slices import Slices
from proxy.model import PARTS_MAX
from proxy.telemetry.metrics import Metrics
from proxy.upstream import stalls
from proxy.upstream.auth.identity import Credentials
from proxy.upstream.classify import SERVICE, GraphQLOperation
from proxy.upstream.graphql import GraphQLClient

# A request takes several turns from its arrival to its queries, so that those of requests that arrived together do not
# come in the same turn. Bounded, because under load every turn may bring another query.
TURNS_MAX = 8
EARLIER_SECONDS = 0.1  # before the latest caller of a batch, from which on a caller needs a time limit of its own

T = TypeVar("T")


class BatchableQueries(Protocol[T]):
    """Queries of one request that can be sent with others of the same batch key."""

    @property
    def parts_max(self) -> int:
        """Parts that they cost at most."""

    @property
    def positions(self) -> Sequence[int]:
        """Position of each query in its request."""

    @property
    def batch_key(self) -> Hashable | None:
        """Equal for queries that can be sent together; None for those that are sent alone."""

    @property
    def operation(self) -> GraphQLOperation[Any]:
        """GraphQL operation to send."""

    def merged(self, others: Sequence[Self]) -> Self:
        """Return these and the other queries, in this order."""

    def read(self, data: Any, /) -> list[T]:
        """Return the result of each query."""

    def decoded(self, results: list[T], /) -> Slices[list[T]]:
        """Return results with what the caller needs of them decoded; the work of the one that wants them."""


@dataclass(slots=True, eq=False)
class _PendingQueries:
    """Queries of one caller, and the future of their results: None if the caller is to send them itself."""

    queries: BatchableQueries[Any]
    since: float
    watch: stalls.StallWatch[Any] | None
    results: asyncio.Future[list[Any] | None]
    sent_by_caller: bool = False
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True, eq=False)
class _Batch:
    """Queries with the same key: first open for further ones, then sent, by `task` if they have several callers."""

    credentials: Credentials
    key: tuple[Credentials, Hashable | None]
    group: list[_PendingQueries] = field(default_factory=list)
    parts: int = 0
    query_count: int = 0
    context: contextvars.Context | None = None
    task: asyncio.Task[None] | None = None

    def has_room(self, queries: BatchableQueries[Any], parts_max: int) -> bool:
        """Return whether one operation of at most so many parts can carry these queries, too."""
        return max(self.parts + queries.parts_max, self.query_count + len(queries.positions)) <= parts_max

    def add(self, pending: _PendingQueries) -> None:
        """Add the queries of a caller."""
        self.group.append(pending)
        self.parts += pending.queries.parts_max
        self.query_count += len(pending.queries.positions)

    def caller_left(self) -> None:
        """Cancel the request in flight if all of its callers were cancelled."""
        # One caller that is still there needs the response.
        if self.task is not None and all(pending.results.done() for pending in self.group):
            self.task.cancel()


class Batcher:
    """Sends queries, in batches if `enabled`; `connections` is how many requests the upstream may have in flight."""

    def __init__(self, client: GraphQLClient, enabled: bool, connections: int, metrics: Metrics) -> None:
        self._client = client
        self._enabled = enabled
        self._connections = connections
        self._metrics = metrics
        self._in_flight = 0
        self._open: dict[tuple[Credentials, Hashable | None], _Batch] = {}
        self._waiting: deque[_Batch] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def execute(
        self,
        queries: BatchableQueries[T],
        credentials: Credentials,
        since: float,
        watch: stalls.StallWatch[Any] | None = None,
        parts_max: int = PARTS_MAX,
    ) -> list[T]:
        """Return the result of each query; the time limit began at `since`. They are sent with others up to
        `parts_max`. Raises the errors of GraphQLClient."""
        watches = () if watch is None else (watch,)
        if not self._enabled:
            try:
                return await in_turns(queries.decoded(await self._send(queries, credentials, since, watches)))
            except errors.OversizedOperation as error:
                raise _halved(error, queries, is_alone=True) from error
        loop = asyncio.get_running_loop()
        pending = _PendingQueries(queries, since, watch, loop.create_future())
        batch = self._add(pending, credentials, loop, parts_max)
        try:
            results = await pending.results
            if results is None:
                results = await self._send(queries, credentials, since, watches)
        except errors.OversizedOperation as error:
            raise _halved(error, queries, is_alone=pending.sent_by_caller) from error
        except asyncio.CancelledError:
            batch.caller_left()
            raise
        finally:
            if pending.timer is not None:
                pending.timer.cancel()
            if pending.sent_by_caller:
                self._connection_freed()
        return await in_turns(queries.decoded(results))

    async def close(self) -> None:
        """Wait for the requests that carry batches."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _add(
        self, pending: _PendingQueries, credentials: Credentials, loop: asyncio.AbstractEventLoop, parts_max: int
    ) -> _Batch:
        """Add queries to the open batch of their key, or to a new one, which is flushed soon."""
        key = credentials, pending.queries.batch_key
        batch = self._open.get(key)
        if batch is None or not batch.has_room(pending.queries, parts_max):
            batch = _Batch(credentials, key)
            # Behind the callbacks that are ready now, among them requests of the same turn.
            if pending.queries.batch_key is None:
                loop.call_soon(self._flush, batch)
            else:
                self._open[key] = batch
                loop.call_soon(self._flush_if_quiet, batch, 0, TURNS_MAX, loop)
        elif batch.context is not None:
            self._limit_wait(pending, batch, loop)
        batch.add(pending)
        return batch

    def _flush_if_quiet(self, batch: _Batch, previous: int, turns: int, loop: asyncio.AbstractEventLoop) -> None:
        """Flush a batch if it still has as many queries as in the previous turn, or at the last of its turns."""
        if turns and batch.query_count > previous:
            loop.call_soon(self._flush_if_quiet, batch, batch.query_count, turns - 1, loop)
        else:
            self._flush(batch)

    def _flush(self, batch: _Batch) -> None:
        """Send a batch, or let it wait for a connection."""
        if self._in_flight < self._connections:
            self._start(batch)
        else:
            batch.context = contextvars.copy_context()  # that of its first caller, whose request id is sent and logged
            self._waiting.append(batch)
            self._metrics.upstream_waiting.inc()
            for pending in batch.group:
                self._limit_wait(pending, batch, asyncio.get_running_loop())

    def _limit_wait(self, pending: _PendingQueries, batch: _Batch, loop: asyncio.AbstractEventLoop) -> None:
        """Set the time limit of a caller that waits for a connection, or began long before the others: the client of
        requests knows only the limit of the latest caller of a batch, once it is sent."""
        seconds = max(0.0, self._client.remaining(pending.since))
        pending.timer = loop.call_later(seconds, self._time_over, pending, batch)

    def _time_over(self, pending: _PendingQueries, batch: _Batch) -> None:
        if not pending.results.done():
            message = f"{SERVICE} did not answer in time"
            if batch.context is not None:
                message += f": all {self._connections} connections were in use"
            pending.results.set_exception(errors.DeadlineExceeded(message, may_be_billed=batch.task is not None))
            batch.caller_left()

    def _start(self, batch: _Batch) -> None:
        """Send a batch now: by its caller if there is only one, else in a task of its own, because callers may be
        cancelled one by one."""
        if self._open.get(batch.key) is batch:
            del self._open[batch.key]
        batch.group = [pending for pending in batch.group if not pending.results.done()]  # done: cancelled
        if not batch.group:
            return
        self._in_flight += 1
        self._metrics.upstream_in_flight.inc()
        if len(batch.group) == 1:
            batch.group[0].sent_by_caller = True
            batch.group[0].results.set_result(None)
            return
        batch.task = asyncio.create_task(self._send_group(batch), name="batch", context=batch.context)
        self._tasks.add(batch.task)
        batch.task.add_done_callback(lambda task: self._task_done(task, batch))
        latest = max(pending.since for pending in batch.group)
        for pending in batch.group:  # such as one that has waited for another worker's answer to the same query
            if pending.timer is None and latest - pending.since > EARLIER_SECONDS:
                self._limit_wait(pending, batch, asyncio.get_running_loop())

    async def _send_group(self, batch: _Batch) -> None:
        """Send one operation, within the time limit of the latest caller. If the upstream refuses it, send the queries
        of each caller separately: one invalid query must not fail the others. A field fails them all."""
        group, credentials = batch.group, batch.credentials
        first, *others = (pending.queries for pending in group)
        # Of the latest: an earlier caller has a time limit of its own, and the others must not lose theirs.
        since = max(pending.since for pending in group)
        try:
            results = await self._send(first.merged(others), credentials, since, _watches(group))
            self._metrics.batched_requests.inc(len(group))
        except errors.QueryRefused as refusal:
            if refusal.fields:
                _fail(group, refusal)
                return
            await asyncio.gather(*(self._send_separately(pending, credentials) for pending in group))
        except Exception as error:
            _fail(group, error)
        else:
            _distribute(group, results)

    async def _send_separately(self, pending: _PendingQueries, credentials: Credentials) -> None:
        if pending.results.done():  # its caller is gone: nobody would get the parts
            return
        try:
            results = await self._send(pending.queries, credentials, pending.since, _watches([pending]))
            _distribute([pending], results)
        except Exception as error:
            _fail([pending], error)

    def _task_done(self, task: asyncio.Task[None], batch: _Batch) -> None:
        """Handle the end of a batch's task, which may have been cancelled before it began."""
        self._tasks.discard(task)
        batch.group = []  # breaks a reference cycle that would keep the results until the next garbage collection
        self._connection_freed()

    def _connection_freed(self) -> None:
        """Send the batch that has waited longest for a connection."""
        self._in_flight -= 1
        self._metrics.upstream_in_flight.dec()
        while self._waiting and self._in_flight < self._connections:
            self._metrics.upstream_waiting.dec()
            self._start(self._waiting.popleft())

    async def _send(
        self,
        queries: BatchableQueries[T],
        credentials: Credentials,
        since: float,
        watches: Sequence[stalls.StallWatch[Any]],
    ) -> list[T]:
        data = await self._client.execute(queries.operation, credentials, since, watches=watches)
        results = queries.read(data)
        if len(results) != len(queries.positions):
            raise errors.UpstreamUnreadable("the upstream did not answer every query", may_be_billed=True)
        return results


def _halved(
    error: errors.OversizedOperation, queries: BatchableQueries[Any], *, is_alone: bool
) -> errors.OversizedOperation:
    """Return the error of one caller: half of its queries may succeed; of a single one, that it is sent alone."""
    is_single = len(queries.positions) == 1
    smaller = queries.parts_max if is_single else queries.parts_max // 2
    if is_single and is_alone:
        smaller = 0
    return errors.OversizedOperation(error.message, may_be_billed=error.may_be_billed, smaller=smaller)


def _watches(group: list[_PendingQueries]) -> tuple[stalls.StallWatch[Any], ...]:
    """Return the watches of a group, each once: a caller may have several operations in it."""
    return tuple(dict.fromkeys(pending.watch for pending in group if pending.watch is not None))


def _distribute(group: list[_PendingQueries], results: list[Any]) -> None:
    """Give each caller the results of its own queries."""
    start = 0
    for pending in group:
        end = start + len(pending.queries.positions)
        if not pending.results.done():
            pending.results.set_result(results[start:end])
        start = end


def _fail(group: list[_PendingQueries], error: Exception) -> None:
    for pending in group:
        if not pending.results.done():
            pending.results.set_exception(error)
            pending.results.exception()  # retrieved, so that asyncio does not log it if the caller was cancelled
