"""Pipeline of queries, from top to bottom:

    own flights → begin → plan → send → map → finish

`resolve` joins the flights of this process, and begins those that there are not. What begins in the same turns of the
event loop is looked up and reserved in one transaction; what is reserved goes to operations.py. All of it runs in tasks
of its own, so that a client that leaves loses nothing that was paid for. Nothing that can be billed is sent without a
committed reservation, and one reservation covers one send. Own work first, then the wait for other processes.
"""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress

from proxy import config, errors, model
from proxy.gateway.applications import SCOPE_DIGITS, Application, Client, periods
from proxy.gateway.features import Features, Selected, Tier
from proxy.gateway.flights import Again, Answer, Flight, ResponseMetadata, Source, wait_for
from proxy.gateway.operations import Operations
from proxy.gateway.process import ProcessState
from proxy.planning.queries import Query
from proxy.store.protocol import (
    DAY_SECONDS,
    FRESH_SECONDS,
    STORED_SECONDS,
    Begin,
    Busy,
    Found,
    Outcome,
    Refused,
    Reserved,
)
from proxy.upstream.sending import Send

RESERVATION_SECONDS = 5.0  # for which a reservation lasts longer than what it is for
PAUSE_TURNS = 8  # that bring nothing further: under load, 1 makes batches of 4 queries, 8 of 26
PAUSES_MAX = 4  # under load every pause may bring more
READ_SECONDS = 0.02  # between two looks for what other processes are fetching
ANEW_SECONDS = -1.0  # within which nothing was fetched that is stored


