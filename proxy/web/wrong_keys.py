"""Wrong API keys by client address: an address that has sent too many is refused without its key being looked up.

Guessing is no faster than the limit, for the response then says nothing about the key. A key that was used from the
address before goes on working there, so that one program with a wrong key does not lock its neighbours out. Each worker
counts by itself; what is counted is bounded, and costs a request with a right key two look-ups.
"""

import math

import cachetools
import structlog
from aiohttp import web

from proxy import errors
from proxy.gateway.applications import Applications, Client
from proxy.kit.clock import Clock
from proxy.kit.windows import Window, Windows
from proxy.telemetry.metrics import Metrics
from proxy.web.client_address import ClientAddresses, Origin

SECONDS = 60.0  # in which so many wrong keys are allowed
ADDRESSES_MAX = 4_096  # addresses whose wrong keys are counted; beyond it the one that was quiet for longest goes
RECENT_SECONDS = 600.0  # that a key which was used from an address is remembered there, at least
RECENT_MAX = 10_000  # keys that are remembered of so long a time

OUTCOME = web.RequestKey("wrong_key", str)

log = structlog.get_logger()


class WrongKeys:
    """Looks up API keys, `limit` wrong ones a minute from one address; 0 is no limit."""

    def __init__(self, applications: Applications, limit: int, addresses: ClientAddresses, metrics: Metrics) -> None:
        self._applications = applications
        self._limit = limit
        self._addresses = addresses
        self._clock = clock = metrics.clock
        self._metrics = metrics
        self._counted: cachetools.LRUCache[str, Windows] = cachetools.LRUCache(ADDRESSES_MAX)
        self._refused: dict[str, float] = {}  # until when, by address, in the clock's monotonic seconds
        self._recent = _RecentKeys(clock)

    def client(self, request: web.Request, apikey: str | None) -> Client:
        """Who sends a key. Raises MissingKey, ForbiddenKey, and TooManyRequests for an address that is refused."""
        if not self._limit:
            return self._applications.client(apikey)
        origin = self._addresses.of(request)
        wait = self._wait(origin.group) if self._refused else 0.0
        if wait and not self._recent.any(origin.group):
            raise self._throttled(request, wait)
        try:
            client = self._applications.client(apikey)
        except errors.ForbiddenKey:
            if wait:
                raise self._throttled(request, wait) from None
            if self._is_new(request, "forbidden"):
                self._count(origin)
            raise
        if not self._recent.has(origin.group, client):
            if wait:
                raise self._throttled(request, wait)
            self._recent.add(origin.group, client)
        return client

    def check(self, request: web.Request, client: Client) -> None:
        """The same for a request whose client is known. Raises TooManyRequests."""
        if not self._limit:
            return
        group = self._addresses.of(request).group
        if client.accounts.key.name in self._recent.now.get(group, ()) or self._recent.has(group, client):
            return
        if self._refused and (wait := self._wait(group)):
            raise self._throttled(request, wait)
        self._recent.add(group, client)

    def _count(self, origin: Origin) -> None:
        """One more wrong key; the limit's last one refuses the address until the first of them is a minute old."""
        counted = self._counted.get(origin.group)
        if counted is None:
            counted = self._counted[origin.group] = Windows((Window(self._limit, SECONDS),), self._clock)
        counted.try_take()
        if wait := counted.wait():
            self._forget_past()
            self._refused[origin.group] = self._clock.monotonic() + wait
            log.warning("wrong API keys throttled", address=origin.address, limit=self._limit, retry_in=math.ceil(wait))

    def _wait(self, group: str) -> float:
        """Seconds that an address is still refused; 0.0 if it is not."""
        until = self._refused.get(group)
        if until is None:
            return 0.0
        if (wait := until - self._clock.monotonic()) > 0:
            return wait
        del self._refused[group]
        return 0.0

    def _forget_past(self) -> None:
        if len(self._refused) >= ADDRESSES_MAX:
            now = self._clock.monotonic()
            self._refused = {group: until for group, until in self._refused.items() if until > now}
        if len(self._refused) >= ADDRESSES_MAX:
            del self._refused[next(iter(self._refused))]

    def _is_new(self, request: web.Request, outcome: str) -> bool:
        """Count an outcome in the metrics, once a request: where the old service answers, keys are looked up twice."""
        if request.get(OUTCOME) is not None:
            return False
        request[OUTCOME] = outcome
        self._metrics.wrong_api_keys[outcome,] += 1
        return True

    def _throttled(self, request: web.Request, wait: float) -> errors.TooManyRequests:
        self._is_new(request, "throttled")
        seconds = max(1, math.ceil(wait))
        return errors.TooManyRequests(
            f"too many wrong API keys came from your address; try again in {seconds} s", retry_after=seconds
        )


class _RecentKeys:
    """Which keys were used from which addresses lately: in this period, or in the one before."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.now: dict[str, set[str]] = {}
        self._before: dict[str, set[str]] = {}
        self._size = 0
        self._ends = clock.monotonic() + RECENT_SECONDS

    def has(self, group: str, client: Client) -> bool:
        names = self.now.get(group)
        if names is not None and client.accounts.key.name in names:
            return True
        if client.accounts.key.name in self._before.get(group, ()):
            self.add(group, client)
            return True
        return False

    def any(self, group: str) -> bool:
        return group in self.now or group in self._before

    def add(self, group: str, client: Client) -> None:
        now = self._clock.monotonic()
        if now >= self._ends or self._size >= RECENT_MAX:
            self.now, self._before = {}, self.now
            self._size, self._ends = 0, now + RECENT_SECONDS
        self.now.setdefault(group, set()).add(client.accounts.key.name)
        self._size += 1
