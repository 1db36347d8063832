"""Connections: pages of a list with cursors (contract graphql.md §5.3).

The contract has no page sizes: DEFAULT_SIZE is that of Hot Chocolate, MAX_SIZE is our choice, because clients ask for
200.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nexar_sandbox.graphql import errors

DEFAULT_SIZE = 10
MAX_SIZE = 1000


class PageInfo(NamedTuple):
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


class Edge(NamedTuple):
    cursor: str
    node: Any


class Connection(NamedTuple):
    page_info: PageInfo
    edges: list[Edge]
    nodes: list[Any]
    total_count: int


def page(items: Sequence[Any], arguments: Mapping[str, Any], key: Callable[[Any], str]) -> Connection:
    """Return the page selected by `first`, `after`, `last` and `before` in `arguments`. A cursor has the `key` and
    index of an item, so that it stays valid when items are added or removed, even its own. Raises DesignError."""
    start, end = _bounds(items, arguments, key)
    first, last = (_size(name, arguments.get(name)) for name in ("first", "last"))
    if first is None and last is None:
        first = DEFAULT_SIZE
    if first is not None:
        end = min(end, start + first)
    if last is not None:
        start = max(start, end - last)
    edges = [Edge(_cursor(index, key(items[index])), items[index]) for index in range(start, end)]
    info = PageInfo(
        end < len(items), start > 0, edges[0].cursor if edges else None, edges[-1].cursor if edges else None
    )
    return Connection(info, edges, [edge.node for edge in edges], len(items))


def _bounds(items: Sequence[Any], arguments: Mapping[str, Any], key: Callable[[Any], str]) -> tuple[int, int]:
    start, end = 0, len(items)
    if arguments.get("after") is not None:
        index, present = _position(items, arguments["after"], key)
        start = min(index + present, len(items))
    if arguments.get("before") is not None:
        end = max(start, _position(items, arguments["before"], key)[0])
    return start, end


def _size(name: str, value: int | None) -> int | None:
    if value is not None and value < 0:
        raise errors.DesignError(f"{name} must not be negative, it is {value}")
    if value is not None and value > MAX_SIZE:
        raise errors.DesignError("The maximum allowed items per page were exceeded.")
    return value


def _cursor(index: int, key: str) -> str:
    return base64.urlsafe_b64encode(f"{index}:{key}".encode()).decode().rstrip("=")


def _position(items: Sequence[Any], cursor: str, key: Callable[[Any], str]) -> tuple[int, bool]:
    """Return the index of the cursor's item and True; its former index and False if it was removed."""
    try:
        index, _, item_key = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(":")
        former = int(index)
    except (binascii.Error, ValueError):
        raise errors.DesignError(f"the cursor {cursor!r} is not valid") from None
    position = next((index for index, item in enumerate(items) if key(item) == item_key), None)
    return (min(max(former, 0), len(items)), False) if position is None else (position, True)
