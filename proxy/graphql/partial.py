"""Partial responses: data beside errors. Their parts are billed and counted, and become no records: a record does not
say of a null whether it is one of the part, or of an error. Pure.
"""

import re
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.planning.operations import ErrorMarker, OperationResult, PlannedOperation

_WORD = re.compile(r"\w+")


class PartialResponse(errors.ServerError):
    """Response with errors that no feature of the plan explains."""

    status = 502


class _PartialData(NamedTuple):
    data: Any
    reported: Sequence[model.GraphQLError]


def marking(mark_lost: ErrorMarker | None = None) -> ErrorMarker:
    """Return the error marker of a document whose partial responses `failing_if_partial` reads; `mark_lost` finds out
    whether anything is left."""

    def mark(data: Any, reported: list[model.GraphQLError]) -> Any:
        left = data if mark_lost is None else mark_lost(data, reported)
        return None if left is None else _PartialData(left, reported)

    return mark


def failing_if_partial(operation: PlannedOperation, features_named: Callable[[Set[str]], Set[str]]) -> PlannedOperation:
    """Return an operation whose results are failures if its response is partial: a refusal of the plan if the errors
    name a feature of it."""
    read = operation.read

    def read_marked(data: Any) -> list[OperationResult]:
        if not isinstance(data, _PartialData):
            return read(data)
        failure = _failure(data.reported, features_named)
        return [msgspec.structs.replace(each, error=failure.message, failure=failure) for each in read(data.data)]

    return msgspec.structs.replace(operation, read=read_marked)


def _failure(
    reported: Sequence[model.GraphQLError], features_named: Callable[[Set[str]], Set[str]]
) -> errors.ServerError:
    message = "; ".join(dict.fromkeys(each.message for each in reported))
    paths = [each.path for each in reported if isinstance(each.path, list)]
    fields = frozenset(step for path in paths for step in path[1:] if isinstance(step, str))
    if features_named(fields | set(_WORD.findall(message))):
        return errors.QueryRefused(message, fields=fields, reported=tuple(reported))
    return PartialResponse(message)
