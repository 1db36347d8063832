"""Rate limit with several sliding windows, such as 2 requests a second and 200 in 15 minutes.

Used by the token client and the rate limits of API keys. Exact, because it keeps the time of each request; in memory,
for one process.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from proxy.kit import clock as clocks


@dataclass(frozen=True, slots=True)
class Window:
    """Limit of `count` requests within any `seconds`."""

    count: int
    seconds: float


class Windows:
    """Log of request times, checked against all windows. Keeps at most as many times as the largest count."""

    def __init__(self, windows: Iterable[Window], clock: clocks.Clock) -> None:
        self._windows = tuple(windows)
        self._clock = clock
        self._taken: deque[float] = deque(maxlen=max((window.count for window in self._windows), default=0))

    def try_take(self) -> float:
        """Count a request in all windows and return 0.0, or count none and return the seconds until it is allowed."""
        wait = self.wait()
        if wait == 0.0:
            self._taken.append(self._clock.monotonic())
        return wait

    def wait(self) -> float:
        """Return the seconds until a request is allowed; counts none."""
        now = self._clock.monotonic()
        return max((self._wait(window, now) for window in self._windows), default=0.0)

    def _wait(self, window: Window, now: float) -> float:
        """Return the seconds until the oldest request of a full `window` leaves it."""
        if len(self._taken) < window.count:
            return 0.0
        # Further requests of the window are newer: the oldest of the last `count` decides.
        return max(0.0, self._taken[-window.count] + window.seconds - now)
