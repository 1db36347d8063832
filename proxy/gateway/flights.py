"""Flights: equal queries under way in this process are one. A flight ends with the answer of all that wait for it, or
with what is no answer for others: the next that waits begins the query then.
"""

import asyncio
from typing import NamedTuple

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.results import Answer
from proxy.planning.queries import Query


class Again(NamedTuple):
    """No answer for others: a refusal by the accounts of `client`, or too late for whom it was begun for (None)."""

    error: errors.BridgeError
    client: Client | None = None


class Flight:
    """A query that `client` has begun, and the future of what it ends with. Its place among the flights is `key`;
    `spent` are parts of operations that have not ended it."""

    __slots__ = ("client", "done", "key", "query", "spent")

    def __init__(self, key: tuple[str, str], query: Query, client: Client) -> None:
        self.key = key
        self.query = query
        self.client = client
        self.spent = 0
        self.done: asyncio.Future[Answer | Again] = asyncio.get_running_loop().create_future()

    def end(self, outcome: Answer | Again) -> None:
        """End the flight, unless it has ended."""
        if not self.done.done():
            if isinstance(outcome, Answer):
                outcome = outcome._replace(parts=outcome.parts + self.spent)
            self.done.set_result(outcome)

    def answer(self, key: tuple[str, str], query: Query, client: Client, *, is_own: bool) -> Answer | None:
        """Return the answer to a query that has waited for this flight; None where it is to be looked for again."""
        outcome = self.done.result()
        if isinstance(outcome, Again):
            return Answer(None, outcome.error) if outcome.client is client and self.key == key else None
        if self.key != key or not _is_answer(outcome, query):
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
        return flight if flight is not None and not flight.done.done() else None

    def find(self, key: tuple[str, str], query: Query) -> Flight | None:
        """Return the flight to wait for; one that has ended only if it answers the query."""
        flight = self._flights.get(key)
        if flight is not None and flight.done.done():
            outcome = flight.done.result()
            return None if isinstance(outcome, Again) or not _is_answer(outcome, query) else flight
        return flight

    def begin(self, key: tuple[str, str], query: Query, client: Client) -> Flight:
        flight = self._flights[key] = Flight(key, query, client)
        return flight

    def remove(self, flight: Flight) -> None:
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]


def _is_answer(answer: Answer, query: Query) -> bool:
    return answer.result is None or query.is_covered(answer.result, answer.first)
