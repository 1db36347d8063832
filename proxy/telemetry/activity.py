"""Recent activity of this process: the last v3 requests and upstream operations, for the admin interface. Held in
memory; what is read from it has no API keys, no tokens, and no texts of clients but the target and the user agent.

To record a request is to append a plain tuple: it is on the way of every request, and a struct takes longer to make
than the tuple that it is read from later. Who called is counted from the same values (callers.py).
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count

import msgspec

from proxy import errors, redaction
from proxy.kit import clock as clocks

REQUESTS_MAX = 200  # last requests that are held
OPERATIONS_MAX = 200  # last upstream operations that are held
SLOWEST_MAX = 50  # slowest operations of the last hour that are held
SLOWEST_SECONDS = 3_600.0
SLOWEST_SPAN = 300.0  # seconds; of each span the slowest are held, so that the slowest of an hour are known at any time
TARGET_MAX = 4_096  # characters of a request target that are shown
HELD_MAX = 2 * TARGET_MAX  # that are held: an API key that the end cuts in half is not shown
USER_AGENT_MAX = 200  # characters
NAME_MAX = 120  # characters of an unsupported use
TOKEN_REQUEST = "token request"  # noqa: S105 - the operation that requests an access token
OK = "ok"  # outcome of an operation with usable data

RequestValues = tuple[
    float,
    str,
    str,
    str,
    str,
    int,
    float,
    str,
    str,
    str | None,
    str | None,
    int | None,
    str | None,
    str | None,
    int,
    int,
    tuple[str, ...],
]
"""Values of a RequestRecord."""


class RequestRecord(msgspec.Struct, frozen=True, array_like=True):
    """A v3 request that was responded to. `at` is in seconds since 1970, `ms` the duration.

    `target` is the path with the query, without API keys; cut at TARGET_MAX. `application` and `key` are
    names, None without a valid API key. `parts` were billed, `cache` is where the results came from; `error` is the
    type of the error that the response reports. `cached_parts` and `coalesced_parts` were not billed: they were cached,
    or an equal query in flight has brought them. `unsupported` are parameters that the response ignores, and fields
    without source that the request names, with the reason.
    """

    at: float
    id: str
    method: str
    target: str
    route: str
    status: int
    ms: float
    address: str
    user_agent: str
    application: str | None
    key: str | None
    parts: int | None
    cache: str | None
    error: str | None
    cached_parts: int = 0
    coalesced_parts: int = 0
    unsupported: tuple[str, ...] = ()


class OperationRecord(msgspec.Struct):
    """A request to the GraphQL or the identity service, and its response: one attempt, where there are retries.

    `at` is its end, in seconds since 1970, `ms` its duration. `queries` are those that it carried, of one v3 request
    or of several (0: it was for none). `parts` were returned, and billed; None where it requests none, or failed.
    `outcome` is OK or the type of the error.
    """

    at: float = 0.0
    name: str = ""
    application: str = ""
    ms: float = 0.0
    outcome: str = OK
    queries: int = 0
    parts: int | None = None


class RecentActivity(msgspec.Struct, frozen=True):
    """Activity of one process or of several, newest requests and operations first, slowest operation first."""

    requests: list[RequestRecord]
    operations: list[OperationRecord]
    slowest: list[OperationRecord]


def held_target(target: str) -> str:
    """Return a request target as it is held until it is read: a long one cut, with the API key behind the cut, so
    that the key is also found in what is left."""
    if len(target) <= HELD_MAX:
        return target
    cut = target[:HELD_MAX]
    _, name, key = target[HELD_MAX:].rpartition("apikey=")
    return f"{cut}&{name}{key.partition('&')[0]}" if name else cut


def shown(keys: redaction.Redaction, target: str, user_agent: str) -> tuple[str, str]:
    """Return the target and the User-Agent of a request as text that can be stored and shown: without API keys, cut;
    the User-Agent without control characters and surrogates."""
    target, agent = keys.request(target, user_agent, TARGET_MAX)
    return target, _printable(agent[:USER_AGENT_MAX])


def shown_names(keys: redaction.Redaction, target: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return unsupported uses as texts that can be stored and shown: they may hold any text of a client."""
    hidden = keys.including(target)
    return tuple(_printable(hidden.text(name)[:NAME_MAX]) for name in names)


def _printable(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if each.isprintable() else "�" for each in text)


