"""Metadata of a response, for its headers and its log line."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from proxy.gateway.results import Answer
from proxy.kit.clock import Clock
from proxy.store import protocol

# Of several sources the one that says most about age and cost is reported.
_RANK = {"hit": 0, "shared": 1, "miss": 2, "stale": 3}


@dataclass(slots=True, eq=False)
class ResponseMetadata:
    """Metadata of one response: made when the request arrives, filled in from the answers to its queries. Times are in
    the clock's monotonic seconds."""

    since: float  # when the request's time began
    sourceless: tuple[str, ...] = ()  # fields without source that the request names
    unknown: tuple[str, ...] = ()  # ignored parameters that v3 never had
    unsupported: tuple[str, ...] = ()  # all parameters that the response ignores
    lacking: frozenset[str] = frozenset()  # features that the request asks for, and parts were fetched without
    cost: int = 0  # parts used or uncertain
    results: int = 0  # of which a stale one is counted as what it replaces
    source: str | None = None  # hit, shared, miss or stale: the last of these of all results; None without any
    stored: float = inf  # when the oldest result was fetched
    until: float = inf  # until when the response may be reused

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
