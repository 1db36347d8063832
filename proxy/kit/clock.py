"""Clocks, passed to constructors so that tests control the time."""

import functools
import time
from typing import Protocol


class Clock(Protocol):
    """Source of wall-clock and monotonic time."""

    def now(self) -> float:
        """Seconds since 1970-01-01 UTC."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start, also those of a suspended machine; never goes backwards."""


class SystemClock:
    """Clock of the operating system. A request reads it forty times, so that a method of its own would count."""

    now = staticmethod(time.time)
    # Linux stops `time.monotonic` while the machine is suspended: what is kept would not age.
    monotonic = staticmethod(
        functools.partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
    )


class ManualClock:
    """Clock that moves only by `advance`; for tests."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward by `seconds`."""
        self._now += seconds
