"""What outlives the configuration of a process, so that a reload loses none of it."""

import random
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

import aiohttp

from proxy import config, redaction
from proxy.kit import clock as clocks
from proxy.stores import open as opening
from proxy.stores.protocols import CacheStore, Store
from proxy.telemetry import metrics as metering
from proxy.telemetry import seen as seeing
from proxy.upstream import session

T = TypeVar("T")


@dataclass(slots=True)
class _SharedResource:
    value: Any
    closing: AsyncExitStack
    users: int = 0


class SharedResources:
    """Open resources by key. Equal keys get the same resource, so a key must name everything that it is made of."""

    def __init__(self) -> None:
        self._resources: dict[Hashable, _SharedResource] = {}

    async def obtain(self, key: Hashable, user: AsyncExitStack, open_: Callable[[AsyncExitStack], Awaitable[T]]) -> T:
        """Return the resource of a key, which `user` holds until it is closed. `open_` is given a stack for what has
        to be closed with the resource."""
        resource = self._resources.get(key)
        if resource is None:
            async with AsyncExitStack() as closing:
                value = await open_(closing)
                # Only once it is open; an error before this closes what it had opened.
                resource = self._resources[key] = _SharedResource(value, closing.pop_all())
        resource.users += 1
        user.push_async_callback(self._release, key, resource)
        shared: T = resource.value
        return shared

    async def _release(self, key: Hashable, resource: _SharedResource) -> None:
        resource.users -= 1
        if not resource.users:
            # Before it is closed: a new user gets a new one meanwhile.
            del self._resources[key]
            await resource.closing.aclose()


@dataclass(frozen=True)
class Environment:
    """What a gateway reaches outside of its process, and its randomness. Replaced where processes are simulated."""

    open_store: Callable[[config.StoreUrl, clocks.Clock], Awaitable[Store]] = opening.open_store
    open_cache: Callable[[config.StoreUrl, int, float, clocks.Clock], CacheStore | None] = opening.open_cache
    open_session: Callable[[config.UpstreamSettings], aiohttp.ClientSession] = session.open_session
    rng: random.Random = field(default_factory=random.SystemRandom)


class ProcessState:
    """Environment, clock, metrics and counts of requests of a process, and the resources that the gateways before and
    after a reload share.

    `name` tells it from other processes of the store, `ended` are the names of processes that have died, whose
    reservations it ends. `api_keys` are the digests of all API keys since the start, which `redaction` hides: requests
    that began before a reload must not show one that it removed.
    """

    def __init__(
        self, clock: clocks.Clock, environment: Environment | None = None, name: str = "", ended: Sequence[str] = ()
    ) -> None:
        self.environment = environment or Environment()
        self.name = name or f"{self.environment.rng.getrandbits(64):016x}"
        self.ended = tuple(ended)
        self.clock = clock
        self.metrics = metering.Metrics(clock)
        self.api_keys: set[config.Digest] = set()
        self.redaction = redaction.Redaction(is_key=lambda text: config.digest(text) in self.api_keys)
        self.seen = seeing.SeenRequests(self.redaction)
        self.shared = SharedResources()
