"""From flights to operations. Those that begin in the same turns of the event loop are reserved in one transaction, and
those that fetch by the same document are sent in one operation.

Nothing waits on a clock: flights are reserved as soon as some turns have brought nothing further, and a batch is open
for others as long as the upstream has all the connections that it may have. Under load both bring many together.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy import config, errors, model
from proxy.gateway.applications import Application, Client, periods
from proxy.gateway.features import Features, Selected, Tier
from proxy.gateway.flights import Again, Answer, Flight, Source, wait_for
from proxy.gateway.process import Booking, ProcessState, Tasks
from proxy.planning.queries import Query
from proxy.store import protocol
from proxy.store.protocol import Begin, Busy, Found, Outcome, Refused, Reserved

RESERVATION_SECONDS = 5.0  # for which a reservation lasts longer than what it is for
PAUSE_TURNS = 8  # that bring nothing further: 15 µs of an idle loop; under load, 1 makes batches of 4 queries, 8 of 26
PAUSES_MAX = 4  # under load every pause may bring more
READ_SECONDS = 0.02  # between two looks for what other processes are fetching


class Lookups:
    """What the store is asked for: begins of queries to the upstream at `address`, each for an operation that may take
    `seconds`, and what is stored for queries."""

    def __init__(self, process: ProcessState, features: Features, *, address: str, seconds: float) -> None:
        self._quote, self._clock, self._rng = process.store.quote, process.clock, process.rng
        self._features, self._address, self._seconds = features, address, seconds + RESERVATION_SECONDS

    async def stored(
        self, asked: Sequence[tuple[Client, Query]], source: Source = "stale", seconds: float = protocol.STORED_SECONDS
    ) -> list[Answer | None]:
        """Return what was fetched for queries of clients within so many seconds, and nothing where the store cannot be
        read."""
        begins, wanted = [], [self._features.tier(client.application).selected for client, _ in asked]
        for (client, query), selected in zip(asked, wanted, strict=True):
            begins.append(self.begin(client, self._scope(client.application), query, selected, seconds=seconds))
        try:
            outcomes: Sequence[Outcome] = await self._quote(begins) if begins else []
        except errors.StoreUnavailable as error:
            outcomes = [error] * len(begins)
        return [
            Answer(outcome.result, None, source, query.first, selected.features) if isinstance(outcome, Found) else None
            for (_, query), selected, outcome in zip(asked, wanted, outcomes, strict=True)
        ]

    async def place(self, flights: Sequence[Flight]) -> None:
        """Give a list of its own to each flight that begins behind what is stored of its list, so that what lies
        between is not paid for, and to each of whose own list more is stored. Raises StoreUnavailable."""
        behind = [flight for flight in flights if flight.query.start > flight.query.first]
        if not behind:
            return
        both = [(flight.query, flight.query.as_list_of_its_own()) for flight in behind]
        asked = [
            self.begin(flight.client, flight.key[0], query, flight.wanted, anew=flight.anew)
            for flight, queries in zip(behind, both, strict=True)
            for query in queries
        ]
        outcomes = iter(await self._quote(asked))
        for flight, (query, own) in zip(behind, both, strict=True):
            of_whole, of_own = next(outcomes), next(outcomes)
            end, own_end = _end(query, of_whole), _end(own, of_own)
            is_whole = isinstance(of_whole, Busy) or (flight.anew and query.end <= model.PARTS_MAX)
            if own_end == query.end > end or (not is_whole and max(query.start, own_end) > end):
                flight.query = own

    def begin(
        self,
        client: Client,
        scope: str,
        query: Query,
        selected: Selected,
        *,
        seconds: float = protocol.FRESH_SECONDS,
        anew: bool = False,
    ) -> Begin:
        """Return the begin of a query, for what was fetched within so many seconds, or for nothing that is stored."""
        id, now = f"{self._rng.getrandbits(128):032x}", self._clock.now()
        fresh_from = now + 1.0 if anew else now - seconds  # nothing stored is of the future
        accounts = periods(client.charged, now // protocol.DAY_SECONDS).every
        return Begin(id, scope, selected.bits, query.want, accounts, fresh_from, self._seconds)

    def keys(self, client: Client, queries: Sequence[Query]) -> list[tuple[str, str]]:
        """Return the places of queries among the flights: their scope, and the key of their own list."""
        scope = self._scope(client.application)
        return [(scope, (query.as_list_of_its_own() if query.start else query).key) for query in queries]

    def _scope(self, application: Application) -> str:
        market = application.context.country, application.context.currency
        return application.scopes + _digest(self._address, application.account, *market, self._features.digest)


def _end(query: Query, outcome: Outcome) -> int:
    """Return the end of what is stored of a query's list, as far as it is needed."""
    if isinstance(outcome, Found):
        return query.end
    stored = getattr(outcome, "stored", None)
    return query.first + (stored.asked if stored else 0)


