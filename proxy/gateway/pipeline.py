"""Pipeline of queries, from top to bottom:

    own flights → begin → plan → send → map → finish

`resolve` joins the flights of this process, and begins those that there are not. What begins in the same turn of the
event loop is looked up and reserved in one transaction, and what one operation fetches is booked in one. All of it runs
in tasks of its own, so that a client that leaves loses nothing that was paid for. Nothing that can be billed is sent
without a committed reservation, and one reservation covers one send; results are committed with their booking before
they leave, or, where the store cannot take them, while the reservation counts in full: then `finish` is repeated, and
until it is taken nothing is begun that costs parts.
"""

import asyncio
import contextlib
from collections.abc import Collection, Coroutine, Sequence
from typing import Any

from proxy import errors
from proxy.gateway import results
from proxy.gateway.applications import Application, Client
from proxy.gateway.batches import Batch, Batches, Send
from proxy.gateway.bookings import Booking
from proxy.gateway.failures import is_outage, may_be_billed
from proxy.gateway.features import Features
from proxy.gateway.flights import NO_FEATURES, Again, Flight, landed
from proxy.gateway.lookups import Lookups
from proxy.gateway.process import ProcessState
from proxy.gateway.results import Answer
from proxy.planning import fetches
from proxy.planning.fetches import Fetch, Fetched
from proxy.planning.queries import PassedOn, Query
from proxy.store import protocol
from proxy.store.protocol import Begin, Outcome, Result, Want
from proxy.upstream.classify import SERVICE

RESERVATION_SECONDS = 5.0  # for which a reservation lasts longer than what it is for
READ_SECONDS = 0.02  # between two looks for what other processes are fetching
TURNS_MAX = 8  # in which flights are gathered: under load every turn may bring more


