"""Lists of design data: the conditions of `where`, and pages with cursors (contract graphql.md §5.3)."""

import base64
import binascii
import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nexar_sandbox.design.resources import Record
from nexar_sandbox.graphql import errors

_OPERATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda actual, operand: actual == operand,
    "contains": lambda actual, operand: operand is not None and operand in (actual or ""),
    "in": lambda actual, operand: actual in (operand or ()),
    "startsWith": lambda actual, operand: operand is not None and (actual or "").startswith(operand),
    "endsWith": lambda actual, operand: operand is not None and (actual or "").endswith(operand),
    # Of times only, as the others are of texts.
    "gt": lambda actual, operand: None not in (actual, operand) and actual > operand,
    "gte": lambda actual, operand: None not in (actual, operand) and actual >= operand,
    "lt": lambda actual, operand: None not in (actual, operand) and actual < operand,
    "lte": lambda actual, operand: None not in (actual, operand) and actual <= operand,
}
TIME_FIELDS = frozenset({"createdAt", "updatedAt"})


def matching(records: Sequence[Record], where: Mapping[str, Any] | None) -> list[Record]:
    """Return the records that match the filter; all if there is none. Raises DesignError for an invalid time."""
    return [record for record in records if where is None or _matches(record, where)]


def _matches(record: Record, where: Mapping[str, Any]) -> bool:
    return all(_matches_condition(record, name, value) for name, value in where.items())


def _matches_condition(record: Record, name: str, value: Any) -> bool:
    if name == "and":
        return all(_matches(record, condition) for condition in value or ())
    if name == "or":
        return not value or any(_matches(record, condition) for condition in value)
    if name in TIME_FIELDS:
        times = {operation: _moments(time) for operation, time in (value or {}).items()}
        return _matches_operations(_moment(record.get(name)), times)
    return _matches_operations(record.get(name), value or {})


def _matches_operations(actual: Any, operand: Mapping[str, Any]) -> bool:
    for operation, value in operand.items():
        if operation == "and":
            passed = all(_matches_operations(actual, each) for each in value or ())
        elif operation == "or":
            passed = not value or any(_matches_operations(actual, each) for each in value)
        elif operation in _OPERATIONS:
            passed = _OPERATIONS[operation](actual, value)
        else:  # neq, nin, ncontains, ngt: negations, with an n before the name
            passed = not _OPERATIONS["eq" if operation == "neq" else operation[1:]](actual, value)
        if not passed:
            return False
    return True


def _moments(value: Any) -> Any:
    return [_moment(time) for time in value] if isinstance(value, list) else _moment(value)


def _moment(value: Any) -> datetime.datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        raise errors.DesignError(f"{value!r} is not a date and time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


# Items of a page. The contract has no sizes: the default is that of Hot Chocolate, the maximum our choice, because
# clients ask for 200.
DEFAULT_SIZE = 10
MAX_SIZE = 1000


def page(items: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page selected by `first`, `after`, `last` and `before` in `arguments`. A cursor has the index of an
    item, as in Hot Chocolate. Raises DesignError."""
    after, before = (_index(arguments.get(name)) for name in ("after", "before"))
    start = 0 if after is None else min(after + 1, len(items))
    end = len(items) if before is None else max(start, min(before, len(items)))
    first, last = (_size(name, arguments.get(name)) for name in ("first", "last"))
    if first is None and last is None:
        first = DEFAULT_SIZE
    if first is not None:
        end = min(end, start + first)
    if last is not None:
        start = max(start, end - last)
    edges = [
        {"cursor": base64.b64encode(str(index).encode()).decode(), "node": items[index]} for index in range(start, end)
    ]
    return {
        "pageInfo": {
            "hasNextPage": end < len(items),
            "hasPreviousPage": start > 0,
            "startCursor": edges[0]["cursor"] if edges else None,
            "endCursor": edges[-1]["cursor"] if edges else None,
        },
        "edges": edges,
        "nodes": [edge["node"] for edge in edges],
        "totalCount": len(items),
    }


def _index(cursor: str | None) -> int | None:
    try:
        return None if cursor is None else int(base64.b64decode(cursor, validate=True))
    except (binascii.Error, ValueError):
        raise errors.DesignError(f"the cursor {cursor!r} is not valid") from None


def _size(name: str, value: int | None) -> int | None:
    if value is not None and value < 0:
        raise errors.DesignError(f"{name} must not be negative, it is {value}")
    if value is not None and value > MAX_SIZE:
        raise errors.DesignError("The maximum allowed items per page were exceeded.")
    return value
