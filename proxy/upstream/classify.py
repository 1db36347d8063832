"""Classification of GraphQL responses as data or errors, whatever their HTTP status (contract graphql.md §3.2).

Pure. The contract calls the statuses subject to change, so the body decides first.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from proxy import errors, model
from proxy.kit.wording import counted
from proxy.upstream import http_post

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SERVICE = "the GraphQL service"
# It has no code; the contract recognizes it by the start of its message, under status 200 or 500.
PART_LIMIT = "You have exceeded your part limit"
NO_PARTS = "this plan has no parts"  # how an error for a part limit of 0 begins
INVALID_TOKEN = "AuthInvalidToken"  # noqa: S105 - a code of the service
TOKEN_CODES = {INVALID_TOKEN, "AuthExpiredToken"}
# The token lacks a scope that the operation needs. The contract does not have this code; Hot Chocolate does.
OUT_OF_SCOPE = "AUTH_NOT_AUTHORIZED"
# Signs of a failure of the service, as opposed to a refused query (contract graphql.md §3.2, §3.3).
FAILURE_STATUSES = {500, 502, 503, 504}
FAILURE_CODES = {"HC0006", "HC0007", "HC0045"}  # a service behind it failed or timed out
FAILURE_MESSAGE = "Unexpected Execution Error"
TOO_COMPLEX = "HC0047"
LISTS_OF_PARTS = {"results", "part", "parts"}  # in paths, between the root field and the fields of a part

_MESSAGE_MAX = 500  # characters of an upstream message that are passed on
# Grouped digits are accepted, although the documented messages have none.
_PART_LIMIT_NUMBER = re.compile(r"part limit of (\d{1,3}(?:,\d{3}){1,4}|\d{1,15})\b(?!,\d)")


class GraphQLEnvelope(Protocol[T_co]):
    """Top level of a GraphQL response."""

    @property
    def data(self) -> T_co | None:
        """None if errors left no data."""

    @property
    def errors(self) -> Sequence[model.GraphQLError] | None:
        """None without errors."""


class GraphQLOperation(Protocol[T_co]):
    """Encoded GraphQL operation with the decoder of its response."""

    @property
    def name(self) -> str:
        """operationName, one of a few: used in logs and metrics."""

    @property
    def payload(self) -> bytes:
        """JSON body of the request: `{"operationName": …, "query": …, "variables": …}`."""

    @property
    def decode(self) -> Callable[[bytes], GraphQLEnvelope[T_co]]:
        """Decoder from the body of the response to its envelope; raises msgspec.MsgspecError for other types."""


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """Envelope decoded for its errors only, because its data is null or has other types."""

    errors: list[model.GraphQLError]

    @property
    def data(self) -> None:
        """No usable data."""


def decode(operation: GraphQLOperation[T], reply: http_post.HttpResponse) -> GraphQLEnvelope[T] | None:
    """Decode a response: its envelope, or only its errors, or None if it is not GraphQL (HTML, empty, truncated)."""
    try:
        # RecursionError: a body of thousands of opening brackets, whatever sent it.
        return operation.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _error_decoder.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def part_limit(message: str) -> int | None:
    """Return N of a "part limit of N" in an upstream message, or in an error of this service that repeats it; None
    without one."""
    match = _PART_LIMIT_NUMBER.search(message)
    return int(match[1].replace(",", "")) if match else None


def shortened(message: str, length: int = _MESSAGE_MAX) -> str:
    """Cut a long upstream message before a word: half an API key would not be recognized, and hidden."""
    return message if len(message) <= length else message[:length].rpartition(" ")[0] + "…"


def token_refusal(reply: http_post.HttpResponse, envelope: GraphQLEnvelope[Any] | None) -> str | None:
    """Return why the token was refused, None if it was accepted."""
    for error in _errors(envelope):
        if (code := (error.extensions or {}).get("code")) in TOKEN_CODES:
            return str(code)
    return "HTTP 401" if reply.status == 401 else None


def lacks_scope(envelope: GraphQLEnvelope[Any] | None) -> bool:
    """Return whether the token lacks a scope for the whole operation. An error at a nested path is about that field
    only, such as one that the plan does not include."""
    return envelope is not None and envelope.data is None and any(map(_is_out_of_scope, _errors(envelope)))


def is_failure(reply: http_post.HttpResponse, error: errors.BridgeError) -> bool:
    """Return whether an error is a failure of the service, as opposed to this query, this client or an invalid
    record."""
    if isinstance(error, errors.UpstreamUnreadable):
        # An error page under 200 is a broken service; under 404 it is a wrong address, which no cooldown mends.
        return reply.status == 200 and not reply.body.lstrip().startswith(b"{")
    return isinstance(error, errors.UpstreamFault)


def data(reply: http_post.HttpResponse, envelope: GraphQLEnvelope[T] | None, now: float) -> T:
    """Return the data of a response whose token was accepted.

    Raises QuotaExhausted, TooManyRequests, QueryRefused, OversizedOperation, UpstreamFault or UpstreamUnreadable. `now`
    is in seconds since 1970. Errors in a response with data do not count, except that of an exhausted quota.
    """
    messages = [error.message for error in _errors(envelope)]
    # First: it comes under 500 as well as 200, and must not look like a failure that is retried.
    _check_part_limit(messages, now)
    if envelope is not None and envelope.data is not None:
        return envelope.data
    if reply.status == 429:
        raise errors.TooManyRequests(
            f"{SERVICE} asks for fewer requests", retry_after=http_post.retry_after_seconds(reply.retry_after, now)
        )
    if _is_service_failure(reply, _errors(envelope)):
        raise http_post.server_error(reply, SERVICE, now) or errors.UpstreamFault(
            f"{SERVICE} failed: {shortened(messages[0])}"
        )
    if messages:
        raise _refusal(shortened("; ".join(dict.fromkeys(messages))), _errors(envelope))
    if fault := http_post.server_error(
        reply, SERVICE, now, may_be_billed=True
    ):  # sent by a proxy in front of the service
        raise fault
    # At a wrong address nothing was executed. Anything else may have come from a proxy after the query was executed.
    billed = not (reply.status in http_post.WRONG_ADDRESS_STATUSES or 300 <= reply.status < 400)
    raise http_post.wrong_service(
        reply, SERVICE, "GraphQL", "upstream.graphql_url", may_be_billed=billed
    ) or errors.UpstreamUnreadable(
        f"{SERVICE} sent something that is not its answer (HTTP {reply.status}, {counted(len(reply.body), 'byte')})",
        may_be_billed=billed,
    )


_error_decoder = msgspec.json.Decoder(ErrorEnvelope)


def _errors(envelope: GraphQLEnvelope[Any] | None) -> Sequence[model.GraphQLError]:
    return (envelope.errors if envelope else None) or ()


def _is_out_of_scope(error: model.GraphQLError) -> bool:
    is_nested = isinstance(error.path, list) and len(error.path) > 1
    return (error.extensions or {}).get("code") == OUT_OF_SCOPE and not is_nested


def _is_service_failure(reply: http_post.HttpResponse, graphql_errors: Sequence[model.GraphQLError]) -> bool:
    """Return whether the errors report a failure of the service, so that the same query may succeed a moment later."""
    return bool(graphql_errors) and (
        # A field that failed may leave no data, which is a 500, too (contract graphql.md §3.3).
        (reply.status in FAILURE_STATUSES and not _failed_fields(graphql_errors))
        or any((each.extensions or {}).get("code") in FAILURE_CODES for each in graphql_errors)
        # All of them: one such error beside others says that a field failed, not the service.
        or all(each.message.startswith(FAILURE_MESSAGE) for each in graphql_errors)
    )


def _refusal(message: str, graphql_errors: Sequence[model.GraphQLError]) -> errors.ServerError:
    """Return the error of a refused operation. Fields that failed were executed, so it may be billed."""
    if any((each.extensions or {}).get("code") == TOO_COMPLEX for each in graphql_errors):
        return errors.OversizedOperation(message, may_be_billed=True)
    may_be_billed = bool(_failed_fields(graphql_errors))
    return errors.QueryRefused(message, may_be_billed=may_be_billed, reported=tuple(graphql_errors))


def _failed_fields(graphql_errors: Sequence[model.GraphQLError]) -> set[str]:
    """Return the names of the fields of parts that the errors are about."""
    paths = [each.path for each in graphql_errors if isinstance(each.path, list)]
    return {step for path in paths for step in path[1:] if isinstance(step, str)} - LISTS_OF_PARTS


def _check_part_limit(messages: list[str], now: float) -> None:
    for message in messages:
        if not message.startswith(PART_LIMIT):
            continue
        limit = part_limit(message)
        # A plan without parts gets none with the next month either, so no date is promised.
        wait = None if limit == 0 else errors.seconds_to_next_month(now)
        error = errors.QuotaExhausted(shortened(f"{NO_PARTS}: {message}" if limit == 0 else message), retry_after=wait)
        error.part_limit = limit
        raise error
