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
from proxy.gateway.applications import Client
from proxy.gateway.features import Features
from proxy.gateway.flights import NO_FEATURES, Again, Answer, Flight, joined, wait_for
from proxy.gateway.gathering import Batch, Gathering, Lookups
from proxy.gateway.process import Booking, ProcessState, Tasks
from proxy.planning import queries as planned
from proxy.planning.queries import Fetched, Query, Received
from proxy.store import protocol
from proxy.upstream.classify import SERVICE
from proxy.upstream.sending import Send


class Pipeline:
    """Resolves queries. `address` is that of the upstream, which may have so many `connections`; an operation may take
    `seconds`."""

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
        self._send_once, self._features = send, features
        self._clock, self._metrics, self._flights = process.clock, process.metrics, process.flights
        self._bookings, self._quotas = process.bookings, process.quotas
        self._lookups = Lookups(process, features, address=address, seconds=seconds)
        self._tasks = Tasks(process.flights, process.bookings)
        self.aclose = self._tasks.aclose
        self.gathering = Gathering(
            process, features, self._lookups, self._tasks, self._send, connections=connections, seconds=seconds
        )

    async def refresh(self, clients: Collection[Client]) -> None:
        """Learn what other processes know of clients. At start, and once a second. Raises StoreUnavailable."""
        await self._features.refresh([client.application for client in clients])
        await self._quotas.refresh([account for client in clients for account in client.charged])

    async def quote(self, client: Client, queries: Sequence[Query]) -> list[Answer | None]:
        """Return the answers that are stored, and None for each query that would be fetched."""
        own = [query.as_list_of_its_own() if query.start > query.first else query for query in queries]
        asked = [(client, query) for query in (*queries, *own)]
        answers = await self._lookups.stored(asked, "hit", protocol.FRESH_SECONDS)
        return [whole or alone for whole, alone in zip(answers[: len(own)], answers[len(own) :], strict=True)]

    async def resolve(
        self, client: Client, queries: Sequence[Query], deadline: float, *, anew: bool = False
    ) -> list[Answer]:
        """Return the answer to each query, which the client waits for until `deadline` (monotonic seconds). `anew`:
        fetch it, whatever is stored."""
        request, tier = object(), self._features.tier(client.application)
        keys = self._lookups.keys(client, queries)
        answers: list[Answer | None] = [None] * len(queries)
        # Numbers with their makers last: they wait for the same numbers alone, whose results may be theirs.
        order = sorted(range(len(queries)), key=lambda place: queries[place].general is not None)
        while missing := [place for place in order if answers[place] is None]:
            flights: dict[int, Flight] = {}
            own: dict[int, Flight] = {}
            for place in missing:
                key, query = keys[place], queries[place]
                flight = self._flights.find(key, query)
                if flight is None:
                    fetch, selected = query.fetch(), tier.selected
                    flight = Flight(key, query, client, request, anew, tier, fetch, selected, selected)
                    self._flights[key] = own[place] = flight
                flights[place] = flight
            self.gathering.start([*own.values()])
            await wait_for(flights.values(), deadline - self._clock.monotonic())
            for place, flight in flights.items():
                answers[place] = flight.answer(keys[place], queries[place], client, is_own=place in own)
            if self._clock.monotonic() >= deadline:
                late = [place for place in order if answers[place] is None]
                asked = [(client, queries[place]) for place in late]
                stale = [None] * len(late) if anew else await self._lookups.stored(asked)
                error = errors.DeadlineExceeded("the time limit of the request has passed", may_be_billed=True)
                for place, answer in zip(late, stale, strict=True):
                    answers[place] = answer or Answer(None, error)
        return [answer for answer in answers if answer is not None]

    async def _send(self, batch: Batch) -> None:
        """Send one operation for a batch, and book what came of it."""
        async with self.gathering.connections:
            self.gathering.close(batch)
            # Reservations must not have ended, and must count in the periods of now.
            day, now = self._clock.now() // protocol.DAY_SECONDS, self._clock.monotonic()
            flights = [each for each in batch.flights if each.begun // protocol.DAY_SECONDS == day and each.until > now]
            if late := [flight for flight in batch.flights if flight not in flights]:
                await self._bookings.book([Booking(flight) for flight in late])
                self._flights.end(late, Again(errors.DeadlineExceeded(f"{SERVICE} was not asked in time")))
            if not flights:
                return
            application, passed_on = flights[0].client.application, flights[0].query.passed_on
            wanted = [flight.fetch for flight in flights]
            market = application.context.country, application.context.currency
            whole = flights[0].selected.documents
            operation = passed_on.operation if passed_on else planned.operation(whole, wanted, *market)
            fetched: Sequence[Fetched] | Received | errors.BridgeError
            seconds = min(flight.until for flight in flights) - self._clock.monotonic()
            try:
                data = await self._send_once(operation, application.credentials, seconds)
                fetched = passed_on.read(data) if passed_on else planned.read(wanted, data)
            except errors.BridgeError as error:
                fetched = error
        if isinstance(fetched, errors.BridgeError):
            await self._fail(flights, fetched)
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
            await self._features.keep(flights[0].tier, selected, without, is_guess=is_guess)
        ends = []
        for flight, each in zip(flights, fetched, strict=True):
            stored = flight.fetch.stored
            # What is stored has what was wanted, perhaps no more. Fields of features that the tier lacks are null.
            features = selected.features & flight.wanted.features if stored else selected.features
            common = self._features.select(features - lacking)
            # Errors are about something else than features that the tier lacks.
            is_partial = any(not self._features.named([error], selected) for error in each.reported)
            end = joined(flight.query, stored, each, common.features, is_partial=is_partial)
            ends.append((flight, each, end, common.bits))
        await self._bookings.book(
            [Booking(flight, each.returned, each.lost, end.results, bits) for flight, each, end, bits in ends]
        )
        for flight, each, (answer, stored_as), _ in ends:
            if answer is None:
                flight.spent += each.returned + each.lost
                flight.anew = True
                self.gathering.start([flight])
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

    async def _fail(self, flights: Sequence[Flight], error: errors.BridgeError) -> None:
        """Book an operation without data, and end its flights, or begin them once more where that may help."""
        is_billed = isinstance(error, errors.ServerError) and error.may_be_billed
        if isinstance(error, errors.QueryRefused):  # unless all its errors are of validation
            executed = [each for each in error.reported if each.path is not None]
            is_billed = any("specifiedBy" not in (each.extensions or {}) for each in executed)
        for flight in flights:
            flight.spent += flight.parts if is_billed else 0
        await self._bookings.book([Booking(each, uncertain=each.parts if is_billed else 0) for each in flights])
        # As opposed to a query that is refused, or a quota that is exhausted.
        is_outage = isinstance(error, errors.ServerError | errors.TooManyRequests)
        if isinstance(error, errors.QuotaExhausted):
            await self._quotas.mark_exhausted(flights[0].client, error)
        elif isinstance(error, errors.DeadlineExceeded) and not error.may_be_billed:
            self._flights.end(flights, Again(error))
            return
        elif isinstance(error, errors.OversizedOperation | errors.QueryRefused):
            is_outage = False
            if await self._is_fetched_otherwise(flights, error):
                self.gathering.start(flights)
                return
        asked = [(flight.client, flight.query) for flight in flights]
        stale = await self._lookups.stored(asked) if is_outage else [None] * len(flights)
        for flight, answer in zip(flights, stale, strict=True):
            self._flights.end([flight], answer if answer and not flight.anew else Answer(None, error, "miss"))

    async def _is_fetched_otherwise(
        self, flights: Sequence[Flight], error: errors.OversizedOperation | errors.QueryRefused
    ) -> bool:
        """Let flights be fetched in smaller batches, or without the features that the errors name, or without all if
        they name none; return whether that may help."""
        without = flights[0].without
        if isinstance(error, errors.OversizedOperation):
            parts = sum(flight.parts for flight in flights)
            if len(flights) > 1:
                await self._features.keep_parts_max(flights[0].tier, max(1, parts // 2))
            return len(flights) > 1
        if flights[0].query.passed_on:
            return False
        # A null takes the fields around it along, so that another attempt may name further features.
        named = self._features.named(error.reported, flights[0].selected)
        lacking = named or (NO_FEATURES if without else flights[0].selected.features)
        if not (named or without) and len({id(flight.request) for flight in flights}) > 1:
            for flight in flights:  # the query of another caller may be the reason
                flight.apart = flight.request
            return True
        for flight in flights:
            flight.apart, flight.without, flight.is_guess = error, without | lacking, not named
        return bool(lacking)
