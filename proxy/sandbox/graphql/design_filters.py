"""Filters of design lists (`where`): and, or, and the operations of texts and times (contract graphql.md §5.3).

Pure, from a filter as GraphQL hands it in to a test of a record.
"""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from proxy.sandbox.graphql import errors, naming

Test = Callable[[Any], bool]

_TEXT: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda held, asked: held == asked,
    "contains": lambda held, asked: asked is not None and asked in (held or ""),
    "in": lambda held, asked: held in (asked or ()),
    "startsWith": lambda held, asked: asked is not None and (held or "").startswith(asked),
    "endsWith": lambda held, asked: asked is not None and (held or "").endswith(asked),
}
_TIME: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda held, asked: held == asked,
    "in": lambda held, asked: held in (asked or ()),
    "gt": lambda held, asked: None not in (held, asked) and held > asked,
    "gte": lambda held, asked: None not in (held, asked) and held >= asked,
    "lt": lambda held, asked: None not in (held, asked) and held < asked,
    "lte": lambda held, asked: None not in (held, asked) and held <= asked,
}
TIMES = frozenset({"createdAt", "updatedAt", "endedAt"})


def matching_records(records: Any, asked: Mapping[str, Any] | None) -> list[Any]:
    """The records that pass the filter; all without one. Raises DesignError for a time that is none."""
    return [one for one in records if asked is None or _passes(one, asked)]


def _passes(record: Any, asked: Mapping[str, Any]) -> bool:
    return all(_part(record, name, value) for name, value in asked.items())


def _part(record: Any, name: str, value: Any) -> bool:
    if name == "and":
        return all(_passes(record, one) for one in value or ())
    if name == "or":
        return not value or any(_passes(record, one) for one in value)
    held = getattr(record, naming.snake_case(name))
    if name in TIMES:
        return _field(_moment(held), {one: _moments(time) for one, time in (value or {}).items()}, _TIME)
    return _field(held, value or {}, _TEXT)


def _field(held: Any, asked: Mapping[str, Any], known: Mapping[str, Callable[[Any, Any], bool]]) -> bool:
    for operation, value in asked.items():
        if operation == "and":
            passed = all(_field(held, one, known) for one in value or ())
        elif operation == "or":
            passed = not value or any(_field(held, one, known) for one in value)
        elif operation in known:
            passed = known[operation](held, value)
        else:  # neq, nin, ncontains, ngt: the same with an n before it
            passed = not known["eq" if operation == "neq" else operation[1:]](held, value)
        if not passed:
            return False
    return True


def is_later(time: str, than: Any) -> bool:
    """Whether a record's time is after another, which anybody may have written. Raises DesignError."""
    return _TIME["gt"](_moment(time), _moment(than))


def _moments(value: Any) -> Any:
    return [_moment(one) for one in value] if isinstance(value, list) else _moment(value)


def _moment(value: Any) -> datetime.datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        raise errors.DesignError(f"{value!r} is no date and time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
