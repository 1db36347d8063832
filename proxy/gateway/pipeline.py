"""Pipeline of queries, from top to bottom:

    own flights → begin → plan → send → map → finish

`resolve` joins the flights of this process, and begins those that there are not. What is begun runs in a task of its
own, so that a client that leaves loses nothing that was paid for. Nothing that can be billed is sent without a
committed reservation, and one reservation covers one send; results are committed with their booking before they leave,
or, where the store cannot take them, while the reservation counts in full: then `finish` is repeated, and until it is
taken nothing is begun that costs parts.
"""

import asyncio
import contextlib
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, NamedTuple

from proxy import errors
from proxy.gateway.applications import Application, Client
from proxy.gateway.batches import Batches, Reserved, Send, Sent
from proxy.gateway.bookings import Booking
from proxy.gateway.features import Features, Selected
from proxy.gateway.flights import Again, Flight
from proxy.gateway.lookups import Lookups
from proxy.gateway.passing_on import PassingOn
from proxy.gateway.process import ProcessState
from proxy.gateway.results import Answer, joined
from proxy.gateway.turns import Gathered
from proxy.planning import queries as queries_
from proxy.planning.fetches import Fetch
from proxy.planning.queries import Query
from proxy.store import protocol
from proxy.store.protocol import Begin, Outcome

NO_FEATURES: frozenset[str] = frozenset()
RESERVATION_SECONDS = 5.0  # for which a reservation lasts longer than what it is for


