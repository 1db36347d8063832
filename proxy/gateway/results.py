"""Answers to queries: what was fetched of a list, put together with its beginning that is stored. Pure."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from proxy import errors, model
from proxy.planning import queries
from proxy.planning.fetches import Fetched
from proxy.planning.queries import Query, Received
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


def passed_on(query: Query, received: Received, parts: int) -> Answer:
    """Return the answer to a query that was passed on, and has cost so many parts."""
    result = Result(query.key, 1, 1, (), (), (), received.value)
    return Answer(result, None, "miss", parts=parts, is_partial=bool(received.reported), reported=received.reported)


def _stored_as(query: Query, result: Result, maker: str | None) -> tuple[Result, ...]:
    """Return the results to be stored: that of a number with one hit answers the number with its maker, too."""
    if maker and result.hits == 1 == len(result.items) and queries.is_general(query):
        return result, result._replace(key=query.with_maker(maker).key)
    return (result,)
