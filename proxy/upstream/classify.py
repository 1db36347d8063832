"""What an answer of the GraphQL service means, whatever HTTP status it came with (contract graphql.md §3.2).

Pure: an answer in, data or an error out. The service calls its statuses subject to change, so the body
counts first.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from proxy import errors, model
from proxy.kit.wording import counted
from proxy.upstream import http_post

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SERVICE = "the GraphQL service"
PART_LIMIT = "You have exceeded your part limit"
INVALID_TOKEN = "AuthInvalidToken"  # noqa: S105 - a code of the service
TOKEN_CODES = {INVALID_TOKEN, "AuthExpiredToken"}
# The token lacks a scope that the operation needs. Not in the contract: the code is Hot Chocolate's.
OUT_OF_SCOPE = "AUTH_NOT_AUTHORIZED"
# What says that the service is in trouble, not that it refuses the query (contract graphql.md §3.2, §3.3).
TROUBLE_STATUSES = {500, 502, 503, 504}
TROUBLE_CODES = {"HC0006", "HC0007", "HC0045"}  # a service behind it failed, or it took too long
TROUBLE_MESSAGE = "Unexpected Execution Error"

_MESSAGE_MAX = 500  # characters of the service's own words that are passed on


class Envelope(Protocol[T_co]):
    """The top of every GraphQL answer."""

    @property
    def data(self) -> T_co | None:
        """Null when errors left nothing."""

    @property
    def errors(self) -> Sequence[model.GraphQLError] | None:
        """Absent or null when all went well."""


class Operation(Protocol[T_co]):
    """A GraphQL operation, ready to be sent. `payload` is the whole JSON body of the request."""

    @property
    def name(self) -> str:
        """The operationName: one of a few, for logs and metrics."""

    @property
    def payload(self) -> bytes:
        """`{"operationName": …, "query": …, "variables": …}`."""

    @property
    def decode(self) -> Callable[[bytes], Envelope[T_co]]:
        """From the answer's body to its envelope. Raises msgspec.MsgspecError where it does not fit."""


class Faults(msgspec.Struct, frozen=True):
    """An answer read for its errors alone, where its data is null or does not fit."""

    errors: list[model.GraphQLError]

    @property
    def data(self) -> None:
        """Nothing that could be used."""


def read(operation: Operation[T], reply: http_post.HttpResponse) -> Envelope[T] | None:
    """The envelope, or at least its errors, or None for what is not a GraphQL answer (HTML, empty, cut)."""
    try:
        return operation.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _faults.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def token_refusal(reply: http_post.HttpResponse, envelope: Envelope[Any] | None) -> str | None:
    """The service's word for what is wrong with the token, or None: then the token is not the trouble."""
    for error in _errors(envelope):
        if (code := (error.extensions or {}).get("code")) in TOKEN_CODES:
            return str(code)
    return "HTTP 401" if reply.status == 401 else None


def lacks_scope(envelope: Envelope[Any] | None) -> bool:
    """Whether the token is good, but not for this operation. An error below the operation's own field is about that
    field, such as one that the plan lacks."""
    return envelope is not None and envelope.data is None and any(map(_is_out_of_scope, _errors(envelope)))


def is_failure(reply: http_post.HttpResponse, error: errors.BridgeError) -> bool:
    """Whether an error is about the service as a whole, not about this query, this client or an odd record."""
    if isinstance(error, errors.UpstreamUnreadable):
        return reply.status == 200 and not reply.body.lstrip().startswith(b"{")
    return isinstance(error, errors.UpstreamFault)


def data(reply: http_post.HttpResponse, envelope: Envelope[T] | None, now: float) -> T:
    """The data of an answer that is not about the token.

    Raises QuotaExhausted, TooManyRequests, QueryRefused, UpstreamFault or UpstreamUnreadable. `now` is in
    seconds since 1970. Errors beside data do not spoil it, but for a used-up part limit.
    """
    messages = [error.message for error in _errors(envelope)]
    _check_part_limit(messages, now)
    if envelope is not None and envelope.data is not None:
        return envelope.data
    if reply.status == 429:
        raise errors.TooManyRequests(
            f"{SERVICE} asks for fewer requests", retry_after=http_post.retry_after_seconds(reply.retry_after, now)
        )
    if _is_in_trouble(reply, _errors(envelope)):
        raise http_post.server_error(reply, SERVICE, now) or errors.UpstreamFault(
            f"{SERVICE} failed: {_cut(messages[0])}"
        )
    if messages:
        raise errors.QueryRefused(_cut("; ".join(dict.fromkeys(messages))))
    if fault := http_post.server_error(reply, SERVICE, now, may_be_billed=True):
        raise fault
    message = http_post.wrong_service(reply, SERVICE, "GraphQL", "upstream.graphql_url")
    raise errors.UpstreamUnreadable(
        message
        or f"{SERVICE} sent something that is not its answer (HTTP {reply.status}, {counted(len(reply.body), 'byte')})",
        may_be_billed=not (reply.status in http_post.WRONG_ADDRESS_STATUSES or 300 <= reply.status < 400),
    )


_faults = msgspec.json.Decoder(Faults)


def _errors(envelope: Envelope[Any] | None) -> Sequence[model.GraphQLError]:
    return (envelope.errors if envelope else None) or ()


def _is_out_of_scope(error: model.GraphQLError) -> bool:
    below = isinstance(error.path, list) and len(error.path) > 1
    return (error.extensions or {}).get("code") == OUT_OF_SCOPE and not below


def _is_in_trouble(reply: http_post.HttpResponse, found: Sequence[model.GraphQLError]) -> bool:
    """Whether errors are about the service as a whole: the same query can be answered a moment later."""
    return bool(found) and (
        reply.status in TROUBLE_STATUSES
        or any((each.extensions or {}).get("code") in TROUBLE_CODES for each in found)
        or all(each.message.startswith(TROUBLE_MESSAGE) for each in found)
    )


def _check_part_limit(messages: list[str], now: float) -> None:
    for message in messages:
        if message.startswith(PART_LIMIT):
            raise errors.QuotaExhausted(_cut(message), retry_after=errors.seconds_to_next_month(now))


def _cut(message: str) -> str:
    return message if len(message) <= _MESSAGE_MAX else message[: _MESSAGE_MAX - 1] + "…"
