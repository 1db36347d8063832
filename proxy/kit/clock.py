"""Clocks, passed to constructors so that tests control the time, and limits of a rate by them."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial


class Clock:
    """Clock of the operating system: `now` in seconds since 1970-01-01 UTC, `monotonic` in seconds since an arbitrary
    start, which never goes backwards."""

    now: Callable[[], float] = staticmethod(time.time)
    # Linux stops `time.monotonic` while the machine is suspended: what is kept would not age.
    monotonic: Callable[[], float] = staticmethod(
        partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    )


@dataclass(eq=False)
class ManualClock(Clock):
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


@dataclass(eq=False)
class SlidingWindow:
    """Rate limit of one process: exact, because it has the times of the last requests, as many as the window allows."""

    window: Window
    clock: Clock
    _taken: deque[float] = field(default_factory=deque)

    def try_take(self) -> float:
        """Count a request and return 0.0, or count none and return the seconds until it is allowed."""
        wait = self.wait()
        if wait == 0.0:
            if len(self._taken) == self.window.count:
                self._taken.popleft()
            self._taken.append(self.clock.monotonic())
        return wait

    def wait(self) -> float:
        """Return the seconds until a request is allowed; counts none."""
        if len(self._taken) < self.window.count:
            return 0.0
        return max(0.0, self._taken[0] + self.window.seconds - self.clock.monotonic())
