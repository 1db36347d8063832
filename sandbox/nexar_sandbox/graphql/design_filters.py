"""Filters of design lists (argument `where`): and, or, and operations on texts and times (contract graphql.md §5.3)."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from nexar_sandbox.design import records
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
TIME_FIELDS = frozenset({"createdAt", "updatedAt", "endedAt"})


def matching_records(records: Any, where: Mapping[str, Any] | None) -> list[Any]:
    """Return the records that match the filter; all if there is none. Raises DesignError for an invalid time."""
    return [record for record in records if where is None or _matches(record, where)]


def _matches(record: Any, where: Mapping[str, Any]) -> bool:
    return all(_matches_condition(record, name, value) for name, value in where.items())


def _matches_condition(record: Any, name: str, value: Any) -> bool:
    if name == "and":
        return all(_matches(record, condition) for condition in value or ())
    if name == "or":
        return not value or any(_matches(record, condition) for condition in value)
    actual = getattr(record, records.snake_case(name))
    if name in TIME_FIELDS:
        times = {operation: _moments(time) for operation, time in (value or {}).items()}
        return _matches_operations(_moment(actual), times)
    return _matches_operations(actual, value or {})


def _matches_operations(actual: Any, operand: Mapping[str, Any]) -> bool:
    for operation, value in operand.items():
        if operation == "and":
            passed = all(_matches_operations(actual, part_operand) for part_operand in value or ())
        elif operation == "or":
            passed = not value or any(_matches_operations(actual, part_operand) for part_operand in value)
        elif operation in _OPERATIONS:
            passed = _OPERATIONS[operation](actual, value)
        else:  # neq, nin, ncontains, ngt: negations, with an n before the name
            passed = not _OPERATIONS["eq" if operation == "neq" else operation[1:]](actual, value)
        if not passed:
            return False
    return True


def is_later(time: str, than: Any) -> bool:
    """Return true if a record's time is after another one, which comes from the client. Raises DesignError if that is
    invalid."""
    return _OPERATIONS["gt"](_moment(time), _moment(than))


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
