"""What the store is asked for: begins of queries for a client, quotes, and stale results."""

import functools
import random
from collections.abc import Sequence

from proxy import errors, model
from proxy.gateway.applications import Application, Client, digest
from proxy.gateway.features import Features, Selected
from proxy.gateway.flights import Flight
from proxy.gateway.results import Answer, Source
from proxy.gateway.turns import Gathered
from proxy.kit.clock import Clock
from proxy.planning.queries import Query
from proxy.store import protocol
from proxy.store.protocol import Begin, Outcome
from proxy.store.store import Store


class Lookups:
    """Look-ups of queries at the upstream at `address`; a reservation lasts `seconds`."""

    def __init__(
        self, store: Store, features: Features, clock: Clock, rng: random.Random, *, address: str, seconds: float
    ) -> None:
        self._features = features
        self._address = address
        self._seconds = seconds
        self._clock = clock
        self._rng = rng
        self.quote: Gathered[Begin, list[Outcome]] = Gathered("quote", store.quote)

    async def stale(self, client: Client, queries: Sequence[Query]) -> list[Answer | None]:
        """Return what was fetched within the last day for queries, whose upstream fails."""
        return await self.stored(client, queries, "stale", protocol.STORED_SECONDS)

    async def stored(
        self, client: Client, queries: Sequence[Query], source: Source, seconds: float
    ) -> list[Answer | None]:
        """Return what was fetched for queries within so many seconds, and nothing where the store cannot be read."""
        selected = self._features.selected(client.application)
        begin = self.begin(client, queries, selected, seconds=seconds)
        try:
            outcomes = await self.quote(begin) if queries else []
        except errors.StoreUnavailable as error:
            outcomes = [error] * len(queries)
        return [
            Answer(outcome.result, None, source, query.first, selected.features)
            if isinstance(outcome, protocol.Found)
            else None
            for query, outcome in zip(queries, outcomes, strict=True)
        ]

    async def placed(self, flights: Sequence[Flight], begin: Begin, *, anew: bool) -> Begin:
        """Return the begin with a list of its own for each query that begins behind what is stored of its list, so that
        what lies between is not paid for, and for one of whose own list more is stored."""
        behind = [flight for flight in flights if flight.query.start > flight.query.first]
        if not behind:
            return begin
        owns = [flight.query.as_list_of_its_own() for flight in behind]
        queries = [*(flight.query for flight in behind), *owns]
        outcomes = await self.quote(begin._replace(wants=[query.want for query in queries]))
        for flight, own, of_whole, of_own in zip(behind, owns, outcomes, outcomes[len(behind) :], strict=False):
            query, end, own_end = flight.query, _end(flight.query, of_whole), _end(own, of_own)
            is_whole = isinstance(of_whole, protocol.Busy) or (anew and query.end <= model.PARTS_MAX)
            if own_end == query.end > end or (not is_whole and max(query.start, own_end) > end):
                flight.query = own
        return begin._replace(wants=[flight.query.want for flight in flights])

    def begin(
        self,
        client: Client,
        queries: Sequence[Query],
        selected: Selected,
        *,
        seconds: float = protocol.FRESH_SECONDS,
        anew: bool = False,
    ) -> Begin:
        now = self._clock.now()
        fresh_from = now + 1.0 if anew else now - seconds  # nothing stored is of the future
        return Begin(
            f"{self._rng.getrandbits(128):032x}",
            self._scope(client.application),
            selected.bits,
            [query.want for query in queries],
            client.accounts(now),
            fresh_from,
            self._seconds,
        )

    def key(self, client: Client, query: Query) -> tuple[str, str]:
        """Return the place of a query among the flights."""
        own = query.as_list_of_its_own() if query.start else query
        return self._scope(client.application), own.key

    def _scope(self, application: Application) -> str:
        context = application.context
        fields = self._features.digest
        return _scope(self._address, application.account, context.country, context.currency, fields)


def _end(query: Query, outcome: Outcome) -> int:
    """Return the end of what is stored of a query's list, as far as it is needed."""
    if isinstance(outcome, protocol.Found):
        return query.end
    stored = getattr(outcome, "stored", None)
    return query.first + (stored.asked if stored else 0)


@functools.lru_cache(maxsize=1024)
def _scope(*texts: str) -> str:
    return digest("\0".join(texts))
