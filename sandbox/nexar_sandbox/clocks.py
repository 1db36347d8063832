"""Clocks, passed to constructors so that tests control the time."""

import time
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
