"""Rate limit of API keys: so many requests in any second. Off unless configured.

v3 limited its free tier to 3 a second (contract v3-rest.md §5). Each worker counts its own requests, and admits its
part of the rate.
"""

import math

from proxy import errors
from proxy.gateway.applications import Client
from proxy.kit import clock as clocks
from proxy.kit.windows import SlidingWindow, Window
from proxy.kit.wording import counted


class RateLimits:
    """Rate limits of all API keys, in one of several `workers`."""

    def __init__(self, workers: int, clock: clocks.Clock) -> None:
        self._workers = workers
        self._clock = clock
        self._windows: dict[tuple[str, int], SlidingWindow] = {}

    def admit(self, client: Client) -> None:
        """Count a request. Raises TooManyRequests for a key that is over its limit."""
        if not client.rate:
            return
        counted_as = client.name, client.rate
        if counted_as not in self._windows:
            own = Window(math.ceil(client.rate / self._workers), 1.0)
            self._windows[counted_as] = SlidingWindow(own, self._clock)
        if wait := self._windows[counted_as].try_take():
            raise errors.TooManyRequests(
                f"{client.name} may make no more than {counted(client.rate, 'request')} in a second",
                retry_after=max(1, math.ceil(wait)),
            )
