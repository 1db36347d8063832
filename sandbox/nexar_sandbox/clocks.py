"""Clocks, passed to constructors so that tests control the time, and rate limits."""

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Source of wall-clock and monotonic time."""

    def now(self) -> float:
        """Seconds since 1970-01-01 UTC."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes backwards."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class Window:
    """Limit of `count` requests within any `seconds`."""

    count: int
    seconds: float


class Windows:
    """Rate limit with several sliding windows, by the times of requests: at most as many as the largest count."""

    def __init__(self, windows: Iterable[Window], clock: Clock) -> None:
        self._windows = tuple(windows)
        self._clock = clock
        self._taken: deque[float] = deque(maxlen=max((window.count for window in self._windows), default=0))

    def try_take(self) -> float:
        """Count a request in all windows and return 0.0, or count none and return the seconds until it is allowed."""
        now = self._clock.monotonic()
        wait = max((self._wait(window, now) for window in self._windows), default=0.0)
        if wait == 0.0:
            self._taken.append(now)
        return wait

    def _wait(self, window: Window, now: float) -> float:
        """Return the seconds until the oldest request of a full `window` leaves it."""
        if len(self._taken) < window.count:
            return 0.0
        # Further requests of the window are newer: the oldest of the last `count` decides.
        return max(0.0, self._taken[-window.count] + window.seconds - now)
