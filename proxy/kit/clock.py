"""Time as an argument: whoever needs the time is handed a clock, so that a test can turn it."""

import time
from typing import Protocol


class Clock(Protocol):
    """What the rest of the code may ask about time."""

    def now(self) -> float:
        """Seconds since 1970-01-01 UTC."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never go backwards."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is turned; for tests."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Turn the clock forward by `seconds`."""
        self._now += seconds
