"""Answers to queries: what was fetched of a list, put together with its beginning that is stored; and what the headers
and the log line of a response say of its answers. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from proxy import errors, model
from proxy.kit.clock import Clock
from proxy.planning.queries import Fetched, Query, Received
from proxy.store import protocol
from proxy.store.protocol import Result

Source = Literal["hit", "shared", "miss", "stale"]


class Answer(NamedTuple):
    """What is known of a query: its result, which begins with the element `first` of its list, or why there is none.

    `features` are those that its parts were fetched with. `parts` are what it has cost, used or uncertain.
    `is_partial`: the upstream reported errors beside it; `reported` are those of an operation that was passed on.
    """

    result: Result | None
    error: errors.BridgeError | None = None
    source: Source = "hit"
    first: int = 0
    features: frozenset[str] = frozenset()
    parts: int = 0
    is_partial: bool = False
    reported: Sequence[model.GraphQLError] = ()

    @classmethod
    def passed_on(cls, query: Query, received: Received, parts: int = 0) -> "Answer":
        """Return the answer to a query that was passed on, and has cost so many parts."""
        result = Result(query.key, 1, 1, (), (), (), received.value)
        return cls(result, None, "miss", parts=parts, is_partial=bool(received.reported), reported=received.reported)


class Joined(NamedTuple):
    """Answer to a query, and the results to be stored: none of a partial answer. No answer: the list has grown or moved
    since its beginning was stored, and is to be fetched anew as a whole."""

    answer: Answer | None
    results: tuple[Result, ...] = ()


def joined(
    query: Query, stored: Result | None, fetched: Fetched, features: frozenset[str], *, is_partial: bool
) -> Joined:
    """Put together what was fetched behind a stored beginning, or without one."""
    parts = fetched.returned + fetched.lost
    if fetched.error is not None:
        return Joined(Answer(None, errors.QueryRefused(fetched.error), "miss", query.first, features, parts))
    result = Result(query.key, query.end - query.first, fetched.hits, fetched.items, fetched.bodies, fetched.part_ids)
    if stored is not None:
        if stored.hits != fetched.hits or not {hit.uid for hit in stored.items}.isdisjoint(
            hit.uid for hit in fetched.items
        ):
            return Joined(None)
        result = result._replace(
            items=stored.items + result.items,
            bodies=stored.bodies + result.bodies,
            part_ids=stored.part_ids + result.part_ids,
            fetched=stored.fetched,
        )
    is_partial = is_partial or any(not hit.uid for hit in result.items)
    answer = Answer(result, None, "miss", query.first, features, parts, is_partial)
    return Joined(answer, () if is_partial else _stored_as(query, result, fetched.maker))


def _stored_as(query: Query, result: Result, maker: str | None) -> tuple[Result, ...]:
    """Return the results to be stored: that of a number with one hit answers the number with its maker, too."""
    key = query.key_with_maker(maker) if maker and result.hits == 1 == len(result.items) else None
    return (result,) if key is None else (result, result._replace(key=key))


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
