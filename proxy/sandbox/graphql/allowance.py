"""What one execution may use up: time, and fields of its answer. Handed to the executor by the query service.

An execution holds up all others while it runs, so an end is put to one that takes too long or grows too large; lists
within lists make a short document do that.
"""

import math

from proxy.kit import clock as clocks
from proxy.sandbox.graphql import problems

# Fields between two looks at the clock, which all of them together would feel.
_BETWEEN = 64


class Allowance:
    """`seconds` from now on, and so many `fields`. `refused`: what it was that went over."""

    def __init__(self, clock: clocks.Clock, seconds: float, fields: int) -> None:
        self._clock, self._seconds, self._fields = clock, seconds, fields
        self._end, self._left = clock.monotonic() + seconds, fields
        self._next: float = fields
        self.refused: problems.RequestError | None = None

    def take(self, fields: int) -> None:
        """Use so many. Raises RequestError if that is too many or, seen now and then, too late; from then on always."""
        self._left -= fields
        if self._left < self._next:
            self.look()

    def look(self) -> None:
        """Raises RequestError if too many were used, or if it is too late."""
        if self._left < 0:
            self.refused = problems.too_complex(self._fields)
        elif self._clock.monotonic() > self._end:
            self.refused = problems.timed_out(self._seconds)
        if self.refused is not None:
            self._next = math.inf
            raise self.refused
        self._next = max(self._left - _BETWEEN, 0)