class Pipeline:
    """Resolves queries. `address` is that of the upstream; an operation may take `seconds`."""

    def __init__(
        self,
        process: ProcessState,
        send: Send,
        features: Features,
        *,
        address: str,
        seconds: float,
        connections: int,
    ) -> None:
        self._send_once = send
        self._features = features
        lasting = seconds + RESERVATION_SECONDS
        self._lookups = Lookups(process.store, features, process.clock, process.rng, address=address, seconds=lasting)
        self._seconds = seconds
        self._clock = process.clock
        self._metrics = process.metrics
        self._flights = process.flights
        self._store = process.store
        self._batches = Batches(connections, process.metrics)
        self._exhausted = process.exhausted
        self._bookings = process.bookings
        self._gathered: list[Flight] = []
        self._busy: list[Flight] = []
        self._waiting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.has_failed = False  # a begin, since the store was seen to be writable

    @property
    def is_ready(self) -> bool:
        """Whether what costs parts can be begun."""
        return not self._bookings.is_behind

    async def refresh(self, applications: Collection[Application]) -> None:
        """Learn what other processes know of applications. At start, and once a second. Raises StoreUnavailable."""
        await self._features.refresh(applications)
        await self._exhausted.refresh([*{application.account for application in applications}])

    async def aclose(self) -> None:
        """Wait for what is under way, and until all is booked."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._bookings.aclose()

    async def quote(self, client: Client, queries: Sequence[Query]) -> list[Answer | None]:
        """Return the answers that are stored, and None for each query that would be fetched."""
        return await self._lookups.stored([(client, query) for query in queries], "hit", protocol.FRESH_SECONDS)

    async def resolve(
        self, client: Client, queries: Sequence[Query], deadline: float, *, anew: bool = False
    ) -> list[Answer]:
        """Return the answer to each query, which the client waits for until `deadline` (monotonic seconds). `anew`:
        fetch it, whatever is stored."""
        request, keys = object(), [self._lookups.key(client, query) for query in queries]
        answers: list[Answer | None] = [None] * len(queries)
        while missing := [place for place, answer in enumerate(answers) if answer is None]:
            flights, own = self._join(client, queries, keys, missing, request, anew=anew)
            await landed(flights.values(), deadline - self._clock.monotonic())
            for place, flight in flights.items():
                answers[place] = flight.answer(keys[place], queries[place], client, is_own=place in own)
            if self._clock.monotonic() >= deadline:
                late = [place for place, answer in enumerate(answers) if answer is None]
                stale = (
                    [None] * len(late)
                    if anew
                    else await self._lookups.stale([(client, queries[each]) for each in late])
                )
                error = errors.DeadlineExceeded("the time limit of the request has passed", may_be_billed=True)
                for place, answer in zip(late, stale, strict=True):
                    answers[place] = answer or Answer(None, error)
        return [answer for answer in answers if answer is not None]

    def _join(
        self,
        client: Client,
        queries: Sequence[Query],
        keys: Sequence[tuple[str, str]],
        missing: Sequence[int],
        request: object,
        *,
        anew: bool,
    ) -> tuple[dict[int, Flight], set[int]]:
        """Return the flight that each query is to wait for, and the places of those that have begun one.

        A number with its maker waits for the same number alone, whose result may be its own.
        """
        flights: dict[int, Flight] = {}
        own: set[int] = set()
        for place in sorted(missing, key=lambda each: queries[each].general is not None):
            key, query = keys[place], queries[place]
            general = self._flights.under_way((key[0], query.general)) if query.general else None
            flight = general or self._flights.find(key, query)
            if flight is None:
                flight = Flight(key, query, client, request, anew=anew)
                self._flights.add(flight)
                own.add(place)
            flights[place] = flight
        self._start([flights[place] for place in own])
        return flights, own

    def _start(self, flights: Sequence[Flight]) -> None:
        """Begin flights, with all others that begin in these turns of the event loop."""
        if flights and not self._gathered:
            self._spawn(self._begin(), self._gathered)
        self._gathered += flights

    def _spawn(self, work: Coroutine[Any, Any, None], flights: list[Flight]) -> asyncio.Task[None]:
        """Do work in a task of its own, which ends all flights if it fails."""
        task = asyncio.create_task(self._guarded(work, flights), name="flights")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None], flights: list[Flight]) -> None:
        try:
            await work
        except (Exception, asyncio.CancelledError) as error:
            failed = [*flights]
            flights.clear()
            await self._bookings.book([Booking(each, uncertain=each.parts) for each in failed])
            if isinstance(error, errors.BridgeError):
                self._end(failed, Answer(None, error))
                return
            self._end(failed, Answer(None, errors.ServerError("internal error")))
            raise

    async def _begin(self) -> None:
        """Reserve what has gathered. The first operations of an application have one query each."""
        size = 0
        for _ in range(TURNS_MAX):
            if size == len(self._gathered):
                break
            size = len(self._gathered)
            await asyncio.sleep(0)
        flights, self._gathered = self._gathered, []
        first: dict[asyncio.Lock, list[Flight]] = {}
        for flight in [*flights]:
            lock = None if flight.apart or flight.query.passed_on else self._features.first(flight.client.application)
            if lock is not None:
                flights.remove(flight)
                first.setdefault(lock, []).append(flight)
        for lock, some in first.items():
            self._spawn(self._find_features(lock, some), some)
        await self._reserve(flights)

    async def _find_features(self, lock: asyncio.Lock, flights: list[Flight]) -> None:
        """Fetch for one flight alone, while the features of its application are not known; then begin the others."""
        application = flights[0].client.application
        async with lock:
            # Another process may have been first.
            await self._learn(self._features.refresh((application,)))
            if self._features.first(application):
                flights[0].apart = object()
                await self._reserve(flights[:1])
                await landed(flights[:1])
        self._start([flight for flight in flights if flight.outcome is None])

    async def _reserve(self, flights: Sequence[Flight]) -> None:
        """Look up what is stored, and reserve what is not: own work first, then what others are fetching."""
        await self._lookups.place(flights)
        now, until = self._clock.now(), self._clock.monotonic() + self._seconds
        begun: list[tuple[Flight, Begin]] = []
        blocked: list[tuple[Flight, Begin]] = []
        for flight in flights:
            application = flight.client.application
            flight.begun, flight.until, flight.wanted = now, until, self._features.selected(application)
            begin = self._lookups.begin(flight.client, flight.query, flight.wanted, anew=flight.anew)
            if self._blocked(application):
                blocked.append((flight, begin))
            else:
                flight.begin = begin
                begun.append((flight, begin))
        try:
            outcomes = await self._store.begin([begin for _, begin in begun]) if begun else []
            outcomes += await self._store.quote([begin for _, begin in blocked]) if blocked else []
        except errors.StoreUnavailable:
            self.has_failed = True
            await self._bookings.book([Booking(each) for each, _ in begun])  # reserved perhaps, without a confirmation
            raise
        for (flight, begin), outcome in zip(begun + blocked, outcomes, strict=True):
            if isinstance(outcome, protocol.Reserved) and flight.begin is not None:
                self._add(flight, outcome.stored)
            else:
                flight.begin = None
                self._take(flight, begin.want, outcome)

    def _add(self, flight: Flight, stored: Result | None) -> None:
        """Add a flight that is reserved to a batch."""
        application = flight.client.application
        flight.fetch = Fetch(flight.query, stored)
        flight.selected = self._features.fetched(application, flight.without)
        batch = self._batches.add(flight, self._features.parts_max(application))
        if batch is not None:
            self._spawn(self._send(batch), batch.flights)

    def _take(self, flight: Flight, want: Want, outcome: Outcome) -> None:
        """End a flight that is not reserved, or let it wait for another process."""
        client = flight.client
        if isinstance(outcome, protocol.Found):
            self._end([flight], Answer(outcome.result, first=flight.query.first, features=flight.wanted.features))
        elif isinstance(outcome, protocol.Busy):
            flight.anew = False  # what is stored then is new
            self._busy.append(flight)
            if self._waiting is None or self._waiting.done():
                self._waiting = self._spawn(self._wait(), self._busy)
        elif isinstance(outcome, errors.StoreUnavailable):
            self._end([flight], Answer(None, outcome))
        elif blocked := self._blocked(client.application):
            self._end([flight], Again(blocked, client))
        elif isinstance(outcome, protocol.Refused):
            self._end([flight], Again(client.exceeded(outcome, want.end * want.parts, self._clock.now()), client))
        else:
            self._start([flight])  # it is blocked no more

    async def _wait(self) -> None:
        """Begin flights once more when no other process is fetching them. One read serves all that wait."""
        while self._busy:
            await asyncio.sleep(READ_SECONDS)
            waiting = [*self._busy]
            begins = [self._lookups.begin(each.client, each.query, each.wanted) for each in waiting]
            outcomes = await self._store.quote(begins)
            del self._busy[: len(waiting)]
            both = [*zip(waiting, outcomes, strict=True)]
            self._busy += [flight for flight, outcome in both if isinstance(outcome, protocol.Busy)]
            free = [flight for flight, outcome in both if not isinstance(outcome, protocol.Busy)]
            if first := [flight.client.application for flight in free if flight.apart]:
                await self._learn(self._features.refresh(first))  # the other process was first
            self._start(free)

    async def _send(self, batch: Batch) -> None:
        """Send one operation for a batch, and book what came of it."""
        async with self._batches.connection(batch):
            flights = [flight for flight in batch.flights if self._is_in_time(flight)]
            late = [flight for flight in batch.flights if flight not in flights]
            await self._bookings.book([Booking(flight) for flight in late])
            self._end(late, Again(errors.DeadlineExceeded(f"{SERVICE} was not asked in time")))
            if not flights:
                return
            application, passed_on = flights[0].client.application, flights[0].query.passed_on
            wanted = [flight.fetch for flight in flights]
            requests = len({id(flight.request) for flight in flights})
            if requests > 1:
                self._metrics.batched_requests.inc(requests)
            market = application.context.country, application.context.currency
            operation = passed_on.operation if passed_on else flights[0].selected.documents.operation(wanted, *market)
            seconds = min(flight.until for flight in flights) - self._clock.monotonic()
            failure: errors.BridgeError | None = None
            try:
                data = await self._send_once(operation, application.credentials, seconds)
                fetched = [] if passed_on else fetches.read(wanted, data)
            except errors.BridgeError as error:
                failure = error
        if failure is not None:
            await self._failed(flights, failure)
        elif passed_on:
            await self._receive(flights[0], passed_on, data)
        else:
            await self._land(flights, fetched)

    async def _land(self, flights: Sequence[Flight], fetched: Sequence[Fetched]) -> None:
        """Book what was fetched, and end flights with it. A list that has grown or moved is fetched anew."""
        application, selected = flights[0].client.application, flights[0].selected
        reported = [error for each in fetched for error in each.reported]
        lacking = self._features.named(reported, selected) if reported else NO_FEATURES
        bookings: list[Booking] = []
        ended: list[Answer | None] = []
        for flight, each in zip(flights, fetched, strict=True):
            stored = flight.fetch.stored
            # What is stored has what was wanted, perhaps no more.
            common = self._features.common(selected, flight.wanted if stored else selected, lacking)
            is_partial = self._features.is_partial(each.reported, selected) if each.reported else False
            answer, kept = results.joined(flight.query, stored, each, common.features, is_partial=is_partial)
            bookings.append(Booking(flight, each.returned, each.lost, kept, common.bits))
            ended.append(answer)
        used = sum(each.returned for each in fetched)
        self._metrics.parts.labels(application.name).inc(used)
        if used:
            # Before others find the results: they look for parts with the features that they know of.
            without, is_guess = lacking | flights[0].without, flights[0].is_guess
            await self._learn(self._features.keep(application, selected, without, is_guess=is_guess))
        await self._bookings.book(bookings)
        for booking, answer in zip(bookings, ended, strict=True):
            flight = booking.flight
            if answer is None:
                flight.spent += booking.used + booking.uncertain
                flight.anew = True
                self._start([flight])
            elif booking.results:
                flight.end(answer)  # the flight stays until its results are committed
            else:
                self._end([flight], answer)

    async def _receive(self, flight: Flight, passed_on: PassedOn, data: Any) -> None:
        """Book what an operation has returned that was passed on."""
        received = passed_on.read(data)
        used, lost = received.parts, received.lost
        # A null without an error is a part that is unknown. Where errors have left no part, all may have been billed.
        uncertain = (lost or (0 if used else flight.parts)) if received.reported else 0
        answer = results.passed_on(flight.query, received, used + uncertain)
        is_stored = used and not (answer.is_partial or passed_on.is_private)
        stored = [answer.result] if is_stored and answer.result else []
        self._metrics.parts.labels(flight.client.application.name).inc(used)
        await self._bookings.book([Booking(flight, used, uncertain, stored, flight.wanted.bits)])
        self._end([flight], answer)

    async def _failed(self, flights: Sequence[Flight], error: errors.BridgeError) -> None:
        """Book an operation without data, and end its flights, or begin them once more where that may help."""
        application, selected = flights[0].client.application, flights[0].selected
        is_billed = may_be_billed(error)
        for flight in flights:
            flight.spent += flight.parts if is_billed else 0
        await self._bookings.book([Booking(each, uncertain=each.parts if is_billed else 0) for each in flights])
        if isinstance(error, errors.QuotaExhausted):
            await self._learn(self._exhausted.mark(flights[0].client, error))
        elif isinstance(error, errors.DeadlineExceeded) and not error.may_be_billed:
            self._end(flights, Again(error))
            return
        elif isinstance(error, errors.OversizedOperation) and len(flights) > 1:
            parts = sum(flight.fetch.limit for flight in flights)
            await self._learn(self._features.keep_parts_max(application, max(1, parts // 2)))
            self._start(flights)
            return
        elif isinstance(error, errors.QueryRefused) and not flights[0].query.passed_on:
            without = flights[0].without
            # A null takes the fields around it along, so that another attempt may name further features.
            named = self._features.named(error.reported, selected)
            lacking = named or (NO_FEATURES if without else selected.features)
            # The query of another caller may be the reason.
            is_mixed = not (named or without) and len({id(flight.request) for flight in flights}) > 1
            if is_mixed or lacking:
                for flight in flights:
                    flight.apart = flight.request if is_mixed else error
                    if not is_mixed:
                        flight.without, flight.is_guess = without | lacking, not named
                self._start(flights)
                return
        is_stale = is_outage(error)
        asked = [(flight.client, flight.query) for flight in flights]
        stale = await self._lookups.stale(asked) if is_stale else [None] * len(flights)
        for flight, answer in zip(flights, stale, strict=True):
            self._end([flight], answer if answer and not flight.anew else Answer(None, error, "miss"))

    def _is_in_time(self, flight: Flight) -> bool:
        """Return whether a reservation has not ended, and counts in the periods of now."""
        is_same_day = flight.begun // protocol.DAY_SECONDS == self._clock.now() // protocol.DAY_SECONDS
        return is_same_day and flight.until > self._clock.monotonic()

    def _blocked(self, application: Application) -> errors.BridgeError | None:
        """Return why nothing is begun that costs parts."""
        if self._bookings.is_behind:
            return errors.StoreUnavailable("usage of parts cannot be written at the moment")
        return self._exhausted.error(application)

    async def _learn(self, keeping: Coroutine[Any, Any, None]) -> None:
        """Keep what was learned for other processes, too, if the store takes it."""
        with contextlib.suppress(errors.StoreUnavailable):
            await keeping

    def _end(self, flights: Sequence[Flight], outcome: Answer | Again) -> None:
        for flight in flights:
            if flight.outcome is None:
                self._flights.remove(flight)
                flight.end(outcome)
