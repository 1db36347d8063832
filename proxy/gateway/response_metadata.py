"""Metadata of a response, for its headers and its log line."""

from collections.abc import Iterable
from math import inf

from proxy.gateway.results import Answer
from proxy.kit.clock import Clock
from proxy.store import protocol

# Of several sources the one that says most about age and cost is reported.
_RANK = {"hit": 0, "shared": 1, "miss": 2, "stale": 3}


class ResponseMetadata:
    """Metadata of one response: made when the request arrives, filled in from the answers to its queries.

    `since` is when the request's time began, `stored` when the oldest of its results was fetched, `until` how long its
    response may be reused, in the clock's monotonic seconds. `cost` is parts used or uncertain. `source` is where the
    results came from (`hit`, `shared`, `miss` or `stale`), the last of these where they differ; None where no part was
    requested. `results` is how many there were; a stale one is counted as what it replaces. `unsupported` are the
    parameters that the response ignores, `unknown` those of them that v3 never had, `sourceless` the fields without
    source that the request names. `lacking` are features that the request asks for, and parts were fetched without.
    """

    __slots__ = (
        "cost",
        "lacking",
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
        self.lacking: frozenset[str] = frozenset()
        self.cost = 0
        self.results = 0
        self.source: str | None = None
        self.unsupported: tuple[str, ...] = ()
        self.stored = inf
        self.until = inf

    def add(self, answers: Iterable[Answer], clock: Clock, asked: frozenset[str] = frozenset()) -> None:
        """Note where answers come from, and how long they are fresh. `asked` are features that the request asks for."""
        ahead = clock.monotonic() - clock.now()
        for answer in answers:
            source = answer.source if answer.error is None else "miss"
            self.cost += answer.parts
            self.results += source != "stale"
            if self.source is None or _RANK[source] > _RANK[self.source]:
                self.source = source
            if answer.result is None or answer.is_partial:
                self.until = 0.0  # another attempt may have a better result
            if answer.result is not None:
                fetched = answer.result.fetched + ahead if answer.result.fetched else clock.monotonic()
                seconds = protocol.FRESH_SECONDS if answer.result.items else protocol.EMPTY_SECONDS
                self.stored, self.until = min(self.stored, fetched), min(self.until, fetched + seconds)
                self.lacking |= asked - answer.features

    def ignore(self, names: tuple[str, ...]) -> None:
        """Note the parameters that the response ignores."""
        self.unsupported = (*self.unknown, *names)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters and fields that the request names and the service does not support."""
        return (*self.unsupported, *self.sourceless) if self.unsupported or self.sourceless else ()
