"""Batching: queries with the same batch key that arrive while a request is in flight are sent in one GraphQL operation.

A batch key is an application and a document. Queries with no request in flight for their key are sent at once, in the
task of their caller. Later ones wait until that request is done, the batch is full, or a few milliseconds have passed,
whichever is first; then the batch is flushed. How queries are merged into one operation, planning/operations.py knows.
"""

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

from proxy import errors
from proxy.telemetry.metrics import Metrics
from proxy.upstream import stalls
from proxy.upstream.auth.identity import Credentials
from proxy.upstream.classify import GraphQLOperation
from proxy.upstream.graphql import GraphQLClient

PARTS_MAX = 100  # of one operation: the sum of limits (contract graphql.md §2.1)
QUERIES_MAX = 100

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


@dataclass(slots=True)
class _PendingQueries:
    """Queries of one caller, and the future of their results."""

    queries: BatchableQueries[Any]
    since: float
    results: asyncio.Future[list[Any]]
    listeners: tuple[stalls.StallListener, ...]
    request: "_BatchRequest | None" = None


@dataclass(slots=True)
class _BatchRequest:
    """Request in flight with the queries of several callers."""

    group: list[_PendingQueries]
    task: asyncio.Task[None]

    def caller_left(self) -> None:
        """Cancel the request if all of its callers were cancelled."""
        if all(pending.results.done() for pending in self.group):
            self.task.cancel()


@dataclass(slots=True)
class _Batch:
    """Queries of one batch key that wait for the next flush, and the number of requests in flight."""

    credentials: Credentials
    in_flight: int = 0
    pending: list[_PendingQueries] = field(default_factory=list)
    parts: int = 0
    query_count: int = 0
    timer: asyncio.TimerHandle | None = None


class Batcher:
    """Sends queries, in batches if `enabled`; a query waits at most `seconds` for a flush."""

    def __init__(self, client: GraphQLClient, enabled: bool, seconds: float, metrics: Metrics) -> None:
        self._client = client
        self._enabled = enabled
        self._seconds = seconds
        self._metrics = metrics
        self._batches: dict[tuple[Credentials, Hashable], _Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def execute(self, queries: BatchableQueries[T], credentials: Credentials, since: float) -> list[T]:
        """Return the result of each query; the time limit began at `since`. Raises the errors of GraphQLClient."""
        if not self._enabled or queries.batch_key is None:
            return await self._send(queries, credentials, since)
        key = credentials, queries.batch_key
        batch = self._batches.get(key)
        if batch is None:
            return await self._send_at_once(key, queries, credentials, since)
        pending = _PendingQueries(
            queries, since, asyncio.get_running_loop().create_future(), stalls.STALL_LISTENERS.get()
        )
        self._add(batch, pending)
        try:
            return await pending.results
        except asyncio.CancelledError:
            if pending.request is not None:
                pending.request.caller_left()
            raise

    async def close(self) -> None:
        """Wait for the requests that carry batches."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _send_at_once(
        self, key: tuple[Credentials, Hashable], queries: BatchableQueries[T], credentials: Credentials, since: float
    ) -> list[T]:
        batch = self._batches[key] = _Batch(credentials, 1)
        try:
            return await self._send(queries, credentials, since)
        finally:
            self._request_done(key, batch)

    def _add(self, batch: _Batch, pending: _PendingQueries) -> None:
        """Add queries to a batch; flush it if they do not fit, or if it is full with them."""
        queries = pending.queries
        if batch.parts + queries.parts_max > PARTS_MAX or batch.query_count + len(queries.positions) > QUERIES_MAX:
            self._flush(batch)
        batch.pending.append(pending)
        batch.parts += queries.parts_max
        batch.query_count += len(queries.positions)
        if batch.parts >= PARTS_MAX or batch.query_count >= QUERIES_MAX:
            self._flush(batch)
        elif batch.timer is None:
            # The end of the request in flight flushes, too: the timer bounds the wait if that request is slow.
            batch.timer = asyncio.get_running_loop().call_later(self._seconds, self._flush, batch)

    def _flush(self, batch: _Batch) -> None:
        """Send the pending queries now, in a task of their own: their callers may be cancelled one by one."""
        if batch.timer is not None:
            batch.timer.cancel()
            batch.timer = None
        group = [pending for pending in batch.pending if not pending.results.done()]  # done: cancelled
        batch.pending, batch.parts, batch.query_count = [], 0, 0
        if not group:
            return
        batch.in_flight += 1
        task = asyncio.create_task(self._send_group(batch, group), name="batch")
        request = _BatchRequest(group, task)
        for pending in group:
            pending.request = request
        self._tasks.add(task)
        key = batch.credentials, group[0].queries.batch_key
        task.add_done_callback(lambda _: self._task_done(key, batch, request))

    async def _send_group(self, batch: _Batch, group: list[_PendingQueries]) -> None:
        """Send one operation, within the time limit of the latest caller. If the upstream refuses it, send the queries
        of each caller separately: one invalid query must not fail the others."""
        stalls.STALL_LISTENERS.set(tuple(dict.fromkeys(each for pending in group for each in pending.listeners)))
        first, *others = (pending.queries for pending in group)
        since = max(pending.since for pending in group)
        try:
            results = await self._send(first.merged(others) if others else first, batch.credentials, since)
            if others:
                self._metrics.batched_requests[()] += len(group)
        except errors.QueryRefused as refusal:
            if others:
                await asyncio.gather(*(self._send_separately(pending, batch.credentials) for pending in group))
            else:
                _fail(group, refusal)
        except Exception as error:
            _fail(group, error)
        else:
            _distribute(group, results)

    def _task_done(self, key: tuple[Credentials, Hashable], batch: _Batch, request: _BatchRequest) -> None:
        """Handle the end of a batch's task, which may have been cancelled before it began."""
        self._tasks.discard(request.task)
        request.group = []  # breaks a reference cycle that would keep the results until the next garbage collection
        self._request_done(key, batch)

    async def _send_separately(self, pending: _PendingQueries, credentials: Credentials) -> None:
        stalls.STALL_LISTENERS.set(pending.listeners)
        try:
            _distribute([pending], await self._send(pending.queries, credentials, pending.since))
        except Exception as error:
            _fail([pending], error)

    def _request_done(self, key: tuple[Credentials, Hashable], batch: _Batch) -> None:
        """Flush the queries that came meanwhile; remove a batch without requests in flight."""
        batch.in_flight -= 1
        self._flush(batch)
        if not batch.in_flight:
            del self._batches[key]

    async def _send(self, queries: BatchableQueries[T], credentials: Credentials, since: float) -> list[T]:
        results = queries.read(await self._client.execute(queries.operation, credentials, since))
        if len(results) != len(queries.positions):
            raise errors.UpstreamUnreadable("the upstream did not answer every query", may_be_billed=True)
        return results


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
