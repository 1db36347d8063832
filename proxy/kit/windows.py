"""Several request limits at once: so many a second, so many a week, all or nothing.

The identity service of the sandbox holds its callers to such limits; the token client keeps to them before it
asks. Exact (the times of taken requests are kept, not counts of them), in memory, for one process.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from proxy.kit import clock as clocks


@dataclass(frozen=True, slots=True)
class Window:
    """At most `count` requests in any `seconds`."""

    count: int
    seconds: float

    def __post_init__(self) -> None:
        if self.count < 1 or self.seconds <= 0:
            raise ValueError(f"a window needs a count >= 1 and seconds > 0, not {self.count} and {self.seconds}")


class Windows:
    """A sliding log over all windows. Holds at most as many times as the largest count."""

    def __init__(self, windows: Iterable[Window], clock: clocks.Clock) -> None:
        self._windows = tuple(windows)
        self._clock = clock
        self._taken: deque[float] = deque(maxlen=max((window.count for window in self._windows), default=0))

    def try_take(self) -> float:
        """0.0: a request is taken from every window. Else none is: the seconds until it would be."""
        wait = self.wait()
        if wait == 0.0:
            self._taken.append(self._clock.monotonic())
        return wait

    def wait(self) -> float:
        """The seconds until a request can be taken; takes none."""
        now = self._clock.monotonic()
        return max((self._wait(window, now) for window in self._windows), default=0.0)

    def _wait(self, window: Window, now: float) -> float:
        """Seconds until the oldest request that fills `window` has left it."""
        if len(self._taken) < window.count:
            return 0.0
        return max(0.0, self._taken[-window.count] + window.seconds - now)
