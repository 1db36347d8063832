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
from proxy.kit.clock import SlidingWindow, Window
from proxy.metrics import Metrics
from proxy.seen import SeenRequests
from proxy.web.routing import STATE, ClientAddress

WINDOW_SECONDS = 60.0  # of the limit
ADDRESSES_MAX = 4_096  # whose wrong keys are counted; the least recently used is forgotten
RECENT_SECONDS = 600.0  # for which a key goes on working from an address that has used it, at least
NOTED_SECONDS = 60.0  # after which a use is noted again
RECENT_MAX = 10_000  # uses that are remembered for that time

log = structlog.get_logger()


class Authenticator:
    """Finds the client of an API key. Allows `limit` wrong keys a minute and address; 0 is no limit. `seen` counts
    API keys that no application has."""

    def __init__(self, applications: Applications, limit: int, metrics: Metrics, seen: SeenRequests) -> None:
        self._applications, self._limit, self._metrics, self._seen = applications, limit, metrics, seen
        self._clock = metrics.clock
        self._wrong: cachetools.LRUCache[str, SlidingWindow] = cachetools.LRUCache(ADDRESSES_MAX)
        # When an account was last charged for a request from an address.
        self._recent: cachetools.LRUCache[tuple[str, str], float] = cachetools.LRUCache(RECENT_MAX)

    def adopt(self, replaced: "Authenticator") -> None:
        """Take over the counts of the authenticator that this one replaces: a reload gives nobody new attempts, and
        takes no recent key from a throttled address."""
        self._recent = replaced._recent
        if self._limit:
            self._wrong = replaced._wrong

    def client(self, request: web.BaseRequest, apikey: str | None) -> Client:
        """Return the client of a key. Raises MissingKey, ForbiddenKey, and TooManyRequests for an address beyond the
        limit."""
        origin = request[STATE].origin
        try:
            client = self._applications.client(apikey)
        except errors.ForbiddenKey:
            self.fail(origin)
            if apikey:
                agent, digest = request.headers.get(hdrs.USER_AGENT, ""), config.digest(apikey).reveal()
                self._seen.add_unknown(apikey, digest, origin.address, agent, self._clock.now())
            raise
        self.check(origin, client)
        return client

    def check(self, origin: ClientAddress, client: Client) -> None:
        """Check the limit for a request whose client is known. Raises TooManyRequests: a right guess is refused like a
        wrong one, unless the key works from there already."""
        key, now = (origin.group, client.charged[-1].id), self._clock.monotonic()
        age = now - self._recent.get(key, -math.inf)
        if age >= NOTED_SECONDS:
            if age >= RECENT_SECONDS + NOTED_SECONDS and (wait := self._wait(origin)):
                raise self._throttled(wait)
            self._recent[key] = now

    def fail(self, origin: ClientAddress) -> None:
        """Count a wrong key, or a request whose key cannot be read. At the limit the address is refused until the
        oldest of them leaves the window. Raises TooManyRequests then."""
        if wait := self._wait(origin):
            raise self._throttled(wait) from None
        if not self._limit:
            return
        self._metrics.wrong_api_keys.labels("forbidden").inc()
        counted = self._wrong.get(origin.group)
        if counted is None:
            counted = self._wrong[origin.group] = SlidingWindow(Window(self._limit, WINDOW_SECONDS), self._clock)
        counted.try_take()
        if wait := counted.wait():
            log.warning("wrong API keys throttled", address=origin.address, limit=self._limit, retry_in=math.ceil(wait))

    def _wait(self, origin: ClientAddress) -> float:
        """Return the seconds until an address is no longer refused; 0.0 if it is not refused."""
        counted = self._wrong.get(origin.group)
        return 0.0 if counted is None else counted.wait()

    def _throttled(self, wait: float) -> errors.TooManyRequests:
        self._metrics.wrong_api_keys.labels("throttled").inc()
        seconds = max(1, math.ceil(wait))
        message = f"too many wrong API keys from your address; try again in {seconds} s"
        return errors.TooManyRequests(message, retry_after=seconds)
