"""Pipeline of queries, from top to bottom:

    own flights → begin → plan → send → map → finish

`resolve` joins the flights of this process, and begins those that there are not. What begins in the same turn of the
event loop is looked up and reserved in one transaction, and what one operation fetches is booked in one. All of it runs
in tasks of its own, so that a client that leaves loses nothing that was paid for. Nothing that can be billed is sent
without a committed reservation, and one reservation covers one send; results are committed with their booking before
they leave, or, where the store cannot take them, while the reservation counts in full: then `finish` is repeated, and
until it is taken nothing is begun that costs parts.
"""

from collections.abc import Collection, Sequence

from proxy import errors
from proxy.gateway import results
from proxy.gateway.applications import Application, Client
from proxy.gateway.batches import Batch, Batches, Send
from proxy.gateway.bookings import Booking
from proxy.gateway.failures import Failures
from proxy.gateway.features import Features
from proxy.gateway.flights import NO_FEATURES, Again, Flight, wait_for
from proxy.gateway.gathering import Gathering, Tasks
from proxy.gateway.lookups import Lookups
from proxy.gateway.process import ProcessState
from proxy.gateway.results import Answer
from proxy.planning import fetches
from proxy.planning.fetches import Fetch, Fetched
from proxy.planning.queries import Query, Received
from proxy.store import protocol
from proxy.store.protocol import Begin, Outcome, Result, Want
from proxy.upstream.classify import SERVICE