class Activity:
    """What this process did recently. `on_request` gets each request, too, such as to count it; `keys` hides
    API keys."""

    def __init__(
        self,
        clock: clocks.Clock | None = None,
        on_request: Callable[[RequestValues], None] | None = None,
        keys: redaction.Redaction | None = None,
    ) -> None:
        self._clock = clock or clocks.SystemClock()
        self.on_request = on_request
        self._requests: deque[RequestValues] = deque(maxlen=REQUESTS_MAX)
        self._shown: dict[int, tuple[RequestValues, RequestRecord]] = {}
        self._redaction = keys or redaction.Redaction()
        self._operations: deque[OperationRecord] = deque(maxlen=OPERATIONS_MAX)
        # Heaps of the slowest by span of time: a whole span is dropped when it is over an hour old.
        self._slowest: dict[int, list[tuple[float, int, OperationRecord]]] = {}
        self._numbers = count()

    def add_request(self, record: RequestValues) -> None:
        """Add a request that was responded to: the values of a RequestRecord with an unrounded `ms`, the target as
        `held_target` returns it, and the User-Agent as it was sent."""
        self._requests.append(record)
        if self.on_request is not None:
            self.on_request(record)

    def add_operation(self, record: OperationRecord) -> None:
        self._operations.append(record)
        span = int(record.at // SLOWEST_SPAN)
        heap = self._slowest.get(span)
        if heap is None:
            heap = self._slowest[span] = []
            self._drop_old(record.at)
        # The number decides between equal durations, so that records are never compared.
        entry = record.ms, next(self._numbers), record
        if len(heap) < SLOWEST_MAX:
            heapq.heappush(heap, entry)
        elif record.ms > heap[0][0]:
            heapq.heapreplace(heap, entry)

    def attempt(self, name: str, application: str, record: OperationRecord) -> "_Attempt":
        """Add an operation for the attempt in the block: `record` itself if it succeeds, else a copy."""
        record.name, record.application, record.outcome = name, application, OK
        return _Attempt(self, self._clock, record)

    async def recent(self) -> RecentActivity:
        # API keys are hidden when a request is read: most never are, and it takes ten times as long as the rest of the
        # record. A long target takes milliseconds: other tasks of the event loop run between two.
        known, shown = self._shown, {}
        for values in list(self._requests):
            entry = known.get(id(values))
            if entry is None or entry[0] is not values:
                entry = values, self._record(values)
                await asyncio.sleep(0)
            shown[id(values)] = entry
        self._shown = shown
        requests = [record for _, record in reversed(shown.values())]
        since = self._clock.now() - SLOWEST_SECONDS
        slow = (record for heap in self._slowest.values() for _, _, record in heap if record.at >= since)
        return RecentActivity(requests, list(reversed(self._operations)), slowest(slow))

    def _record(self, values: RequestValues) -> RequestRecord:
        record = RequestRecord(*values)
        unsupported = shown_names(self._redaction, record.target, record.unsupported) if record.unsupported else ()
        target, agent = self.shown(record.target, record.user_agent)
        return msgspec.structs.replace(
            record, target=target, user_agent=agent, ms=round(record.ms, 1), unsupported=unsupported
        )

    def shown(self, target: str, user_agent: str) -> tuple[str, str]:
        return shown(self._redaction, target, user_agent)

    def latest(self) -> tuple[object, ...]:
        """Return what changes with every request and operation."""
        # Objects, compared by a reader: to count both here would be on the way of every request.
        return tuple(each[-1] for each in (self._requests, self._operations) if each)

    def _drop_old(self, now: float) -> None:
        oldest = int((now - SLOWEST_SECONDS) // SLOWEST_SPAN)
        self._slowest = {span: heap for span, heap in self._slowest.items() if span >= oldest}


class _Attempt:
    """Context of one attempt. A generator would take three times as long, with every operation."""

    __slots__ = ("_activity", "_began", "_clock", "_record")

    def __init__(self, activity: Activity, clock: clocks.Clock, record: OperationRecord) -> None:
        self._activity = activity
        self._clock = clock
        self._record = record

    def __enter__(self) -> None:
        self._began = self._clock.monotonic()

    def __exit__(self, kind: type[BaseException] | None, _: object, __: object) -> None:
        record = self._record
        if kind is not None:
            # An open circuit breaker lets nothing be sent: there was no attempt.
            if issubclass(kind, errors.CircuitBreakerOpen):
                return
            record.outcome = kind.__name__
        record.at, record.ms = self._clock.now(), (self._clock.monotonic() - self._began) * 1000
        # A copy of a failed one: the next attempt uses the record again.
        self._activity.add_operation(record if record.outcome == OK else msgspec.structs.replace(record))


def slowest(records: Iterable[OperationRecord]) -> list[OperationRecord]:
    """Return the slowest operations, slowest first."""
    return heapq.nlargest(SLOWEST_MAX, records, key=lambda each: each.ms)


def merged(activities: Iterable[RecentActivity]) -> RecentActivity:
    """Return the activity of several processes as if it were that of one."""
    parts = list(activities)
    requests = sorted((each for part in parts for each in part.requests), key=lambda each: each.at, reverse=True)
    operations = sorted((each for part in parts for each in part.operations), key=lambda each: each.at, reverse=True)
    return RecentActivity(
        requests[:REQUESTS_MAX],
        operations[:OPERATIONS_MAX],
        slowest(each for part in parts for each in part.slowest),
    )
