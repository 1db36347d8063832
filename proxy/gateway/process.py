"""What outlives the configuration of a process, so that a reload loses none of it."""

import asyncio
import math
import random

import cachetools

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.flights import Flight, Flights
from proxy.gateway.free_operations import Lists
from proxy.gateway.quota import Quotas
from proxy.kit import counted
from proxy.kit.clock import Clock, SlidingWindow, Window
from proxy.mapping import loader
from proxy.metrics import Metrics
from proxy.planning.documents import ProjectionCache
from proxy.store.protocol import Finish
from proxy.store.store import Store
from proxy.upstream.sending import CircuitBreaker

ADDRESSES_MAX = 4_096  # whose wrong keys are counted; the least recently used is forgotten

Booking = tuple[Flight, Finish]  # the end of a flight's reservation

# What the mappings are made of, and the mappings with their compiled projections.
Translation = tuple[tuple[str, str], loader.Mappings, ProjectionCache]


class ProcessState:
    """The store, clock, random source and metrics of one of `workers`, and what its pipelines share: one after a
    reload joins the flights of the one before, and begins nothing while bookings of that one are `unfinished`, which
    the store has not taken, and which are repeated."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random, metrics: Metrics, workers: int = 1) -> None:
        self.store, self.clock, self.rng, self.metrics, self.workers = store, clock, rng, metrics, workers
        self.started = clock.now()
        self.breaker = CircuitBreaker(clock=clock, rng=rng, metrics=metrics)
        self.flights = Flights()
        self.quotas = Quotas(store, clock)
        self.unfinished: list[Booking] = []
        self.repeating: asyncio.Task[None] | None = None
        self.lists: dict[tuple[str, ...], Lists] = {}  # by the mappings and the upstream that they are made with
        self.wrong_keys: cachetools.LRUCache[str, SlidingWindow] = cachetools.LRUCache(ADDRESSES_MAX)  # of addresses
        # When a key was last used from an address, by address and account, the latest last.
        self.recent_keys: dict[tuple[str, str], float] = {}
        self._rates: dict[tuple[str, int], SlidingWindow] = {}  # of API keys

    def admit(self, client: Client) -> None:
        """Count a request against the rate of its API key, which has one, and of which each worker admits its part.
        Raises TooManyRequests. v3 limited its free tier to 3 a second (contract v3-rest.md §5)."""
        key = client.name, client.rate
        if key not in self._rates:
            own = Window(math.ceil(client.rate / self.workers), 1.0)
            self._rates[key] = SlidingWindow(own, self.clock)
        if self._rates[key].try_take():
            message = f"{client.name} may make no more than {counted(client.rate, 'request')} in a second"
            raise errors.TooManyRequests(message, retry_after=1)

    async def aclose(self) -> None:
        """Wait until all is booked."""
        if self.repeating is not None:
            await asyncio.wait((self.repeating,))