class Work(NamedTuple):
    """Flights of a client whose queries fit in one operation, and how they are to be fetched: without others in the
    operation; for the second time, without some features, which are a guess where the errors name none; as whole lists,
    whatever is stored of them."""

    client: Client
    flights: Sequence[Flight]
    alone: bool = False
    without: frozenset[str] = frozenset()
    is_guess: bool = False
    anew: bool = False


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
        self._features = features
        lasting = seconds + RESERVATION_SECONDS
        self._lookups = Lookups(process.store, features, process.clock, process.rng, address=address, seconds=lasting)
        self._seconds = seconds
        self._clock = process.clock
        self._metrics = process.metrics
        self._flights = process.flights
        self._batches = Batches(send, process.clock, connections, process.metrics)
        self._exhausted = process.exhausted
        self._bookings = process.bookings
        self._waiting = process.waiting
        self._passing_on = PassingOn(self._batches, self._lookups, process)
        self._begin: Gathered[Begin, list[Outcome]] = Gathered("begin", process.store.begin)
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
        return await self._lookups.stored(client, queries, "hit", protocol.FRESH_SECONDS)

    async def resolve(
        self, client: Client, queries: Sequence[Query], deadline: float, *, anew: bool = False
    ) -> list[Answer]:
        """Return the answer to each query, which the client waits for until `deadline` (monotonic seconds). `anew`:
        fetch it, whatever is stored."""
        answers: list[Answer | None] = [None] * len(queries)
        while missing := {place: queries[place] for place, answer in enumerate(answers) if answer is None}:
            flights, own = self._join(client, missing, anew=anew)
            seconds = deadline - self._clock.monotonic()
            waited, late = await asyncio.wait({each.done for each in flights.values()}, timeout=max(0.0, seconds))
            for place, flight in flights.items():
                if flight.done in waited:
                    key = self._lookups.key(client, queries[place])
                    answers[place] = flight.answer(key, queries[place], client, is_own=place in own)
            if late or self._clock.monotonic() >= deadline:
                error = errors.DeadlineExceeded("the time limit of the request has passed", may_be_billed=True)
                unanswered = [place for place, answer in enumerate(answers) if answer is None]
                late_queries = [queries[place] for place in unanswered]
                stale = [None] * len(late_queries) if anew else await self._lookups.stale(client, late_queries)
                for place, answer in zip(unanswered, stale, strict=True):
                    answers[place] = answer or Answer(None, error)
        return [answer for answer in answers if answer is not None]

    def _join(self, client: Client, queries: dict[int, Query], *, anew: bool) -> tuple[dict[int, Flight], set[int]]:
        """Return the flight that each query is to wait for, and the places of those that have begun one.

        A number with its maker waits for the same number alone, whose result may be its own.
        """
        flights: dict[int, Flight] = {}
        own: set[int] = set()
        for place, query in sorted(queries.items(), key=lambda item: item[1].general is not None):
            key = self._lookups.key(client, query)
            general = self._flights.under_way((key[0], query.general)) if query.general else None
            flight = general or self._flights.find(key, query)
            if flight is None:
                flight = self._flights.begin(key, query, client)
                own.add(place)
            flights[place] = flight
        self._start(Work(client, [flight for place, flight in flights.items() if place in own], anew=anew))
        return flights, own

    def _start(self, work: Work) -> None:
        """Begin flights, each group that fits in an operation in a task of its own."""
        by_key = {id(flight.query): flight for flight in work.flights}
        parts_max = self._features.parts_max(work.client.application)
        for group in queries_.grouped([flight.query for flight in work.flights], parts_max):
            self._spawn(self._run(work._replace(flights=[by_key[id(query)] for query in group])))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="flight")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, work: Work, busy: Begin | None = None) -> None:
        """End all flights, whatever happens, after what was `busy`: what is stored then is new. The first operations of
        an application have one query each."""
        flights = work.flights
        try:
            if busy is not None:
                await self._waiting.until_free(busy)
            is_known = any(flight.query.passed_on for flight in flights)
            while work.flights and not is_known and (lock := self._features.first(work.client.application)):
                async with lock:
                    # Another process may have been first.
                    await self._learn(self._features.refresh((work.client.application,)))
                    if self._features.first(work.client.application):
                        first, work = work.flights[:1], work._replace(flights=work.flights[1:])
                        await self._reserve(work._replace(flights=first, alone=True))
            if work.flights:
                await self._reserve(work)
        except errors.BridgeError as error:
            self._end(flights, Answer(None, error))
        except BaseException:
            self._end(flights, Answer(None, errors.ServerError("internal error")))
            raise

    async def _reserve(self, work: Work) -> None:
        """Look up what is stored, and fetch what is not: own work first, then what others are fetching."""
        client = work.client
        begun, until = self._clock.now(), self._clock.monotonic() + self._seconds
        wanted = self._features.selected(client.application)
        begin = self._lookups.begin(client, [flight.query for flight in work.flights], wanted, anew=work.anew)
        begin = await self._lookups.placed(work.flights, begin, anew=work.anew)
        blocked = self._blocked(client.application)
        try:
            outcomes = await (self._lookups.quote(begin) if blocked else self._begin(begin))
        except errors.StoreUnavailable:
            self.has_failed = True
            if not blocked:  # it may have been reserved, without its confirmation
                await self._bookings.book(Booking(client, begin))
            raise
        reserved: list[tuple[Flight, Fetch]] = []
        for flight, want, outcome in zip(work.flights, begin.wants, outcomes, strict=True):
            if isinstance(outcome, protocol.Found):
                answer = Answer(outcome.result, first=flight.query.first, features=wanted.features)
                self._end([flight], answer)
            elif isinstance(outcome, protocol.Busy):
                one = begin._replace(id="", wants=[want])  # with its id, a free key would be busy until its end
                self._spawn(self._run(work._replace(flights=[flight], anew=False), one))
            elif isinstance(outcome, errors.StoreUnavailable):
                self._end([flight], Answer(None, outcome))
            elif blocked:
                self._end([flight], Again(blocked, client))
            elif isinstance(outcome, protocol.Refused):
                refusal = client.exceeded(outcome, want.end * want.parts, self._clock.now())
                self._end([flight], Again(refusal, client))
            else:
                reserved.append((flight, Fetch(flight.query, outcome.stored)))
        if reserved:
            selected = self._features.fetched(client.application, work.without)
            unit = Reserved(client.application, selected, [fetch for _, fetch in reserved], begun, until)
            await self._fetch(work._replace(flights=[flight for flight, _ in reserved]), begin, wanted, unit)

    async def _fetch(self, work: Work, begin: Begin, wanted: Selected, unit: Reserved) -> None:
        """Send one operation for what is reserved, and book what came of it."""
        client, application, selected = work.client, unit.application, unit.selected
        if passed_on := unit.fetches[0].query.passed_on:
            self._end(work.flights, await self._passing_on.fetch(client, begin, work.flights[0], unit, passed_on))
            return
        try:
            sent = await self._batches.send(unit, self._features.parts_max(application), alone=work.alone)
        except BaseException:
            await self._bookings.book(Booking(client, begin, uncertain=unit.parts))
            raise
        if sent.error is not None:
            await self._failed(work, begin, unit, sent)
            return
        beside = [error for each in sent.fetched for error in each.reported]
        lacking = self._features.named(beside, selected)
        # What is stored has what was wanted, perhaps no more.
        other = wanted if any(each.stored for each in unit.fetches) else selected
        common = self._features.common(selected, other, lacking)
        ended = [
            joined(
                fetch.query,
                fetch.stored,
                each,
                common.features,
                is_partial=self._features.is_partial(each.reported, selected),
            )
            for fetch, each in zip(unit.fetches, sent.fetched, strict=True)
        ]
        used, lost = sum(each.returned for each in sent.fetched), sum(each.lost for each in sent.fetched)
        self._metrics.parts.labels(application.name).inc(used)
        if used:
            # Before others find the results: they look for parts with the features that they know of.
            keeping = self._features.keep(application, selected, lacking | work.without, is_guess=work.is_guess)
            await self._learn(keeping)
        results = [result for each in ended for result in each.results]
        landed = [(flight, each.answer) for flight, each in zip(work.flights, ended, strict=True) if each.answer]
        moved: list[Flight] = []
        for flight, fetched, each in zip(work.flights, sent.fetched, ended, strict=True):
            if each.answer is None:
                flight.spent += fetched.returned + fetched.lost
                moved.append(flight)
        begin = begin._replace(features=common.bits)
        await self._bookings.book(Booking(client, begin, used, lost, results, [flight for flight, _ in landed]))
        for flight, answer in landed:
            flight.end(answer)
        if moved:
            await self._reserve(work._replace(flights=moved, anew=True))

    async def _failed(self, work: Work, begin: Begin, unit: Reserved, sent: Sent) -> None:
        """Book an operation without data, and end its flights, or begin them once more where that may help."""
        error, application, selected = sent.error, work.client.application, unit.selected
        assert error is not None  # noqa: S101 - the caller has looked
        await self._bookings.book(Booking(work.client, begin, uncertain=unit.parts if sent.may_be_billed else 0))
        if sent.may_be_billed:
            for flight, fetch in zip(work.flights, unit.fetches, strict=True):
                flight.spent += fetch.limit
        if isinstance(error, errors.QuotaExhausted):
            await self._learn(self._exhausted.mark(work.client, error))
        elif isinstance(error, errors.OversizedOperation) and sent.queries > 1:
            await self._learn(self._features.keep_parts_max(application, max(1, sent.parts // 2)))
            self._start(work)
            return
        elif isinstance(error, errors.QueryRefused):
            # A null takes the fields around it along, so that another attempt may name further features.
            named = self._features.named(error.reported, selected)
            if not (named or work.without) and sent.reservations > 1:
                # The query of another caller may be the reason.
                await self._reserve(work._replace(alone=True))
                return
            if without := named or (NO_FEATURES if work.without else selected.features):
                without |= work.without
                await self._reserve(work._replace(alone=True, without=without, is_guess=not named))
                return
        elif isinstance(error, errors.DeadlineExceeded) and not error.may_be_billed:
            self._end(work.flights, Again(error))
            return
        queries = [flight.query for flight in work.flights]
        is_stale = sent.is_outage and not work.anew
        stale = await self._lookups.stale(work.client, queries) if is_stale else [None] * len(queries)
        for flight, answer in zip(work.flights, stale, strict=True):
            self._end([flight], answer or Answer(None, error, "miss"))

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
            if not flight.done.done():
                self._flights.remove(flight)
                flight.end(outcome)
