"""Operations: what is reserved waits for a connection to the upstream, is sent together with what fetches by the same
document, and is booked with what came of it.

Nothing waits on a clock: what waits is open for more as long as the upstream has all the connections that it may have.
Results are committed with their booking before they leave, or, where the store cannot take them, while the reservation
counts in full: then `finish` is repeated until it is taken.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from contextlib import suppress
from typing import Any

import structlog

from proxy import errors
from proxy.gateway.applications import Client, periods
from proxy.gateway.features import GUESS_SECONDS, Features
from proxy.gateway.flights import NO_FEATURES, Again, Answer, Flight, joined
from proxy.gateway.process import Booking, ProcessState
from proxy.planning import queries as planned
from proxy.planning.queries import Fetched, Query, Received
from proxy.store.protocol import DAY_SECONDS, Finish, Result
from proxy.upstream.classify import SERVICE
from proxy.upstream.sending import Send

REPEAT_SECONDS = 0.5  # between two attempts to write what the store has not taken

log = structlog.get_logger()


class Operations:
    """Sends what is reserved, over so many `connections`. `start` begins flights once more; `stored` returns stale
    answers to queries, as far as there are any. `has_failed`: the store, since it was seen to be writable."""

    def __init__(
        self,
        process: ProcessState,
        features: Features,
        send: Send,
        *,
        connections: int,
        start: Callable[[Sequence[Flight]], None],
        stored: Callable[[Client, Sequence[Query]], Awaitable[list[Answer | None]]],
    ) -> None:
        self._process, self._features, self._send_once = process, features, send
        self._start, self._stored = start, stored
        self._clock, self._metrics, self._flights = process.clock, process.metrics, process.flights
        self._connections = asyncio.Semaphore(connections)
        self._waiting: dict[Hashable, list[Flight]] = {}  # for a connection, by what one operation has in common
        self._tasks: set[asyncio.Task[None]] = set()
        self.has_failed = False

    def spawn(self, work: Coroutine[Any, Any, None], flights: list[Flight]) -> None:
        """Guard work in a task of its own, so that a client that leaves loses nothing that was paid for."""
        task = asyncio.create_task(self._guard(work, flights), name="flights")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Wait for what is under way, and until all is booked."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._process.aclose()

    async def send(self, flights: Sequence[Flight]) -> None:
        """Let flights that are reserved wait for a connection, with others of their account and market that have the
        same features and root field. A search, or what is passed on, is alone."""
        new: list[Hashable] = []
        for flight in flights:
            query, passed_on = flight.query, flight.query.passed_on
            flight.selected = flight.tier.fetched(flight.without, self._clock.now())
            flight.parts = flight.fetch.limit if passed_on is None else passed_on.operation.parts_max
            key: Hashable = flight
            if query.operation is not None:
                application = flight.client.application
                market = application.context.country, application.context.currency
                key = application.account, *market, flight.selected.bits, query.operation, flight.apart
            if key not in self._waiting:
                self._waiting[key] = []
                new.append(key)
            self._waiting[key].append(flight)
        for key in new[1:]:
            self.spawn(self._send(key, self._waiting[key]), self._waiting[key])
        for key in new[:1]:  # needs no other task
            await self._guard(self._send(key, self._waiting[key]), self._waiting[key])

    async def _guard(self, work: Coroutine[Any, Any, None], flights: list[Flight]) -> None:
        """Do work; if it fails, the flights are booked, whatever they are reserved for, and end."""
        try:
            await work
        except (Exception, asyncio.CancelledError) as error:
            failed = [*flights]
            flights.clear()
            await self._commit([self._booking(each, uncertain=each.parts) for each in failed if each.is_reserved])
            if isinstance(error, errors.BridgeError):
                self.has_failed = True
                self._flights.end(failed, Answer(None, error))
                return
            self._flights.end(failed, Answer(None, errors.ServerError("internal error")))
            raise

    async def _send(self, key: Hashable, flights: list[Flight]) -> None:
        """Send one operation for flights that wait, and book what came of it. What it cannot carry waits for the next
        connection."""
        async with self._connections:
            del self._waiting[key]
            number = planned.fitting([flight.fetch for flight in flights], flights[0].tier.parts_max)
            if rest := flights[number:]:
                del flights[number:]
                self._waiting[key] = rest
                self.spawn(self._send(key, rest), rest)
            # Reservations must not have ended, and must count in the periods of now.
            day, now = self._clock.now() // DAY_SECONDS, self._clock.monotonic()
            if late := [each for each in flights if each.until <= now or each.begun // DAY_SECONDS != day]:
                await self._commit([self._booking(flight) for flight in late])
                self._flights.end(late, Again(errors.DeadlineExceeded(f"{SERVICE} was not asked in time")))
                flights[:] = [flight for flight in flights if flight.outcome is None]
            if not flights:
                return
            application, passed_on = flights[0].client.application, flights[0].query.passed_on
            wanted, market = [flight.fetch for flight in flights], application.context
            if passed_on:
                operation = passed_on.operation
            else:
                operation = planned.operation(flights[0].selected.documents, wanted, market.country, market.currency)
            seconds = min(flight.until for flight in flights) - self._clock.monotonic()
            fetched: Sequence[Fetched] | Received | errors.BridgeError
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
        tier, selected, named = flights[0].tier, flights[0].selected, self._features.named
        reported = [error for each in fetched for error in each.reported]
        lacking = named(reported, selected) if reported else NO_FEATURES
        without, used = lacking | flights[0].without, sum(each.returned for each in fetched)
        self._metrics.parts.inc(flights[0].client.application.name, by=used)
        if used and (without or tier.shown is None or tier.lacking & selected.features):
            # Before others find the results: they look for parts with the features that they know of.
            await self._features.keep(tier, selected, without, is_guess=flights[0].is_guess)
        shown = self._features.select(selected.features - lacking) if lacking else selected
        answers, bookings = [], []
        for flight, each in zip(flights, fetched, strict=True):
            stored = flight.fetch.stored
            # What is stored has what was wanted, perhaps no more. Fields of features that the tier lacks are null.
            common = self._features.select(shown.features & flight.wanted.features) if stored else shown
            # Errors are about something else than features that the tier lacks.
            is_partial = any(not named([error], selected) for error in each.reported)
            answer, results = joined(flight.query, stored, each, common.features, is_partial=is_partial)
            answers.append(answer)
            bookings.append(self._booking(flight, each.returned, each.lost, results, common.bits))
        await self._commit(bookings)
        for answer, (flight, finish) in zip(answers, bookings, strict=True):
            if answer is None:
                flight.spent += finish.used + finish.uncertain
                flight.anew = True
                self._start([flight])
            else:  # it is found until its results are committed
                self._flights.end([flight], answer, stay=bool(finish.results))

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
        await self._commit([self._booking(flight, used, uncertain, stored, flight.wanted.bits)])
        self._flights.end([flight], answer)

    async def _fail(self, flights: Sequence[Flight], error: errors.BridgeError) -> None:
        """Book an operation without data, and end its flights, or begin them once more where that may help."""
        is_billed = isinstance(error, errors.ServerError) and error.may_be_billed
        if isinstance(error, errors.QueryRefused):
            is_billed, name = error.was_executed, flights[0].client.application.name
            log.warning("query refused", application=name, reason=error.message, may_be_billed=is_billed)
        for flight in flights if is_billed else ():
            flight.spent += flight.parts
        await self._commit([self._booking(each, uncertain=each.parts if is_billed else 0) for each in flights])
        # As opposed to a query that is refused, or a quota that is exhausted.
        is_outage = isinstance(error, errors.ServerError | errors.TooManyRequests)
        if isinstance(error, errors.QuotaExhausted):
            await self._process.quotas.mark_exhausted(flights[0].client, error)
        elif isinstance(error, errors.DeadlineExceeded) and not error.may_be_billed:
            self._flights.end(flights, Again(error))
            return
        elif isinstance(error, errors.OversizedOperation | errors.QueryRefused):
            is_outage = False
            if await self._is_fetched_otherwise(flights, error):
                self._start(flights)
                return
        stale: Sequence[Answer | None] = [None] * len(flights)
        if is_outage:
            stale = await self._stored(flights[0].client, [flight.query for flight in flights])
        for flight, answer in zip(flights, stale, strict=True):
            self._flights.end([flight], answer if answer and not flight.anew else Answer(None, error, "miss"))

    async def _is_fetched_otherwise(
        self, flights: Sequence[Flight], error: errors.OversizedOperation | errors.QueryRefused
    ) -> bool:
        """Let flights be fetched in smaller batches, or without the features that the errors name, or without all if
        they name none; return whether that may help."""
        without = flights[0].without
        if isinstance(error, errors.OversizedOperation):
            tier, parts_max = flights[0].tier, max(1, sum(flight.parts for flight in flights) // 2)
            if len(flights) > 1 and parts_max < tier.parts_max:
                tier.parts_max = parts_max
                log.warning("batches made smaller", application=tier.name, parts=parts_max)
                await self._features.put(tier)
            return len(flights) > 1
        if flights[0].query.passed_on:
            return False
        # A null takes the fields around it along, so that another attempt may name further features.
        named = self._features.named(error.reported, flights[0].selected)
        lacking, tier, now = named, flights[0].tier, self._clock.now()
        if not named and without:
            tier.guess_from = now + GUESS_SECONDS  # no feature was the reason
        elif not named and tier.guess_from <= now:
            lacking = flights[0].selected.features
        if not (named or without) and len({id(flight.request) for flight in flights}) > 1:
            for flight in flights:  # the query of another caller may be the reason
                flight.apart = flight.request
            return True
        for flight in flights:
            flight.apart, flight.without, flight.is_guess = error, without | lacking, not named
        return bool(lacking)

    def _booking(
        self, flight: Flight, used: int = 0, uncertain: int = 0, results: Sequence[Result] = (), features: int = 0
    ) -> Booking:
        """Return the end of a flight's reservation. `features` are the bits of those that its results have."""
        flight.is_reserved = False
        accounts = periods(flight.client.charged, self._clock.now() // DAY_SECONDS).every
        return flight, Finish(flight.begin, features, results, accounts, used, uncertain)

    async def _commit(self, bookings: Sequence[Booking]) -> None:
        """Commit bookings in one transaction, or see to it that they will be."""
        try:
            await self._finish(bookings)
        except errors.StoreUnavailable as error:
            process = self._process
            process.unfinished += [(flight, finish._replace(is_repeated=True)) for flight, finish in bookings]
            if process.repeating is None or process.repeating.done():
                log.error("usage not written", reason=str(error))
                process.repeating = asyncio.create_task(self._repeat(process.unfinished), name="finish")

    async def _finish(self, bookings: Sequence[Booking]) -> None:
        if bookings:
            await self._process.store.finish([finish for _, finish in bookings])
        day = self._clock.now() // DAY_SECONDS
        for flight, finish in bookings:
            self._process.quotas.add(periods(flight.client.charged, day).own, finish.used, finish.uncertain)
            if finish.results and self._flights.get(flight.key) is flight:
                del self._flights[flight.key]

    async def _repeat(self, unfinished: list[Booking]) -> None:
        while unfinished:
            await asyncio.sleep(REPEAT_SECONDS)
            repeated = [*unfinished]
            with suppress(errors.StoreUnavailable):
                await self._finish(repeated)
                del unfinished[: len(repeated)]
        log.info("usage written")
