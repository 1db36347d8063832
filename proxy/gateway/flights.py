"""Flights: equal queries under way in this process are one. A flight ends with the answer of all that wait for it, or
with what is no answer for others: the next that waits begins the query then.

And answers: what was fetched of a list, put together with its beginning that is stored; and what the headers and the
log line of a response say of its answers.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from proxy import errors, model
from proxy.gateway.applications import Client
from proxy.gateway.features import Selected, Tier
from proxy.kit.clock import Clock
from proxy.planning.queries import Fetch, Fetched, Query, Received
from proxy.store import protocol
from proxy.store.protocol import Begin, Result

NO_FEATURES: frozenset[str] = frozenset()

Source = Literal["hit", "shared", "miss", "stale"]


class Answer(NamedTuple):
    """What is known of a query: its result, which begins with the element `first` of its list, or why there is none.

    `features` are those that its parts were fetched with. `parts` are what it has cost, used or uncertain.
    `is_partial`: the upstream reported errors beside it; `reported` are those of an operation that was passed on.
    """

    result: Result | None
    error: errors.BridgeError | None = None
    source: Source = "hit"
    first: int = 0
    features: frozenset[str] = frozenset()
    parts: int = 0
    is_partial: bool = False
    reported: Sequence[model.GraphQLError] = ()

    @classmethod
    def passed_on(cls, query: Query, received: Received, parts: int = 0) -> "Answer":
        """Return the answer to a query that was passed on, and has cost so many parts."""
        result = Result(query.key, 1, 1, (), (), (), received.value)
        return cls(result, None, "miss", parts=parts, is_partial=bool(received.reported), reported=received.reported)


def joined(
    query: Query, stored: Result | None, fetched: Fetched, features: frozenset[str], *, is_partial: bool
) -> tuple[Answer | None, tuple[Result, ...]]:
    """Put together what was fetched behind a stored beginning, or without one. Return the answer to a query, and the
    results to be stored: none of a partial answer. No answer: the list has grown or moved since its beginning was
    stored, and is to be fetched anew as a whole."""
    parts = fetched.returned + fetched.lost
    if fetched.error is not None:
        return Answer(None, errors.QueryRefused(fetched.error), "miss", query.first, features, parts), ()
    result = Result(query.key, query.end - query.first, fetched.hits, fetched.items, fetched.bodies, fetched.part_ids)
    if stored is not None:
        if stored.hits != fetched.hits or not {hit.uid for hit in stored.items}.isdisjoint(
            hit.uid for hit in fetched.items
        ):
            return None, ()
        result = result._replace(
            items=stored.items + result.items,
            bodies=stored.bodies + result.bodies,
            part_ids=stored.part_ids + result.part_ids,
            fetched=stored.fetched,
        )
    is_partial = is_partial or any(not hit.uid for hit in result.items)
    stored_as: tuple[Result, ...] = () if is_partial else (result,)
    if stored_as and fetched.maker and result.hits == 1 == len(result.items):
        # The result of a number with one hit answers the number with its maker, too.
        key = query.key_with_maker(fetched.maker)
        stored_as += () if key is None else (result._replace(key=key),)
    return Answer(result, None, "miss", query.first, features, parts, is_partial), stored_as


# Of several sources the one that says most about age and cost is reported.
_RANK = {"hit": 0, "shared": 1, "miss": 2, "stale": 3}


@dataclass(slots=True, eq=False)
class ResponseMetadata:
    """Metadata of one response: made when the request arrives, filled in from the answers to its queries. Times are in
    the clock's monotonic seconds."""

    since: float  # when the request's time began
    deadline: float = inf  # until when it is waited for
    is_quote: bool = False  # of HEAD: nothing is fetched that costs parts, and `cost` is the most that it would
    sourceless: tuple[str, ...] = ()  # fields without source that the request names
    unsupported: tuple[str, ...] = ()  # parameters that the response ignores
    lacking: frozenset[str] = frozenset()  # features that the request asks for, and parts were fetched without
    cost: int = 0  # parts used or uncertain
    results: int = 0  # of which a stale one is counted as what it replaces
    source: str | None = None  # hit, shared, miss or stale: the last of these of all results; None without any
    stored: float = inf  # when the oldest result was fetched
    until: float = inf  # until when the response may be reused

    def add(self, answers: Iterable[Answer], clock: Clock, asked: frozenset[str] = frozenset()) -> None:
        """Note where answers come from, and how long they are fresh. `asked` are features that the request asks for."""
        ahead = clock.monotonic() - clock.now()
        for answer in answers:
            source = answer.source if answer.error is None else "miss"
            self.cost += answer.parts
            self.results += source != "stale"
            if self.source is None or _RANK[source] > _RANK[self.source]:
                self.source = source
            if answer.result is None or answer.is_partial:
                self.until = 0.0  # another attempt may have a better result
            if answer.result is not None:
                fetched = answer.result.fetched + ahead if answer.result.fetched else clock.monotonic()
                seconds = protocol.FRESH_SECONDS if answer.result.items else protocol.EMPTY_SECONDS
                self.stored, self.until = min(self.stored, fetched), min(self.until, fetched + seconds)
                self.lacking |= asked - answer.features


