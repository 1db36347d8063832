"""How often a side may be asked: one call after another, never closer together than its rate allows.

v3 held its free tier to three requests a second and answered more with 429; a burst would be answered with refusals.
"""

from collections.abc import Awaitable, Callable

from proxy.kit.clock import Clock

Sleep = Callable[[float], Awaitable[None]]


class Pace:
    """Turns at `a_second`, evenly spread; 0 is no limit."""

    def __init__(self, a_second: float, clock: Clock, sleep: Sleep) -> None:
        self._apart = 1 / a_second if a_second else 0.0
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for one's turn."""
        now = self._clock.monotonic()
        at = max(now, self._next)
        self._next = at + self._apart
        if at > now:
            await self._sleep(at - now)

    def hold(self, seconds: float) -> None:
        """Let nobody have a turn for so long, from now on."""
        self._next = max(self._next, self._clock.monotonic() + seconds)