class Pipeline:
    """Resolves queries. `address` is that of the upstream, which may have so many `connections`; a request, and each of
    its operations, may take `seconds`."""

    def __init__(
        self, process: ProcessState, send: Send, features: Features, *, address: str, seconds: float, connections: int
    ) -> None:
        self._process, self._features, self._address, self._seconds = process, features, address, seconds
        self._clock, self._store, self._flights = process.clock, process.store, process.flights
        self.operations = Operations(
            process, features, send, connections=connections, start=self._start, stored=self._stored
        )
        self.aclose = self.operations.aclose
        self._gathered: list[Flight] = []  # that are to begin
        self._busy: list[Flight] = []  # that wait for another process

    async def refresh(self, clients: Collection[Client]) -> None:
        """Learn what other processes know of clients. At start, and once a second. Raises StoreUnavailable."""
        await self._features.refresh([client.application for client in clients])
        await self._process.quotas.refresh([account for client in clients for account in client.charged])

    async def quote(self, client: Client, queries: Sequence[Query]) -> list[Answer | None]:
        """Return what is stored, or why nothing is fetched, and None for each query that would be fetched. Raises
        StoreUnavailable."""
        behind = [place for place, query in enumerate(queries) if query.start > query.first]
        asked = [*queries, *(queries[place].as_list_of_its_own() for place in behind)]
        answers = await self._stored(client, asked, "hit")
        for place, own in zip(behind, answers[len(queries) :], strict=True):
            stored = (each for each in (own, answers[place]) if each and each.result)
            answers[place] = next(stored, None)  # of a refusal it is not known whether it is the one of `resolve`
        return answers[: len(queries)]

    def metadata(self) -> ResponseMetadata:
        """Return the metadata of a request whose time begins now."""
        now = self._clock.monotonic()
        return ResponseMetadata(now, now + self._seconds)

    async def resolve(
        self, client: Client, queries: Sequence[Query], deadline: float, *, anew: bool = False
    ) -> list[Answer]:
        """Return the answer to each query, which the client waits for until `deadline` (monotonic seconds). `anew`:
        fetch it, whatever is stored."""
        request, tier, scope = object(), self._features.tier(client.application), self._scope(client.application)
        keys = [(scope, (query.as_list_of_its_own() if query.start else query).key) for query in queries]
        answers: list[Answer | None] = [None] * len(queries)
        # Numbers with their makers last: they wait for the same numbers alone, whose results may be theirs.
        missing = sorted(range(len(queries)), key=lambda place: queries[place].general is not None)
        while missing:
            flights: dict[int, Flight] = {}
            own: dict[int, Flight] = {}
            for place in missing:
                key, query = keys[place], queries[place]
                flight = self._flights.find(key, query)
                if flight is None:
                    flight = self._flights[key] = own[place] = Flight(key, query, client, request, anew, tier)
                elif not anew and (stored := flight.beginning(key, query)):
                    answers[place] = stored  # what is fetched is the rest of the list
                    continue
                flights[place] = flight
            self._start([*own.values()])
            await wait_for(flights.values(), deadline - self._clock.monotonic())
            for place, flight in flights.items():
                answers[place] = flight.answer(keys[place], queries[place], client, is_own=place in own)
            missing = [place for place in missing if answers[place] is None]
            if missing and self._clock.monotonic() >= deadline:
                late, missing = missing, []
                stale = [None] * len(late) if anew else await self._stored(client, [queries[place] for place in late])
                error = errors.DeadlineExceeded("the time limit of the request has passed", may_be_billed=True)
                for place, answer in zip(late, stale, strict=True):
                    answers[place] = answer or Answer(None, error)
        return [answer for answer in answers if answer is not None]

    def _start(self, flights: Sequence[Flight]) -> None:
        """Begin flights, with all others that begin in these turns."""
        if flights and not self._gathered:
            self.operations.spawn(self._gather(), self._gathered)
        self._gathered += flights

    async def _gather(self) -> None:
        """Begin what has gathered when some turns have brought nothing further. The first operations of an application
        have one query each."""
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
            self.operations.spawn(self._find_features(tier, some), some)
        await self._begin(flights)

    async def _find_features(self, tier: Tier, flights: list[Flight]) -> None:
        """Fetch for one flight alone, while the features of its application are not known; then begin the others."""
        async with tier.first:
            # Another process may have been first.
            with suppress(errors.StoreUnavailable):
                await self._features.refresh([flights[0].client.application])
            if not tier.is_shown:
                flights[0].apart = object()
                await self._begin(flights[:1])
                await wait_for(flights[:1])
        self._start([flight for flight in flights if flight.outcome is None])

    async def _begin(self, flights: list[Flight]) -> None:
        """Look up what is stored, reserve what is not, and send it. What is blocked is looked up only."""
        now, until = self._clock.now(), self._clock.monotonic() + self._seconds
        for flight in flights:
            flight.begun, flight.until, flight.parts, flight.wanted = now, until, 0, flight.tier.selected
            (scope, _), seconds = flight.key, ANEW_SECONDS if flight.anew else FRESH_SECONDS
            flight.begin = self._begin_of(flight.client, scope, flight.query, flight.wanted, seconds)
        if behind := [flight for flight in flights if flight.query.start > flight.query.first]:
            await self._place(behind)
        for flight in flights:
            flight.is_reserved = self._blocked(flight.client.application) is None  # it may be, from now on
        begun = [flight for flight in flights if flight.is_reserved]
        blocked = [flight for flight in flights if not flight.is_reserved]
        outcomes = await self._store.begin([flight.begin for flight in begun]) if begun else []
        outcomes += await self._store.quote([flight.begin for flight in blocked]) if blocked else []
        for flight, outcome in zip(begun + blocked, outcomes, strict=True):
            if flight.is_reserved and isinstance(outcome, Reserved):
                flight.stored, flight.fetch = outcome.stored, flight.query.fetch(outcome.stored)
            else:
                flight.is_reserved = False
                self._take(flight, outcome)
        flights.clear()  # each ends with its operation
        await self.operations.send([flight for flight in begun if flight.is_reserved])

    async def _place(self, behind: Sequence[Flight]) -> None:
        """Give a list of its own to each flight that begins behind what is stored of its list, so that what lies
        between is not paid for, and to each of whose own list more is stored. Raises StoreUnavailable."""
        begins: list[Begin] = []
        for flight in behind:
            own = flight.query.as_list_of_its_own()
            begins += flight.begin, flight.begin._replace(want=own.want)
        outcomes = iter(await self._store.quote(begins))
        for flight in behind:
            query, own = flight.query, flight.query.as_list_of_its_own()
            of_whole, of_own = next(outcomes), next(outcomes)
            end, own_end = _end(query, of_whole), _end(own, of_own)
            is_whole = isinstance(of_whole, Busy) or (flight.anew and query.end <= model.PARTS_MAX)
            if own_end == query.end > end or (not is_whole and max(query.start, own_end) > end):
                flight.query, flight.begin = own, flight.begin._replace(want=own.want)

    def _take(self, flight: Flight, outcome: Outcome) -> None:
        """End a flight that is not reserved, or let it wait for another process."""
        client = flight.client
        if isinstance(outcome, Found):
            answer = Answer(outcome.result, first=flight.query.first, features=flight.wanted.features)
            self._flights.end([flight], answer)
        elif isinstance(outcome, Busy):
            flight.anew = False  # what is stored when it is begun once more is new
            if not self._busy:
                self.operations.spawn(self._wait(), self._busy)
            self._busy.append(flight)
        elif isinstance(outcome, errors.StoreUnavailable):
            self.operations.has_failed = True
            self._flights.end([flight], Answer(None, outcome))
        elif isinstance(flight.apart, errors.QueryRefused):  # its features were guessed; what was wrong is known
            self._flights.end([flight], Answer(None, flight.apart, "miss"))
        elif blocked := self._blocked(client.application):
            self._flights.end([flight], Again(blocked, client))
        elif isinstance(outcome, Reserved):
            self._start([flight])  # it is blocked no more
        else:
            want = flight.begin.want
            refusal = client.exceeded(outcome, want.end * want.parts, self._clock.now())
            self._flights.end([flight], Again(refusal, client))

    def _blocked(self, application: Application) -> errors.BridgeError | None:
        """Return why nothing is begun that costs parts."""
        if self._process.unfinished:
            return errors.StoreUnavailable("usage of parts cannot be written at the moment")
        return self._process.quotas.refusal(application)

    async def _wait(self) -> None:
        """Begin flights once more when no other process is fetching them. One read serves all that wait."""
        while self._busy:
            await asyncio.sleep(READ_SECONDS)
            waiting = [*self._busy]
            # Not by its id: a begin that was sent twice may wait for itself.
            outcomes = await self._store.quote([flight.begin._replace(id="") for flight in waiting])
            both = [*zip(waiting, outcomes, strict=True)]
            free = [flight for flight, outcome in both if not isinstance(outcome, Busy)]
            if first := [flight.client.application for flight in free if flight.apart]:
                with suppress(errors.StoreUnavailable):
                    await self._features.refresh(first)  # the other process was first
            self._busy[: len(waiting)] = [flight for flight, outcome in both if isinstance(outcome, Busy)]
            self._start(free)

    async def _stored(self, client: Client, queries: Sequence[Query], source: Source = "stale") -> list[Answer | None]:
        """Return what is stored of queries: as hits, where why nothing is fetched is an answer, too; or as stale
        answers, of which there are none where the store cannot be read. Raises StoreUnavailable for hits."""
        scope, selected = self._scope(client.application), self._features.tier(client.application).selected
        seconds = STORED_SECONDS if source == "stale" else FRESH_SECONDS
        begins = [self._begin_of(client, scope, query, selected, seconds) for query in queries]
        try:
            outcomes = await self._store.quote(begins)
        except errors.StoreUnavailable:
            if source == "hit":
                raise
            return [None] * len(queries)
        blocked, answers = self._blocked(client.application), list[Answer | None]()
        for query, outcome in zip(queries, outcomes, strict=True):
            answer, error = None, None if isinstance(outcome, Busy) else blocked
            if isinstance(outcome, Found):
                answer = Answer(outcome.result, None, source, query.first, selected.features)
            elif isinstance(outcome, errors.StoreUnavailable):
                error = outcome
            elif isinstance(outcome, Refused) and not blocked:
                error = client.exceeded(outcome, query.want.end * query.want.parts, self._clock.now())
            answers.append(answer or (Answer(None, error) if error and source == "hit" else None))
        return answers

    def _begin_of(self, client: Client, scope: str, query: Query, selected: Selected, seconds: float) -> Begin:
        """Return the begin of a query, for what was fetched within so many seconds."""
        id, now = f"{self._process.rng.getrandbits(128):032x}", self._clock.now()
        accounts, lasts = periods(client.charged, now // DAY_SECONDS).every, self._seconds + RESERVATION_SECONDS
        return Begin(id, scope, selected.bits, query.want, accounts, now - seconds, lasts)

    def _scope(self, application: Application) -> str:
        account, market = application.account, application.context
        made_of = self._address, account, market.country, market.currency, self._features.digest
        # 128 bits in all: it is in every key.
        return account[:SCOPE_DIGITS] + config.hex_digest("\0".join(made_of))[:24]


def _end(query: Query, outcome: Outcome) -> int:
    """Return the end of what is stored of a query's list, as far as it is needed."""
    if isinstance(outcome, Found):
        return query.end
    stored = getattr(outcome, "stored", None)
    return query.first + (stored.asked if stored else 0)
