"""Flights: equal queries under way in this process are one. A flight ends with the answer of all that wait for it, or
with what is no answer for others: the next that waits begins the query then.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.features import Selected
from proxy.gateway.results import Answer
from proxy.planning.queries import Fetch, Query
from proxy.store.protocol import Begin

NO_FEATURES: frozenset[str] = frozenset()


class Again(NamedTuple):
    """No answer for others: a refusal by the accounts of `client`, or too late for whom it was begun for (None)."""

    error: errors.BridgeError
    client: Client | None = None


@dataclass(slots=True, eq=False)
class Flight:
    """A query that `client` has begun in a `request`, and the `outcome` that it ends with. Its place among the flights
    is `key`; `spent` are parts of operations that have not ended it. It is made in the event loop that it belongs to.

    How it is to be fetched: as a whole list, whatever is stored of it (`anew`); with those only that have the same
    `apart` in an operation; for the second time, `without` some features, which are a guess where the errors name none
    (`is_guess`).

    Since it was begun in the store, at `begun` (seconds since 1970), with features that were `wanted`: its `begin`
    while it is reserved, `until` when (monotonic seconds), what is `fetch`ed, and with which features `selected`.
    """

    key: tuple[str, str]
    query: Query
    client: Client
    request: object
    anew: bool
    apart: object | None = None
    without: frozenset[str] = NO_FEATURES
    is_guess: bool = False
    spent: int = 0
    wanted: Selected = field(init=False)
    begun: float = field(init=False)
    until: float = field(init=False)
    begin: Begin | None = None
    fetch: Fetch = field(init=False)
    selected: Selected = field(init=False)
    outcome: asyncio.Future[Answer | Again] = field(init=False)

    def __post_init__(self) -> None:
        self.fetch = self.query.fetch()
        self.outcome = asyncio.get_running_loop().create_future()

    @property
    def parts(self) -> int:
        """How many parts its operation can cost."""
        passed_on = self.query.passed_on
        return self.fetch.limit if passed_on is None else passed_on.operation.parts_max

    def end(self, outcome: Answer | Again) -> None:
        """End the flight, unless it has ended."""
        if not self.outcome.done():
            if self.spent and isinstance(outcome, Answer):
                outcome = outcome._replace(parts=outcome.parts + self.spent)
            self.outcome.set_result(outcome)

    def answer(self, key: tuple[str, str], query: Query, client: Client, *, is_own: bool) -> Answer | None:
        """Return the answer to a query that has waited for this flight; None where it is to be looked for again."""
        if not self.outcome.done() or self.key != key:
            return None
        outcome = self.outcome.result()
        if isinstance(outcome, Again):
            return Answer(None, outcome.error) if outcome.client is client else None
        if not _is_answer(outcome, query):
            return None
        if is_own:
            return outcome
        return outcome._replace(source="shared" if outcome.source == "miss" else outcome.source, parts=0)


class Flights:
    """Flights of this process. One stays until its result is committed, so that a repeat finds it here until then."""

    def __init__(self) -> None:
        self._flights: dict[tuple[str, str], Flight] = {}

    def under_way(self, key: tuple[str, str]) -> Flight | None:
        """Return the flight with a key that has not ended."""
        flight = self._flights.get(key)
        return flight if flight is not None and not flight.outcome.done() else None

    def find(self, key: tuple[str, str], query: Query) -> Flight | None:
        """Return the flight to wait for; one that has ended only if it answers the query."""
        flight = self._flights.get(key)
        if flight is None or not flight.outcome.done():
            return flight
        outcome = flight.outcome.result()
        return None if isinstance(outcome, Again) or not _is_answer(outcome, query) else flight

    def add(self, flight: Flight) -> None:
        self._flights[flight.key] = flight

    def end(self, flights: Sequence[Flight], outcome: Answer | Again) -> None:
        """End flights that have not ended; nobody finds them any more."""
        for flight in flights:
            if not flight.outcome.done():
                self.remove(flight)
                flight.end(outcome)

    def remove(self, flight: Flight) -> None:
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]


async def wait_for(flights: Iterable[Flight], seconds: float | None = None) -> None:
    """Return when flights have ended, or after so many seconds."""
    if under_way := {flight.outcome for flight in flights if not flight.outcome.done()}:
        await asyncio.wait(under_way, timeout=None if seconds is None else max(0.0, seconds))


def _is_answer(answer: Answer, query: Query) -> bool:
    return answer.result is None or query.is_covered(answer.result, answer.first)
