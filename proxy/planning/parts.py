"""Execution plan of parts by v3 uid: supParts accepts v3 uids, at most 100 per request (contract graphql.md §1.1,
§2.1)."""

import re
from collections.abc import Callable
from typing import Any

from proxy.model import PARTS_MAX, MappingContext
from proxy.planning.documents import NULL
from proxy.planning.operations import Document, FieldError, OperationResult, PlannedOperation, QueryResult

UID = re.compile(r"[0-9a-f]{16}")


def valid_uids(uids: list[str]) -> list[str]:
    """Return the well-formed v3 uids, without duplicates, in order. Others are not sent: supParts accepts upstream
    ids, too."""
    return [uid for uid in dict.fromkeys(uids) if UID.fullmatch(uid)]


def operations(
    uids: list[str],
    document: Document,
    decode: Callable[[bytes], Any],
    context: MappingContext,
    batch_parts: int = PARTS_MAX,
) -> list[PlannedOperation]:
    """Return the operations for uids, each of at most `batch_parts`; positions are indexes into `uids`. Each part that
    is found is billed."""
    market = {"country": context.country, "currency": context.currency}
    return [
        PlannedOperation(
            document, {"ids": chunk, **market}, len(chunk), _read, tuple(range(first, first + len(chunk))), decode
        )
        for first in range(0, len(uids), batch_parts)
        for chunk in [uids[first : first + batch_parts]]
    ]


def _read(data: Any) -> list[OperationResult]:
    """Read a supParts result: parts in the order of the ids, null for an unknown id."""
    return [_result(part) for part in data.supParts]


def _result(part: Any) -> OperationResult:
    if isinstance(part, FieldError):
        return OperationResult([], 0, part.message)
    record = bytes(part)
    return OperationResult([], 0) if record == NULL else OperationResult([], 1, records=[record])


def query_result(result: OperationResult) -> QueryResult:
    """Convert the result of one uid."""
    return QueryResult(result.parts, result.hits, result.error, result.failure, records=result.records)
