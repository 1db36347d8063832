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
from proxy.kit.windows import SlidingWindow, Window
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.seen import SeenRequests
from proxy.web.client_address import ClientAddress
from proxy.web.routing import STATE

WINDOW_SECONDS = 60.0  # of the limit
ADDRESSES_MAX = 4_096  # addresses whose wrong keys are counted; the least recently used is evicted
RECENT_SECONDS = 600.0  # for which a key is remembered as used from an address, at least
RECENT_MAX = 10_000  # keys that are remembered for that time

log = structlog.get_logger()


class Authenticator:
    """Finds the client of an API key. Allows `limit` wrong keys a minute and address; 0 is no limit. `seen` counts
    API keys that no application has; None: nobody is recorded."""

    def __init__(self, applications: Applications, limit: int, metrics: Metrics, seen: SeenRequests | None) -> None:
        self._applications = applications
        self._limit = limit
        self._clock = metrics.clock
        self._metrics = metrics
        self._seen = seen
        self._counted: cachetools.LRUCache[str, SlidingWindow] = cachetools.LRUCache(ADDRESSES_MAX)
        self._refused: dict[str, float] = {}  # address to the end of its refusal, in monotonic seconds
        # Accounts of keys by address: those of this period and of the one before, so that none needs a time of its own.
        self._recent: dict[str, set[str]] = {}
        self._before: dict[str, set[str]] = {}
        self._recent_size, self._period_ends = 0, self._clock.monotonic() + RECENT_SECONDS

    def adopt(self, replaced: "Authenticator") -> None:
        """Take over the counts of the authenticator that this one replaces: a reload gives nobody new attempts, and
        takes no recent key from a throttled address."""
        self._counted, self._refused = replaced._counted, replaced._refused
        self._recent, self._before = replaced._recent, replaced._before
        self._recent_size, self._period_ends = replaced._recent_size, replaced._period_ends

    def client(self, request: web.BaseRequest, apikey: str | None) -> Client:
        """Return the client of a key. Raises MissingKey, ForbiddenKey, and TooManyRequests for an address beyond the
        limit."""
        origin = request[STATE].origin
        wait = self._wait(origin.group)
        # Before the key is looked up, so that a right guess is refused like a wrong one.
        if wait and origin.group not in self._recent and origin.group not in self._before:
            raise self._throttled(wait)
        try:
            client = self._applications.client(apikey)
        except errors.ForbiddenKey:
            if wait:
                raise self._throttled(wait) from None
            if self._limit:
                self._metrics.wrong_api_keys.labels("forbidden").inc()
                self._add_wrong_key(origin)
            if self._seen is not None and apikey:
                agent, digest = request.headers.get(hdrs.USER_AGENT, ""), config.digest(apikey).reveal()
                self._seen.add_unknown(apikey, digest, origin.address, agent, self._clock.now())
            raise
        self.check(origin, client)
        return client

    def check(self, origin: ClientAddress, client: Client) -> None:
        """Check the limit for a request whose client is known. Raises TooManyRequests."""
        names = self._recent.get(origin.group)
        # A key that works from there goes on working, whoever else fails behind the same address.
        if not self._limit or (names is not None and client.charged[-1].id in names):
            return
        if client.charged[-1].id not in self._before.get(origin.group, ()) and (wait := self._wait(origin.group)):
            raise self._throttled(wait)
        now = self._clock.monotonic()
        if now >= self._period_ends or self._recent_size >= RECENT_MAX:
            self._before, self._recent = self._recent, {}
            self._recent_size, self._period_ends = 0, now + RECENT_SECONDS
        self._recent.setdefault(origin.group, set()).add(client.charged[-1].id)
        self._recent_size += 1

    def _add_wrong_key(self, origin: ClientAddress) -> None:
        """Count a wrong key. At the limit the address is refused until the oldest of them leaves the window."""
        counted = self._counted.get(origin.group)
        if counted is None:
            counted = self._counted[origin.group] = SlidingWindow(Window(self._limit, WINDOW_SECONDS), self._clock)
        counted.try_take()
        if wait := counted.wait():
            now = self._clock.monotonic()
            if len(self._refused) >= ADDRESSES_MAX:
                self._refused = {group: until for group, until in self._refused.items() if until > now}
            if len(self._refused) >= ADDRESSES_MAX:
                # Still full: the oldest goes. An attacker with thousands of addresses is not stopped by this anyway.
                del self._refused[next(iter(self._refused))]
            self._refused[origin.group] = now + wait
            log.warning("wrong API keys throttled", address=origin.address, limit=self._limit, retry_in=math.ceil(wait))

    def _wait(self, group: str) -> float:
        """Return the seconds until an address is no longer refused; 0.0 if it is not refused."""
        if (until := self._refused.get(group)) is None or not self._limit:
            return 0.0
        if (wait := until - self._clock.monotonic()) > 0:
            return wait
        del self._refused[group]
        return 0.0

    def _throttled(self, wait: float) -> errors.TooManyRequests:
        self._metrics.wrong_api_keys.labels("throttled").inc()
        seconds = max(1, math.ceil(wait))
        message = f"too many wrong API keys from your address; try again in {seconds} s"
        return errors.TooManyRequests(message, retry_after=seconds)
