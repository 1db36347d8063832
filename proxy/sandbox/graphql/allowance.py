"""What one execution may use up: time, and fields of its answer. Handed to the executor by the query service.

An execution holds up all others while it runs, so an end is put to one that takes too long or grows too large; lists
within lists make a short document do that.
"""

from proxy.kit import clock as clocks
from proxy.sandbox.graphql import problems


class Allowance:
    """`seconds` from now on, and so many `fields`. `refused`: what it was that went over."""

    def __init__(self, clock: clocks.Clock, seconds: float, fields: int) -> None:
        self._clock, self._seconds, self._fields = clock, seconds, fields
        self._end, self._left = clock.monotonic() + seconds, fields
        self.refused: problems.RequestError | None = None

    def take(self, fields: int) -> None:
        """Use so many. Raises RequestError if that is too many or too late, and from then on always."""
        self._left -= fields
        if self._left < 0:
            self.refused = problems.too_complex(self._fields)
        elif self._clock.monotonic() > self._end:
            self.refused = problems.timed_out(self._seconds)
        if self.refused is not None:
            raise self.refused