RESERVATION_SECONDS = 5.0  # for which a reservation lasts longer than what it is for


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
        self._failures = Failures(process, features, self._lookups)
        self._tasks = Tasks(process.flights, process.bookings)
        self._gathering = Gathering(self._tasks, features, self._lookups, self._reserve)
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
        await self._tasks.aclose()
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
            await wait_for(flights.values(), deadline - self._clock.monotonic())
            for place, flight in flights.items():
                answers[place] = flight.answer(keys[place], queries[place], client, is_own=place in own)
            if self._clock.monotonic() >= deadline:
                late = [place for place, answer in enumerate(answers) if answer is None]
                asked = [(client, queries[place]) for place in late]
                stale = [None] * len(late) if anew else await self._lookups.stale(asked)
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
                flight = Flight(key, query, client, request, anew)
                self._flights.add(flight)
                own.add(place)
            flights[place] = flight
        self._gathering.start([flights[place] for place in own])
        return flights, own

    async def _reserve(self, flights: Sequence[Flight]) -> None:
        """Look up what is stored, and reserve what is not: own work first, then what others are fetching."""
        await self._lookups.place(flights)
        now, until = self._clock.now(), self._clock.monotonic() + self._seconds
        begun: list[tuple[Flight, Begin]] = []
        blocked: list[tuple[Flight, Begin]] = []
        for flight in flights:
            application = flight.client.application
            flight.begun, flight.until, flight.wanted = now, until, self._features.tier(application).selected
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
        tier = self._features.tier(application)
        flight.selected = tier.fetched(flight.without, self._clock.now())
        batch = self._batches.add(flight, tier.parts_max)
        if batch is not None:
            self._tasks.spawn(self._send(batch), batch.flights)

    def _take(self, flight: Flight, want: Want, outcome: Outcome) -> None:
        """End a flight that is not reserved, or let it wait for another process."""
        client = flight.client
        if isinstance(outcome, protocol.Found):
            answer = Answer(outcome.result, first=flight.query.first, features=flight.wanted.features)
            self._flights.end([flight], answer)
        elif isinstance(outcome, protocol.Busy):
            self._gathering.wait(flight)
        elif isinstance(outcome, errors.StoreUnavailable):
            self._flights.end([flight], Answer(None, outcome))
        elif blocked := self._blocked(client.application):
            self._flights.end([flight], Again(blocked, client))
        elif isinstance(outcome, protocol.Refused):
            refusal = client.exceeded(outcome, want.end * want.parts, self._clock.now())
            self._flights.end([flight], Again(refusal, client))
        else:
            self._gathering.start([flight])  # it is blocked no more

    async def _send(self, batch: Batch) -> None:
        """Send one operation for a batch, and book what came of it."""
        async with self._batches.connections:
            self._batches.close(batch)
            flights = [flight for flight in batch.flights if self._is_in_time(flight)]
            if late := [flight for flight in batch.flights if flight not in flights]:
                await self._bookings.book([Booking(flight) for flight in late])
                self._flights.end(late, Again(errors.DeadlineExceeded(f"{SERVICE} was not asked in time")))
            if not flights:
                return
            application, passed_on = flights[0].client.application, flights[0].query.passed_on
            wanted = [flight.fetch for flight in flights]
            requests = len({id(flight.request) for flight in flights})
            if requests > 1:
                self._metrics.batched_requests.inc(by=requests)
            market = application.context.country, application.context.currency
            operation = passed_on.operation if passed_on else flights[0].selected.documents.operation(wanted, *market)
            fetched: Sequence[Fetched] | Received | errors.BridgeError
            seconds = min(flight.until for flight in flights) - self._clock.monotonic()
            try:
                data = await self._send_once(operation, application.credentials, seconds)
                fetched = passed_on.read(data) if passed_on else fetches.read(wanted, data)
            except errors.BridgeError as error:
                fetched = error
        if isinstance(fetched, errors.BridgeError):
            self._gathering.start(await self._failures.end(flights, fetched))
        elif isinstance(fetched, Received):
            await self._book_passed_on(flights[0], fetched)
        else:
            await self._book(flights, fetched)

    async def _book(self, flights: Sequence[Flight], fetched: Sequence[Fetched]) -> None:
        """Book what was fetched, and end flights with it. A list that has grown or moved is fetched anew."""
        application, selected = flights[0].client.application, flights[0].selected
        reported = [error for each in fetched for error in each.reported]
        lacking = self._features.named(reported, selected) if reported else NO_FEATURES
        used = sum(each.returned for each in fetched)
        self._metrics.parts.inc(application.name, by=used)
        if used:
            # Before others find the results: they look for parts with the features that they know of.
            without, is_guess = lacking | flights[0].without, flights[0].is_guess
            await self._features.keep(application, selected, without, is_guess=is_guess)
        ends = []
        for flight, each in zip(flights, fetched, strict=True):
            stored = flight.fetch.stored
            # What is stored has what was wanted, perhaps no more.
            common = self._features.common(selected, flight.wanted if stored else selected, lacking)
            is_partial = self._features.is_partial(each.reported, selected) if each.reported else False
            joined = results.joined(flight.query, stored, each, common.features, is_partial=is_partial)
            ends.append((flight, each, joined, common.bits))
        await self._bookings.book(
            [Booking(flight, each.returned, each.lost, joined.results, bits) for flight, each, joined, bits in ends]
        )
        for flight, each, (answer, stored_as), _ in ends:
            if answer is None:
                flight.spent += each.returned + each.lost
                flight.anew = True
                self._gathering.start([flight])
            elif stored_as:
                flight.end(answer)  # the flight stays until its results are committed
            else:
                self._flights.end([flight], answer)

    async def _book_passed_on(self, flight: Flight, received: Received) -> None:
        """Book what an operation has returned that was passed on."""
        used, lost = received.parts, received.lost
        # A null without an error is a part that is unknown. Where errors have left no part, all may have been billed.
        uncertain = (lost or (0 if used else flight.parts)) if received.reported else 0
        answer = Answer.passed_on(flight.query, received, used + uncertain)
        is_private = flight.query.passed_on is None or flight.query.passed_on.is_private
        is_stored = used and not (answer.is_partial or is_private)
        stored = [answer.result] if is_stored and answer.result else []
        self._metrics.parts.inc(flight.client.application.name, by=used)
        await self._bookings.book([Booking(flight, used, uncertain, stored, flight.wanted.bits)])
        self._flights.end([flight], answer)

    def _is_in_time(self, flight: Flight) -> bool:
        """Return whether a reservation has not ended, and counts in the periods of now."""
        is_same_day = flight.begun // protocol.DAY_SECONDS == self._clock.now() // protocol.DAY_SECONDS
        return is_same_day and flight.until > self._clock.monotonic()

    def _blocked(self, application: Application) -> errors.BridgeError | None:
        """Return why nothing is begun that costs parts."""
        if self._bookings.is_behind:
            return errors.StoreUnavailable("usage of parts cannot be written at the moment")
        return self._exhausted.error(application)
