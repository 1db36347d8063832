"""What outlives the configuration of a process, so that a reload loses none of it."""

import random

from proxy.gateway.bookings import Bookings
from proxy.gateway.flights import Flights
from proxy.gateway.quota import ExhaustedQuotas
from proxy.gateway.rate_limit import RateLimits
from proxy.gateway.usage import KnownUsage
from proxy.kit.clock import Clock
from proxy.store.store import Store
from proxy.telemetry.metrics import Metrics


class ProcessState:
    """The store, clock, random source and metrics of one of `workers`, and what its pipelines share: one after a
    reload joins the flights of the one before, and begins nothing while a booking of that one is not committed."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random, metrics: Metrics, workers: int = 1) -> None:
        self.store = store
        self.clock = clock
        self.rng = rng
        self.metrics = metrics
        self.rate_limits = RateLimits(workers, clock)
        self.flights = Flights()
        self.exhausted = ExhaustedQuotas(store, clock)
        self.usage = KnownUsage(store)
        self.bookings = Bookings(store, self.flights, self.usage, clock)
