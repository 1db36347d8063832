"""What one request came to: made when it arrives, filled in on its way, shown in the reply's headers."""

from math import inf

RANK = {"hit": 0, "shared": 1, "miss": 2, "stale": 3}


class Receipt:
    """`cost` is parts returned. `source` is where the answers came from, the most telling where they differ; None where
    no part was asked for. `until`, in the clock's monotonic seconds, is how long the same reply may be given again.
    """

    __slots__ = ("cost", "source", "until")

    def __init__(self) -> None:
        self.cost = 0
        self.source: str | None = None
        self.until = inf

    def saw(self, source: str) -> None:
        """Where one more answer came from: `hit`, `shared`, `miss` or `stale`."""
        if self.source is None or RANK[source] > RANK[self.source]:
            self.source = source


HIT = Receipt()  # of a reply that is given again
HIT.saw("hit")
