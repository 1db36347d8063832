"""Rate limit with a sliding window. Exact, because it keeps the time of each request; in memory, for one process."""

from collections import deque
from dataclasses import dataclass

from proxy.kit import clock as clocks


@dataclass(frozen=True, slots=True)
class Window:
    """Limit of `count` requests within any `seconds`."""

    count: int
    seconds: float


class SlidingWindow:
    """Log of the times of the last requests, as many as the window allows."""

    def __init__(self, window: Window, clock: clocks.Clock) -> None:
        self._window, self._clock = window, clock
        self._taken: deque[float] = deque(maxlen=window.count)

    def try_take(self) -> float:
        """Count a request and return 0.0, or count none and return the seconds until it is allowed."""
        wait = self.wait()
        if wait == 0.0:
            self._taken.append(self._clock.monotonic())
        return wait

    def wait(self) -> float:
        """Return the seconds until a request is allowed; counts none."""
        if len(self._taken) < self._window.count:
            return 0.0
        return max(0.0, self._taken[0] + self._window.seconds - self._clock.monotonic())