@functools.lru_cache(maxsize=1024)
def _digest(*texts: str) -> str:
    return config.hex_digest("\0".join(texts))[:24]  # 128 bits in all: it is in every key


@dataclass(slots=True, eq=False)
class Batch:
    """Flights of one account and market, with the same features and root field, that one operation fetches; None as its
    key: a search, or what is passed on, is alone."""

    key: Any
    flights: list[Flight] = field(default_factory=list)
    parts: int = 0
    numbers: set[str] = field(default_factory=set)


class Gathering:
    """Flights that are to begin, those that wait for another process, and batches that are open. `send` sends a batch,
    and closes it when it has one of the `connections` to the upstream; an operation may take `seconds`."""

    def __init__(
        self,
        process: ProcessState,
        features: Features,
        lookups: Lookups,
        tasks: Tasks,
        send: Callable[[Batch], Coroutine[Any, Any, None]],
        *,
        connections: int,
        seconds: float,
    ) -> None:
        self._process, self._features, self._lookups, self._tasks = process, features, lookups, tasks
        self._store, self._clock, self._flights = process.store, process.clock, process.flights
        self._send, self._seconds = send, seconds
        self.connections = asyncio.Semaphore(connections)
        self._gathered: list[Flight] = []
        self._busy: list[Flight] = []
        self._waiting: asyncio.Task[None] | None = None
        self._open: dict[Any, Batch] = {}
        self.has_failed = False  # a begin, since the store was seen to be writable

    def start(self, flights: Sequence[Flight]) -> None:
        """Begin flights, with all others that begin in these turns."""
        if flights and not self._gathered:
            self._tasks.spawn(self._begin(), self._gathered)
        self._gathered += flights

    def close(self, batch: Batch) -> None:
        """Close a batch for other flights."""
        if self._open.get(batch.key) is batch:
            del self._open[batch.key]

    async def _begin(self) -> None:
        """Reserve what has gathered. The first operations of an application have one query each."""
        for _ in range(PAUSES_MAX):
            size = len(self._gathered)
            if len(self._flights) <= size:  # no other query is under way, so that none is about to come
                break
            for _ in range(PAUSE_TURNS):
                await asyncio.sleep(0)
            if size == len(self._gathered):
                break
        flights, self._gathered = self._gathered, []
        first: dict[Tier, list[Flight]] = {}
        for flight in [*flights]:
            if not (flight.tier.is_shown or flight.apart or flight.query.passed_on):
                flights.remove(flight)
                first.setdefault(flight.tier, []).append(flight)
        for tier, some in first.items():
            self._tasks.spawn(self._find_features(tier, some), some)
        await self._reserve(flights)

    async def _find_features(self, tier: Tier, flights: list[Flight]) -> None:
        """Fetch for one flight alone, while the features of its application are not known; then begin the others."""
        async with tier.first:
            # Another process may have been first.
            await self._refresh([flights[0].client.application])
            if not tier.is_shown:
                flights[0].apart = object()
                await self._reserve(flights[:1])
                await wait_for(flights[:1])
        self.start([flight for flight in flights if flight.outcome is None])

    async def _refresh(self, applications: Iterable[Application]) -> None:
        with contextlib.suppress(errors.StoreUnavailable):
            await self._features.refresh(applications)

    async def _reserve(self, flights: list[Flight]) -> None:
        """Look up what is stored, reserve what is not, and send it: own work first, then what others are fetching."""
        now, until = self._clock.now(), self._clock.monotonic() + self._seconds
        for flight in flights:
            flight.begun, flight.until, flight.wanted = now, until, flight.tier.selected
        await self._lookups.place(flights)
        begun: list[tuple[Flight, Begin]] = []
        blocked: list[tuple[Flight, Begin]] = []
        for flight in flights:
            begin = self._lookups.begin(flight.client, flight.key[0], flight.query, flight.wanted, anew=flight.anew)
            if self._blocked(flight.client.application):
                blocked.append((flight, begin))
            else:
                flight.begin = begin
                begun.append((flight, begin))
        try:
            outcomes = await self._store.begin([begin for _, begin in begun]) if begun else []
            outcomes += await self._store.quote([begin for _, begin in blocked]) if blocked else []
        except errors.StoreUnavailable:
            self.has_failed = True
            # Reserved perhaps, without a confirmation.
            await self._process.bookings.book([Booking(each) for each, _ in begun])
            raise
        batches: list[Batch] = []
        for (flight, begin), outcome in zip(begun + blocked, outcomes, strict=True):
            if isinstance(outcome, Reserved) and flight.begin is not None:
                batches += self._add(flight, outcome)
            else:
                flight.begin = None
                self._take(flight, begin, outcome)
        flights.clear()  # each ends with its batch
        for batch in batches[1:]:
            self._tasks.spawn(self._send(batch), batch.flights)
        for batch in batches[:1]:  # needs no other task
            await self._tasks.guard(self._send(batch), batch.flights)

    def _add(self, flight: Flight, reserved: Reserved) -> list[Batch]:
        """Add a flight that is reserved to the open batch that has room for it, or to a new one, which is returned. No
        number is in it twice."""
        query, application, tier = flight.query, flight.client.application, flight.tier
        flight.fetch, flight.selected = query.fetch(reserved.stored), tier.fetched(flight.without, self._clock.now())
        key = None
        if query.operation is not None:
            market = application.context.country, application.context.currency
            key = application.account, *market, flight.selected.bits, query.operation, flight.apart
        batch, new = self._open.get(key), list[Batch]()
        if (
            batch is None
            or max(batch.parts + flight.fetch.limit, len(batch.flights) + 1) > tier.parts_max
            or not batch.numbers.isdisjoint(query.numbers)
        ):
            new = [batch := Batch(key)]
            if key:
                self._open[key] = batch
        batch.flights.append(flight)
        batch.parts += flight.fetch.limit
        batch.numbers |= query.numbers
        return new

    def _take(self, flight: Flight, begin: Begin, outcome: Outcome) -> None:
        """End a flight that is not reserved, or let it wait for another process."""
        client, want = flight.client, begin.want
        if isinstance(outcome, Found):
            answer = Answer(outcome.result, first=flight.query.first, features=flight.wanted.features)
            self._flights.end([flight], answer)
        elif isinstance(outcome, Busy):
            flight.anew = False  # what is stored when it is begun once more is new
            self._busy.append(flight)
            if self._waiting is None or self._waiting.done():
                self._waiting = self._tasks.spawn(self._wait(), self._busy)
        elif isinstance(outcome, errors.StoreUnavailable):
            self._flights.end([flight], Answer(None, outcome))
        elif blocked := self._blocked(client.application):
            self._flights.end([flight], Again(blocked, client))
        elif isinstance(outcome, Refused):
            refusal = client.exceeded(outcome, want.end * want.parts, self._clock.now())
            self._flights.end([flight], Again(refusal, client))
        else:
            self.start([flight])  # it is blocked no more

    def _blocked(self, application: Application) -> errors.BridgeError | None:
        """Return why nothing is begun that costs parts."""
        if self._process.bookings.is_behind:
            return errors.StoreUnavailable("usage of parts cannot be written at the moment")
        return self._process.quotas.refusal(application)

    async def _wait(self) -> None:
        """Begin flights once more when no other process is fetching them. One read serves all that wait."""
        while self._busy:
            await asyncio.sleep(READ_SECONDS)
            waiting = [*self._busy]
            begins = [self._lookups.begin(each.client, each.key[0], each.query, each.wanted) for each in waiting]
            both = [*zip(waiting, await self._store.quote(begins), strict=True)]
            free = [flight for flight, outcome in both if not isinstance(outcome, Busy)]
            if first := [flight.client.application for flight in free if flight.apart]:
                await self._refresh(first)  # the other process was first
            self._busy[: len(waiting)] = [flight for flight, outcome in both if isinstance(outcome, Busy)]
            self.start(free)
