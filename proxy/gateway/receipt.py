"""What one request came to: made when it arrives, filled in on its way, shown in the reply's headers."""

from math import inf

RANK = {"hit": 0, "shared": 1, "miss": 2, "stale": 3}


class Receipt:
    """`since` is when the request's time began, `until` how long the same reply may be given again, both in the clock's
    monotonic seconds. `cost` is parts returned or in doubt. `source` is where the answers came from, the most telling
    where they differ; None where no part was asked for. `answers` is how many there were, one that stands in for
    another counted twice. `unsupported` are the parameters that the answer leaves out of account.
    """

    __slots__ = ("answers", "cost", "since", "source", "unsupported", "until")

    def __init__(self, since: float) -> None:
        self.since = since
        self.cost = 0
        self.answers = 0
        self.source: str | None = None
        self.unsupported: tuple[str, ...] = ()
        self.until = inf

    def saw(self, source: str, number: int = 1) -> None:
        """Where so many more answers came from: `hit`, `shared`, `miss` or `stale`."""
        self.answers += number
        if self.source is None or RANK[source] > RANK[self.source]:
            self.source = source


HIT = Receipt(0.0)  # of a reply that is given again
HIT.saw("hit")
