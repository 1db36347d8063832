"""Authentication by API key, with a limit of wrong keys for each client address, in each worker.

An address beyond the limit gets a 429 for any key, so that guessing is no faster than the limit. Keys that were used
from the address recently go on working there: one program locks out no neighbors.
"""

import math

import structlog
from aiohttp import hdrs

from proxy import config, errors
from proxy.gateway import Client, Gateway, SeenRequests
from proxy.kit.clock import SlidingWindow, Window
from proxy.web.messages import ClientAddress, Request

WINDOW_SECONDS = 60.0  # of the limit
RECENT_SECONDS = 600.0  # for which a key goes on working from an address that has used it, at least
NOTED_SECONDS = 60.0  # after which a use is noted again
RECENT_MAX = 10_000  # uses that are remembered for that time

log = structlog.get_logger()


class Authenticator:
    """Finds the client of an API key, and admits its requests. `seen` counts API keys that no application has. Counts
    of wrong and recent keys are the process's: a reload gives nobody new attempts, and takes no recent key from a
    throttled address."""

    def __init__(self, gateway: Gateway, seen: SeenRequests) -> None:
        self._applications, self._metrics, self._seen = gateway.applications, gateway.metrics, seen
        self._limit = gateway.settings.listen.failed_auth_per_minute  # wrong keys of an address; 0: any number
        self._clock, self._count = gateway.clock, gateway.admit
        self._wrong = gateway.process.wrong_keys if self._limit else {}
        self._recent = gateway.process.recent_keys
        self._ended: set[str] = set()  # names of the clients whose end has been logged

    def client(self, request: Request, apikey: str) -> Client:
        """Return the client of a key. Raises MissingKey, ForbiddenKey and, beyond the limit, TooManyRequests."""
        try:
            return self._applications.client(apikey)
        except errors.ForbiddenKey:
            self.throttle(request.origin)
            agent, digest = request.headers.get(hdrs.USER_AGENT, ""), config.hex_digest(apikey)
            self._seen.add_unknown(apikey, digest, request.origin.address, agent, self._clock.now())
            raise

    def admit(self, request: Request, client: Client, *, is_v3: bool = True) -> None:
        """Admit a request, and count it against the rate of its client. Raises ExpiredKey after the key's last day, and
        Gone after the sunset of v3, which cost neither rate nor quota; TooManyRequests."""
        self.check(request.origin, client)
        request.client = client
        if client.sunset or client.expires:
            refusal = client.refusal(self._clock.now(), is_v3=is_v3)
            if client.sunset and is_v3:
                request.added |= client.sunset.headers
            if refusal is not None:
                if client.name not in self._ended:
                    self._ended.add(client.name)
                    event = "API key expired" if isinstance(refusal, errors.ExpiredKey) else "sunset passed"
                    log.warning(event, application=client.application.name, key=client.key)
                raise refusal
        if client.rate:
            self._count(client)

    def check(self, origin: ClientAddress, client: Client) -> None:
        """Check the limit for a request whose client is known. Raises TooManyRequests: a right guess is refused like a
        wrong one, unless the key works from there already."""
        key, now = (origin.group, client.charged[-1].id), self._clock.monotonic()
        age = now - self._recent.get(key, -math.inf)
        if age >= NOTED_SECONDS:
            if age >= RECENT_SECONDS + NOTED_SECONDS:
                self.throttle(origin, is_wrong=False)
            self._recent.pop(key, None)
            self._recent[key] = now
            if len(self._recent) > RECENT_MAX:
                del self._recent[next(iter(self._recent))]

    def throttle(self, origin: ClientAddress, *, is_wrong: bool = True) -> None:
        """Count a wrong key, or a request whose key cannot be read, if it `is_wrong`. At the limit the address is
        refused until the oldest of them leaves the window. Raises TooManyRequests then."""
        counted = self._wrong.get(origin.group)
        if counted is not None and (wait := counted.wait()):
            self._metrics.wrong_api_keys.inc("throttled")
            seconds = max(1, math.ceil(wait))
            message = f"too many wrong API keys from your address; try again in {seconds} s"
            raise errors.TooManyRequests(message, retry_after=seconds) from None
        if not is_wrong or not self._limit:
            return
        self._metrics.wrong_api_keys.inc("forbidden")
        if counted is None:
            counted = self._wrong[origin.group] = SlidingWindow(Window(self._limit, WINDOW_SECONDS), self._clock)
        counted.try_take()
        if wait := counted.wait():
            log.warning("wrong API keys throttled", address=origin.address, limit=self._limit, retry_in=math.ceil(wait))
