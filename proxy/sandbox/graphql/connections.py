"""Pages of a list: connections with cursors (contract graphql.md §5.3).

Pure. Used by the resolvers of design data. The contract has no page sizes; DEFAULT is Hot Chocolate's, MOST is ours,
for clients ask for 200.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from proxy.sandbox.graphql import problems

DEFAULT = 10
MOST = 1000


class PageInfo(NamedTuple):
    """Where a page is."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


class Edge(NamedTuple):
    """An item and the cursor that names it."""

    cursor: str
    node: Any


class Connection(NamedTuple):
    """A page of a list of `total_count` items."""

    page_info: PageInfo
    edges: list[Edge]
    nodes: list[Any]
    total_count: int


def page(items: Sequence[Any], asked: Mapping[str, Any], key: Callable[[Any], str]) -> Connection:
    """The page that `first`, `after`, `last` and `before` in `asked` name. A cursor holds an item's `key` and place:
    it is still good when other items have come or gone, and even its own. Raises DesignError."""
    start, end = _bounds(items, asked, key)
    first, last = (_size(name, asked.get(name)) for name in ("first", "last"))
    if first is None and last is None:
        first = DEFAULT
    if first is not None:
        end = min(end, start + first)
    if last is not None:
        start = max(start, end - last)
    edges = [Edge(_cursor(place, key(items[place])), items[place]) for place in range(start, end)]
    info = PageInfo(
        end < len(items), start > 0, edges[0].cursor if edges else None, edges[-1].cursor if edges else None
    )
    return Connection(info, edges, [edge.node for edge in edges], len(items))


def _bounds(items: Sequence[Any], asked: Mapping[str, Any], key: Callable[[Any], str]) -> tuple[int, int]:
    start, end = 0, len(items)
    if asked.get("after") is not None:
        place, there = _place(items, asked["after"], key)
        start = min(place + there, len(items))
    if asked.get("before") is not None:
        end = max(start, _place(items, asked["before"], key)[0])
    return start, end


def _size(name: str, value: int | None) -> int | None:
    if value is not None and value < 0:
        raise problems.DesignError(f"{name} must not be negative, it is {value}")
    if value is not None and value > MOST:
        raise problems.DesignError("The maximum allowed items per page were exceeded.")
    return value


def _cursor(place: int, key: str) -> str:
    return base64.urlsafe_b64encode(f"{place}:{key}".encode()).decode().rstrip("=")


def _place(items: Sequence[Any], cursor: str, key: Callable[[Any], str]) -> tuple[int, bool]:
    """Where the item of the cursor is, and that it is; where it was, if it is gone."""
    try:
        place, _, wanted = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(":")
        known = int(place)
    except (binascii.Error, ValueError):
        raise problems.DesignError(f"the cursor {cursor!r} is not valid") from None
    found = next((here for here, item in enumerate(items) if key(item) == wanted), None)
    return (min(max(known, 0), len(items)), False) if found is None else (found, True)
