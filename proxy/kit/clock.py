"""Clocks, passed to constructors so that tests control the time, and limits of a rate by them."""

import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Protocol


class Clock(Protocol):
    """Source of wall-clock and monotonic time."""

    def now(self) -> float:
        """Seconds since 1970-01-01 UTC."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start, also those of a suspended machine; never goes backwards."""


class SystemClock:
    """Clock of the operating system."""

    now = staticmethod(time.time)
    # Linux stops `time.monotonic` while the machine is suspended: what is kept would not age.
    monotonic = staticmethod(partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)))


@dataclass(eq=False)
class ManualClock:
    """Clock that moves only by `advance`; for tests."""

    _now: float = 1_700_000_000.0

    def now(self) -> float:
        return self._now

    monotonic = now

    def advance(self, seconds: float) -> None:
        self._now += seconds


@dataclass(frozen=True)
class Window:
    """Limit of `count` requests within any `seconds`."""

    count: int
    seconds: float


class SlidingWindow:
    """Rate limit of one process: exact, because it has the times of the last requests, as many as the window allows."""

    def __init__(self, window: Window, clock: Clock) -> None:
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
