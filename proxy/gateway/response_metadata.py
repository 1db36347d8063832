"""Metadata of a response, for its headers and its log line."""

from math import inf

# Of several sources the one that says most about age and cost is reported.
_RANK = {"hit": 0, "shared": 1, "miss": 2, "stale": 3}


class ResponseMetadata:
    """Metadata of one response: made when the request arrives, filled in by the pipeline.

    `since` is when the request's time began, `stored` when the oldest of its results was fetched, `until` how long its
    response may be reused, in the clock's monotonic seconds. `cost` is parts used or uncertain. `source` is where the
    results came from (`hit`, `shared`, `miss` or `stale`), the last of these where they differ; None where no part was
    requested. `results` is how many there were; a stale one is counted as what it replaces. `unsupported` are the
    parameters that the response ignores, `unknown` those of them that v3 never had, `sourceless` the fields without
    source that the request names.
    """

    __slots__ = (
        "cost",
        "results",
        "since",
        "source",
        "sourceless",
        "stored",
        "unknown",
        "unsupported",
        "until",
    )

    def __init__(self, since: float) -> None:
        self.since = since
        self.sourceless: tuple[str, ...] = ()
        self.unknown: tuple[str, ...] = ()
        self.cost = 0
        self.results = 0
        self.source: str | None = None
        self.unsupported: tuple[str, ...] = ()
        self.stored = inf
        self.until = inf

    def add_results(self, source: str, number: int) -> None:
        """Count results from a source."""
        if source != "stale":
            self.results += number
        if self.source is None or _RANK[source] > _RANK[self.source]:
            self.source = source

    def ignore(self, names: tuple[str, ...]) -> None:
        """Note the parameters that the response ignores."""
        self.unsupported = (*self.unknown, *names)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters and fields that the request names and the service does not support."""
        return (*self.unsupported, *self.sourceless) if self.unsupported or self.sourceless else ()
