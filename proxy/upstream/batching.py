"""Calls in flight share: queries that arrive while others of their kind are under way go out together.

A lane is an application and a document. What comes to an empty lane goes out at once, in its caller's own task; what
comes while something is under way waits until that is back, until a request is full, or for a few milliseconds,
whatever is first. Knows nothing of what is asked: how queries become one request is the business of who planned them.
"""

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

from proxy import errors
from proxy.telemetry.metrics import Metrics
from proxy.upstream import stalls
from proxy.upstream.classify import Operation
from proxy.upstream.graphql import GraphQLClient
from proxy.upstream.tokens import Credentials

PARTS_MAX = 100  # of one request: the sum of limits (contract graphql.md §2.1)
QUERIES_MAX = 100

T = TypeVar("T")


class Asked(Protocol[T]):
    """Queries that can go out together with others of the same lane."""

    @property
    def parts_max(self) -> int:
        """The most parts that they can cost."""

    @property
    def positions(self) -> Sequence[int]:
        """One for each query."""

    @property
    def batch_key(self) -> Hashable | None:
        """Equal for queries that can go together; None for those that go alone."""

    @property
    def operation(self) -> Operation[Any]:
        """What is sent."""

    def merged(self, others: Sequence[Self]) -> Self:
        """These and the others, in this order."""

    def read(self, data: Any, /) -> list[T]:
        """What was found, for each query."""


@dataclass(slots=True)
class _Waiting:
    """A caller's queries, and where it waits for what is found."""

    ask: Asked[Any]
    since: float
    found: asyncio.Future[list[Any]]
    watches: tuple[stalls.Watch, ...]
    sent: "_Sent | None" = None


@dataclass(slots=True)
class _Sent:
    """A request with the queries of a group."""

    group: list[_Waiting]
    task: asyncio.Task[None]

    def left(self) -> None:
        """A caller has gone: where it was the last one, nobody needs the response."""
        if all(waiting.found.done() for waiting in self.group):
            self.task.cancel()


@dataclass(slots=True)
class _Lane:
    """What is under way, and what waits."""

    credentials: Credentials
    under_way: int = 0
    waiting: list[_Waiting] = field(default_factory=list)
    parts: int = 0
    queries: int = 0
    timer: asyncio.TimerHandle | None = None


class Batching:
    """Sends what callers ask, together where it can be and `enabled`; a query waits for others at most `seconds`."""

    def __init__(self, client: GraphQLClient, enabled: bool, seconds: float, metrics: Metrics) -> None:
        self._client = client
        self._enabled = enabled
        self._seconds = seconds
        self._metrics = metrics
        self._lanes: dict[tuple[Credentials, Hashable], _Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, ask: Asked[T], credentials: Credentials, since: float) -> list[T]:
        """What was found for each query, in the time that began at `since`. Raises what the client raises."""
        if not self._enabled or ask.batch_key is None:
            return await self._send(ask, credentials, since)
        key = credentials, ask.batch_key
        lane = self._lanes.get(key)
        if lane is None:
            return await self._first(key, ask, credentials, since)
        waiting = _Waiting(ask, since, asyncio.get_running_loop().create_future(), stalls.WATCHES.get())
        self._wait(lane, waiting)
        try:
            return await waiting.found
        except asyncio.CancelledError:
            if waiting.sent is not None:
                waiting.sent.left()
            raise

    async def close(self) -> None:
        """Wait for the requests that carry queries of several callers."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _first(
        self, key: tuple[Credentials, Hashable], ask: Asked[T], credentials: Credentials, since: float
    ) -> list[T]:
        lane = self._lanes[key] = _Lane(credentials, 1)
        try:
            return await self._send(ask, credentials, since)
        finally:
            self._landed(key, lane)

    def _wait(self, lane: _Lane, waiting: _Waiting) -> None:
        ask = waiting.ask
        if lane.parts + ask.parts_max > PARTS_MAX or lane.queries + len(ask.positions) > QUERIES_MAX:
            self._depart(lane)
        lane.waiting.append(waiting)
        lane.parts += ask.parts_max
        lane.queries += len(ask.positions)
        if lane.parts >= PARTS_MAX or lane.queries >= QUERIES_MAX:
            self._depart(lane)
        elif lane.timer is None:
            lane.timer = asyncio.get_running_loop().call_later(self._seconds, self._depart, lane)

    def _depart(self, lane: _Lane) -> None:
        """What waits goes out now."""
        if lane.timer is not None:
            lane.timer.cancel()
            lane.timer = None
        group = [waiting for waiting in lane.waiting if not waiting.found.done()]  # others have gone
        lane.waiting, lane.parts, lane.queries = [], 0, 0
        if not group:
            return
        lane.under_way += 1
        task = asyncio.create_task(self._together(lane, group), name="queries of several callers")
        sent = _Sent(group, task)
        for waiting in group:
            waiting.sent = sent
        self._tasks.add(task)
        key = lane.credentials, group[0].ask.batch_key
        task.add_done_callback(lambda _: self._ended(key, lane, sent))

    async def _together(self, lane: _Lane, group: list[_Waiting]) -> None:
        """One request for all of a group, in the time of who came last; where the service refuses it, each asks for
        itself."""
        stalls.WATCHES.set(tuple(dict.fromkeys(watch for waiting in group for watch in waiting.watches)))
        first, *others = (waiting.ask for waiting in group)
        since = max(waiting.since for waiting in group)
        try:
            found = await self._send(first.merged(others) if others else first, lane.credentials, since)
            if others:
                self._metrics.batched_requests[()] += len(group)
        except errors.QueryRefused as refusal:
            if others:
                await asyncio.gather(*(self._alone(waiting, lane.credentials) for waiting in group))
            else:
                _fail(group, refusal)
        except Exception as error:
            _fail(group, error)
        else:
            _hand_out(group, found)

    def _ended(self, key: tuple[Credentials, Hashable], lane: _Lane, sent: _Sent) -> None:
        """The task of a request has ended, or was cancelled before it began."""
        self._tasks.discard(sent.task)
        sent.group = []  # a cycle would keep what was found until the collector comes
        self._landed(key, lane)

    async def _alone(self, waiting: _Waiting, credentials: Credentials) -> None:
        stalls.WATCHES.set(waiting.watches)
        try:
            _hand_out([waiting], await self._send(waiting.ask, credentials, waiting.since))
        except Exception as error:
            _fail([waiting], error)

    def _landed(self, key: tuple[Credentials, Hashable], lane: _Lane) -> None:
        """A request is back: what waits goes out, and an empty lane is forgotten."""
        lane.under_way -= 1
        self._depart(lane)
        if not lane.under_way:
            del self._lanes[key]

    async def _send(self, ask: Asked[T], credentials: Credentials, since: float) -> list[T]:
        found = ask.read(await self._client.ask(ask.operation, credentials, since))
        if len(found) != len(ask.positions):
            raise errors.UpstreamUnreadable("the upstream did not answer every query", may_be_billed=True)
        return found


def _hand_out(group: list[_Waiting], found: list[Any]) -> None:
    """To each caller what was found for its own queries."""
    start = 0
    for waiting in group:
        end = start + len(waiting.ask.positions)
        if not waiting.found.done():
            waiting.found.set_result(found[start:end])
        start = end


def _fail(group: list[_Waiting], error: Exception) -> None:
    for waiting in group:
        if not waiting.found.done():
            waiting.found.set_exception(error)
            waiting.found.exception()  # looked at here: whoever waits may be gone, and then it is nobody's fault
