"""What the store is asked for: begins of queries for a client, quotes, and stale results."""

import functools
import random
from collections.abc import Sequence

from proxy import errors, model
from proxy.gateway.applications import Application, Client, digest
from proxy.gateway.features import Features, Selected
from proxy.gateway.flights import Flight
from proxy.gateway.results import Answer, Source
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
        self.quote = store.quote

    async def stale(self, asked: Sequence[tuple[Client, Query]]) -> list[Answer | None]:
        """Return what was fetched within the last day for queries of clients, whose upstream fails."""
        return await self.stored(asked, "stale", protocol.STORED_SECONDS)

    async def stored(
        self, asked: Sequence[tuple[Client, Query]], source: Source, seconds: float
    ) -> list[Answer | None]:
        """Return what was fetched for queries of clients within so many seconds, and nothing where the store cannot be
        read."""
        wanted = [self._features.tier(client.application).selected for client, _ in asked]
        begins = [
            self.begin(client, self.scope(client.application), query, selected, seconds=seconds)
            for (client, query), selected in zip(asked, wanted, strict=True)
        ]
        try:
            outcomes: Sequence[Outcome] = await self.quote(begins) if begins else []
        except errors.StoreUnavailable as error:
            outcomes = [error] * len(begins)
        return [
            Answer(outcome.result, None, source, query.first, selected.features)
            if isinstance(outcome, protocol.Found)
            else None
            for (_, query), selected, outcome in zip(asked, wanted, outcomes, strict=True)
        ]

    async def place(self, flights: Sequence[Flight]) -> None:
        """Give a list of its own to each flight that begins behind what is stored of its list, so that what lies
        between is not paid for, and to each of whose own list more is stored. Raises StoreUnavailable."""
        behind = [flight for flight in flights if flight.query.start > flight.query.first]
        if not behind:
            return
        both = [(flight.query, flight.query.as_list_of_its_own()) for flight in behind]
        asked = [
            self.begin(flight.client, flight.key[0], query, flight.wanted, anew=flight.anew)
            for flight, queries in zip(behind, both, strict=True)
            for query in queries
        ]
        outcomes = iter(await self.quote(asked))
        for flight, (query, own) in zip(behind, both, strict=True):
            of_whole, of_own = next(outcomes), next(outcomes)
            end, own_end = _end(query, of_whole), _end(own, of_own)
            is_whole = isinstance(of_whole, protocol.Busy) or (flight.anew and query.end <= model.PARTS_MAX)
            if own_end == query.end > end or (not is_whole and max(query.start, own_end) > end):
                flight.query = own

    def begin(
        self,
        client: Client,
        scope: str,
        query: Query,
        selected: Selected,
        *,
        seconds: float = protocol.FRESH_SECONDS,
        anew: bool = False,
    ) -> Begin:
        """Return the begin of a query, for what was fetched within so many seconds, or for nothing that is stored."""
        now = self._clock.now()
        return Begin(
            f"{self._rng.getrandbits(128):032x}",
            scope,
            selected.bits,
            query.want,
            client.accounts(now),
            now + 1.0 if anew else now - seconds,  # nothing stored is of the future
            self._seconds,
        )

    def key(self, client: Client, query: Query) -> tuple[str, str]:
        """Return the place of a query among the flights."""
        own = query.as_list_of_its_own() if query.start else query
        return self.scope(client.application), own.key

    def scope(self, application: Application) -> str:
        context = application.context
        fields = self._features.digest
        others = self._address, application.account, context.country, context.currency, fields
        return application.scopes + _digest(*others)


def _end(query: Query, outcome: Outcome) -> int:
    """Return the end of what is stored of a query's list, as far as it is needed."""
    if isinstance(outcome, protocol.Found):
        return query.end
    stored = getattr(outcome, "stored", None)
    return query.first + (stored.asked if stored else 0)


@functools.lru_cache(maxsize=1024)
def _digest(*texts: str) -> str:
    return digest("\0".join(texts))[:24]  # 128 bits in all: it is in every key
