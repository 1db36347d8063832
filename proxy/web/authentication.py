"""Authentication by API key, with a limit of wrong keys for each client address.

An address beyond the limit gets a 429 for any key, so that guessing is no faster than the limit. Keys that were used
from the address recently go on working there: one program with a wrong key does not lock out its neighbors behind the
same address. Each worker counts by itself. Memory is bounded; a request with a right key costs two look-ups.
"""

import math

import cachetools
import structlog
from aiohttp import hdrs, web

from proxy import config, errors
from proxy.gateway.core import Applications, Client
from proxy.kit.clock import Clock
from proxy.kit.windows import Window, Windows
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.seen import SeenRequests
from proxy.web.client_address import ClientAddress, ClientAddressResolver

WINDOW_SECONDS = 60.0  # of the limit
ADDRESSES_MAX = 4_096  # addresses whose wrong keys are counted; the least recently used is evicted
RECENT_SECONDS = 600.0  # for which a key is remembered as used from an address, at least
RECENT_MAX = 10_000  # keys that are remembered for that time

log = structlog.get_logger()


class Authenticator:
    """Finds the client of an API key. Allows `limit` wrong keys a minute and address; 0 is no limit. `seen` counts
    API keys that no application has; None: nobody is recorded."""

    def __init__(
        self,
        applications: Applications,
        limit: int,
        addresses: ClientAddressResolver,
        metrics: Metrics,
        seen: SeenRequests | None,
    ) -> None:
        self._applications = applications
        self._limit = limit
        self._addresses = addresses
        self._clock = clock = metrics.clock
        self._metrics = metrics
        self._seen = seen
        self._counted: cachetools.LRUCache[str, Windows] = cachetools.LRUCache(ADDRESSES_MAX)
        self._refused: dict[str, float] = {}  # address to the end of its refusal, in monotonic seconds
        self._recent = _RecentKeys(clock)

    def adopt(self, replaced: "Authenticator") -> None:
        """Take over the counts of the authenticator that this one replaces: a reload gives nobody new attempts, and
        takes no recent key from a throttled address."""
        self._counted = replaced._counted
        self._refused = replaced._refused
        self._recent = replaced._recent

    def client(self, request: web.BaseRequest, apikey: str | None) -> Client:
        """Return the client of a key. Raises MissingKey, ForbiddenKey, and TooManyRequests for an address beyond the
        limit."""
        if not self._limit:
            try:
                return self._applications.client(apikey)
            except errors.ForbiddenKey:
                self._record_unknown(request, apikey)
                raise
        origin = self._addresses.from_request(request)
        wait = self._wait(origin.group) if self._refused else 0.0
        # Before the key is looked up, so that a right guess is refused like a wrong one.
        if wait and not self._recent.any(origin.group):
            raise self._throttled(wait)
        try:
            client = self._applications.client(apikey)
        except errors.ForbiddenKey:
            if wait:
                raise self._throttled(wait) from None
            self._metrics.wrong_api_keys.labels("forbidden").inc()
            self._add_wrong_key(origin)
            self._record_unknown(request, apikey)
            raise
        if not self._recent.has(origin.group, client):
            if wait:
                raise self._throttled(wait)
            self._recent.add(origin.group, client)
        return client

    def check(self, request: web.BaseRequest, client: Client) -> None:
        """Check the limit for a request whose client is known already. Raises TooManyRequests."""
        group = self._addresses.from_request(request).group
        # A key that works from there goes on working, whoever else fails behind the same address.
        if not self._limit or self._recent.has(group, client):
            return
        if self._refused and (wait := self._wait(group)):
            raise self._throttled(wait)
        self._recent.add(group, client)

    def _add_wrong_key(self, origin: ClientAddress) -> None:
        """Count a wrong key. At the limit the address is refused until the oldest of them leaves the window."""
        counted = self._counted.get(origin.group)
        if counted is None:
            counted = self._counted[origin.group] = Windows((Window(self._limit, WINDOW_SECONDS),), self._clock)
        counted.try_take()
        if wait := counted.wait():
            self._remove_expired()
            self._refused[origin.group] = self._clock.monotonic() + wait
            log.warning("wrong API keys throttled", address=origin.address, limit=self._limit, retry_in=math.ceil(wait))

    def _record_unknown(self, request: web.BaseRequest, apikey: str | None) -> None:
        """Count a request that is refused because no application has its API key."""
        if self._seen is not None and apikey:
            address = self._addresses.from_request(request).address
            agent = request.headers.get(hdrs.USER_AGENT, "")
            digest = config.digest(apikey).reveal()
            self._seen.add_unknown(apikey, digest, address, agent, self._clock.now())

    def _wait(self, group: str) -> float:
        """Seconds until an address is no longer refused; 0.0 if it is not refused."""
        until = self._refused.get(group)
        if until is None:
            return 0.0
        if (wait := until - self._clock.monotonic()) > 0:
            return wait
        del self._refused[group]
        return 0.0

    def _remove_expired(self) -> None:
        if len(self._refused) >= ADDRESSES_MAX:
            now = self._clock.monotonic()
            self._refused = {group: until for group, until in self._refused.items() if until > now}
        if len(self._refused) >= ADDRESSES_MAX:
            # Still full: the oldest goes. An attacker with thousands of addresses is not stopped by this table anyway.
            del self._refused[next(iter(self._refused))]

    def _throttled(self, wait: float) -> errors.TooManyRequests:
        self._metrics.wrong_api_keys.labels("throttled").inc()
        seconds = max(1, math.ceil(wait))
        return errors.TooManyRequests(
            f"too many wrong API keys from your address; try again in {seconds} s", retry_after=seconds
        )


class _RecentKeys:
    """Keys that were used from an address in the current or the previous period.

    Two sets that are swapped expire old entries without a timestamp for each.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.now: dict[str, set[str]] = {}
        self._before: dict[str, set[str]] = {}
        self._size = 0
        self._ends = clock.monotonic() + RECENT_SECONDS

    def has(self, group: str, client: Client) -> bool:
        names = self.now.get(group)
        if names is not None and client.name in names:
            return True
        if client.name in self._before.get(group, ()):
            self.add(group, client)
            return True
        return False

    def any(self, group: str) -> bool:
        return group in self.now or group in self._before

    def add(self, group: str, client: Client) -> None:
        now = self._clock.monotonic()
        if now >= self._ends or self._size >= RECENT_MAX:
            self._before = self.now
            self.now = {}
            self._size = 0
            self._ends = now + RECENT_SECONDS
        self.now.setdefault(group, set()).add(client.name)
        self._size += 1