class Again(NamedTuple):
    """No answer for others: a refusal by the accounts of `client`, or too late for whom it was begun for (None)."""

    error: errors.BridgeError
    client: Client | None = None


@dataclass(slots=True, eq=False)
class Flight:
    """A query that `client` has begun in a `request`, and the `outcome` that it ends with, for which callers are
    `waiting`. Its place among the flights is `key`; `spent` are parts of operations that have not ended it.

    How it is to be fetched: as a whole list, whatever is stored of it (`anew`); with those only that have the same
    `apart` in an operation; for the second time, `without` some features, which are a guess where the errors name none
    (`is_guess`).

    Since it was begun in the store, at `begun` (seconds since 1970), with features that were `wanted`: its `begin`,
    which is, or may be, reserved `until` when (monotonic seconds); what was `stored` of its list; what is `fetch`ed,
    with which features `selected`, and how many `parts` that can cost.
    """

    key: tuple[str, str]
    query: Query
    client: Client
    request: object
    anew: bool
    tier: Tier
    wanted: Selected = field(init=False)
    begin: Begin = field(init=False)
    fetch: Fetch = field(init=False)
    selected: Selected = field(init=False)
    apart: object | None = None
    without: frozenset[str] = NO_FEATURES
    is_guess: bool = False
    spent: int = 0
    begun: float = 0.0
    until: float = 0.0
    is_reserved: bool = False
    stored: Result | None = None
    parts: int = 0
    outcome: Answer | Again | None = None
    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    def beginning(self, key: tuple[str, str], query: Query) -> Answer | None:
        """Return the answer to a query that asks for no more than what was stored when the flight began."""
        first, stored = self.query.first, self.stored
        if stored is None or self.key != key or not query.is_covered(stored, first):
            return None
        return Answer(stored, first=first, features=self.wanted.features)

    def answer(self, key: tuple[str, str], query: Query, client: Client, *, is_own: bool) -> Answer | None:
        """Return the answer to a query that has waited for this flight; None where it is to be looked for again."""
        outcome = self.outcome
        if outcome is None or self.key != key:
            return None
        if isinstance(outcome, Again):
            # A shorter list may fit, or be stored.
            is_refused = outcome.client is client and (is_own or query.end >= self.query.end)
            return Answer(None, outcome.error) if is_refused else None
        if outcome.result is not None and not query.is_covered(outcome.result, outcome.first):
            return None
        if is_own:
            return outcome
        if outcome.result is None and (stored := self.beginning(key, query)):
            return stored  # the failure is that of the rest
        return outcome._replace(source="shared" if outcome.source == "miss" else outcome.source, parts=0)


class Flights(dict[tuple[str, str], Flight]):
    """Flights of this process. One stays until its result is committed, so that a repeat finds it here until then."""

    def find(self, key: tuple[str, str], query: Query) -> Flight | None:
        """Return the flight that a query is to wait for: one that has ended only if it answers the query. A number with
        its maker waits for the same number alone, whose result may be its own."""
        general = self.get((key[0], query.general)) if query.general else None
        if general is not None and general.outcome is None:
            return general
        flight = self.get(key)
        if flight is None or flight.outcome is None:
            return flight
        ended = flight.outcome
        if isinstance(ended, Answer) and (ended.result is None or query.is_covered(ended.result, ended.first)):
            return flight
        return None

    def end(self, flights: Sequence[Flight], outcome: Answer | Again, *, stay: bool = False) -> None:
        """End flights that have not ended; nobody finds them any more, unless they `stay`."""
        for flight in flights:
            if flight.outcome is not None:
                continue
            if not stay and self.get(flight.key) is flight:
                del self[flight.key]
            flight.outcome = outcome
            if flight.spent and isinstance(outcome, Answer):
                flight.outcome = outcome._replace(parts=outcome.parts + flight.spent)
            for each in flight.waiting:
                if not each.done():  # its caller has left
                    each.set_result(None)


async def wait_for(flights: Iterable[Flight], seconds: float | None = None) -> None:
    """Return when all flights have ended, or after so many seconds."""
    loop = asyncio.get_running_loop()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for flight in flights:
                if flight.outcome is None:
                    flight.waiting.append(loop.create_future())
                    await flight.waiting[-1]
