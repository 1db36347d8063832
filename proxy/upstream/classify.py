"""Classification of GraphQL responses as data or errors, whatever their HTTP status (contract graphql.md §3.2).

Pure. The contract calls the statuses subject to change, so the body decides first.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from proxy import errors
from proxy.model import EncodedOperation, Envelope, GraphQLError
from proxy.upstream import http_post

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


class _Errors(msgspec.Struct, frozen=True):
    """Envelope of which only the errors are decoded, because its data is null or has other types."""

    errors: list[GraphQLError]


_decode_errors = msgspec.json.Decoder(_Errors).decode


def decode(operation: EncodedOperation, reply: http_post.HttpResponse) -> Envelope | None:
    """Decode a response: its envelope, or only its errors, or None if it is not GraphQL (HTML, empty, truncated)."""
    try:
        return operation.decode(reply.body)
    except http_post.UNDECODABLE:
        pass
    try:
        return Envelope(errors=_decode_errors(reply.body).errors)
    except http_post.UNDECODABLE:
        return None


def part_limit(message: str) -> int | None:
    """Return N of a "part limit of N" in an upstream message, or in an error of this service that repeats it; None
    without one."""
    match = _PART_LIMIT_NUMBER.search(message)
    return int(match[1].replace(",", "")) if match else None


def shortened(message: str, length: int = _MESSAGE_MAX) -> str:
    """Cut a long upstream message before a word: half an API key would not be recognized, and hidden."""
    return message if len(message) <= length else message[:length].rpartition(" ")[0] + "…"


def data(reply: http_post.HttpResponse, envelope: Envelope | None, now: float) -> Any:
    """Return the data of a response. `now` is in seconds since 1970.

    Raises CredentialsRefused with the code for which the token is refused, QuotaExhausted, TooManyRequests,
    QueryRefused, OversizedOperation, UpstreamFault or UpstreamUnreadable. Errors in a response with data do not count,
    except those of the token and of an exhausted quota.
    """
    found, reported = (envelope.data, envelope.errors or ()) if envelope else (None, ())
    if reported or reply.status == 401:
        if code := _token_refusal(reply, reported, has_data=found is not None):
            refused = errors.CredentialsRefused(f"{SERVICE} refuses the token: {code}")
            refused.code = code
            raise refused
        # Before others: it comes under 500 as well as 200, and must not look like a failure that is retried.
        for message in (each.message for each in reported if each.message.startswith(PART_LIMIT)):
            limit = part_limit(message)
            # A plan without parts gets none with the next month either, so no date is promised.
            wait = None if limit == 0 else errors.seconds_to_next_month(now)
            text = f"{NO_PARTS}: {message}" if limit == 0 else message
            raise errors.QuotaExhausted(shortened(text), retry_after=wait)
    if found is None:
        raise _error(reply, reported, now)
    return found


def is_failure(reply: http_post.HttpResponse, error: errors.BridgeError) -> bool:
    """Return whether an error is a failure of the service, as opposed to this query, this client or an invalid
    record."""
    if isinstance(error, errors.UpstreamUnreadable):
        # An error page under 200 is a broken service; under 404 it is a wrong address, which no cooldown mends.
        return reply.status == 200 and not reply.body.lstrip().startswith(b"{")
    return isinstance(error, errors.UpstreamFault)


def _token_refusal(reply: http_post.HttpResponse, reported: Sequence[GraphQLError], *, has_data: bool) -> str:
    for each in reported:
        # A scope that lacks at a nested path is about that field only, such as one that the plan does not include.
        lacks_scope = _code(each) == OUT_OF_SCOPE and not has_data and len(_path(each)) <= 1
        if lacks_scope or _code(each) in TOKEN_CODES:
            return _code(each)
    return "HTTP 401" if reply.status == 401 else ""


def _error(reply: http_post.HttpResponse, reported: Sequence[GraphQLError], now: float) -> errors.BridgeError:
    if reply.status == 429:
        return errors.TooManyRequests(f"{SERVICE} asks for fewer requests", retry_after=reply.retry_after(now))
    if reported:
        codes = {_code(each) for each in reported}
        # The fields of parts that failed: they were executed, and may leave no data, which is a 500, too (contract
        # graphql.md §3.3).
        failed = {step for each in reported for step in _path(each)[1:] if isinstance(step, str)} - LISTS_OF_PARTS
        # One unexpected error beside others says that a field failed, not the service.
        is_unexpected = all(each.message.startswith(FAILURE_MESSAGE) for each in reported)
        # The service failed, so that the same query may succeed a moment later.
        if is_unexpected or codes & FAILURE_CODES or (reply.status in FAILURE_STATUSES and not failed):
            fault = errors.UpstreamFault(f"{SERVICE} failed: {shortened(reported[0].message)}")
            return http_post.server_error(reply, SERVICE, now) or fault
        message = shortened("; ".join(dict.fromkeys(each.message for each in reported)))
        if TOO_COMPLEX in codes:
            return errors.OversizedOperation(message, may_be_billed=True)
        return errors.QueryRefused(message, may_be_billed=bool(failed), reported=tuple(reported))
    # At a wrong address nothing was executed. Anything else may have come from a proxy after the query was executed.
    billed = not (reply.status in http_post.WRONG_ADDRESS_STATUSES or 300 <= reply.status < 400)
    return http_post.server_error(reply, SERVICE, now, may_be_billed=billed) or http_post.unreadable(
        reply, SERVICE, "GraphQL", "upstream.graphql_url", may_be_billed=billed
    )


def _code(error: GraphQLError) -> str:
    code = (error.extensions or {}).get("code")
    return code if isinstance(code, str) else ""


def _path(error: GraphQLError) -> list[str | int]:
    """Return the path of an error, empty if it has none; documented examples have a text."""
    return error.path if isinstance(error.path, list) else []
