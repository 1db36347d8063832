"""Classification of responses: of GraphQL as data or errors, whatever their HTTP status (contract graphql.md §3.2), and
of the identity service as access tokens or errors (§4).

Pure. The contract calls the statuses of GraphQL subject to change, so the body decides first.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jwt
import msgspec

from proxy import errors
from proxy.kit import counted
from proxy.model import EncodedOperation, Envelope, GraphQLError
from proxy.upstream.http_post import HttpResponse

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
WRONG_ADDRESS_STATUSES = {404, 405}

IDENTITY = "the identity service"
RETRY_AFTER_DEFAULT = 60  # seconds, for a 429 of the identity service without Retry-After
# The scope of supply data, and where an application gets it (contract graphql.md §4.1, §8).
SCOPE = "supply.domain"
SCOPE_ADVICE = (
    f"supply data needs the scope {SCOPE}: check that the application has the Supply domain in the portal, or use the "
    "client id and secret of one that has"
)

_MESSAGE_MAX = 500  # characters of an upstream message that are passed on
# Grouped digits are accepted, although the documented messages have none.
_PART_LIMIT_NUMBER = re.compile(r"part limit of (\d{1,3}(?:,\d{3}){1,4}|\d{1,15})\b(?!,\d)")
# Exceptions of decoding a body. RecursionError: thousands of opening brackets, whatever sent them.
_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Reported(NamedTuple):
    """Error in a response: its code, empty if it has none, and its path, too; documented examples have a text there."""

    error: GraphQLError
    code: str
    path: list[str | int]


class _Errors(msgspec.Struct, frozen=True):
    errors: list[GraphQLError]


class _TokenResponse(msgspec.Struct, frozen=True):
    access_token: str | None = None
    expires_in: float | None = None
    error: str = ""


class _Claims(msgspec.Struct, frozen=True):
    exp: float | None = None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Bearer token and its expiry in seconds since 1970."""

    token: str = field(repr=False)
    expires: float


_decode_errors = msgspec.json.Decoder(_Errors).decode


def part_limit(message: str) -> int | None:
    """Return N of a "part limit of N" in an upstream message, or in an error of this service that repeats it; None
    without one."""
    match = _PART_LIMIT_NUMBER.search(message)
    return int(match[1].replace(",", "")) if match else None


def shortened(message: str, length: int = _MESSAGE_MAX) -> str:
    """Cut a long upstream message before a word: half an API key would not be recognized, and hidden."""
    return message if len(message) <= length else message[:length].rpartition(" ")[0] + "…"


def read(
    operation: EncodedOperation, reply: HttpResponse, now: float
) -> tuple[Envelope | None, errors.BridgeError | None]:
    """Return the envelope of a response, None if it is not GraphQL (HTML, empty, truncated), and its error, None if its
    data is to be used. `now` is in seconds since 1970.

    The error is CredentialsRefused with the code for which the token is refused, QuotaExhausted, TooManyRequests,
    QueryRefused, OversizedOperation, UpstreamFault or UpstreamUnreadable. Errors in a response with data do not count,
    except those of the token and of an exhausted quota.
    """
    envelope: Envelope | None
    try:
        envelope = operation.decode(reply.body)
    except _UNDECODABLE:
        try:  # the errors alone: the data is null or has other types
            envelope = Envelope(errors=_decode_errors(reply.body).errors)
        except _UNDECODABLE:
            envelope = None
    reported = []
    for error in (envelope and envelope.errors) or ():
        code = (error.extensions or {}).get("code")
        path = error.path if isinstance(error.path, list) else []
        reported.append(_Reported(error, code if isinstance(code, str) else "", path))
    has_data = envelope is not None and envelope.data is not None
    if has_data and not reported and reply.status != 401:
        return envelope, None
    return envelope, _refusal(reply, reported, now, has_data=has_data) or (
        None if has_data else _failure(reply, reported, now)
    )


def _refusal(
    reply: HttpResponse, reported: Sequence[_Reported], now: float, *, has_data: bool
) -> errors.CredentialsRefused | errors.QuotaExhausted | None:
    """Return the error of a token or a quota, which counts beside data, too."""
    reasons = [
        each.code
        for each in reported
        # A scope that lacks at a nested path is about that field only, such as one that the plan does not include.
        if each.code in TOKEN_CODES or (each.code == OUT_OF_SCOPE and not has_data and len(each.path) <= 1)
    ]
    if reply.status == 401:
        reasons.append("HTTP 401")
    if reasons:
        error = errors.CredentialsRefused(f"{SERVICE} refuses the token: {reasons[0]}")
        error.code = reasons[0]
        return error
    # Before others: it comes under 500 as well as 200, and must not look like a failure that is retried.
    for message in (each.error.message for each in reported if each.error.message.startswith(PART_LIMIT)):
        if part_limit(message) == 0:  # such a plan gets no parts with the next month either, so no date is promised
            return errors.QuotaExhausted(shortened(f"{NO_PARTS}: {message}"))
        return errors.QuotaExhausted(shortened(message), retry_after=errors.seconds_to_next_month(now))
    return None


def _failure(reply: HttpResponse, reported: Sequence[_Reported], now: float) -> errors.BridgeError:
    """Return the error of a response without data."""
    if reply.status == 429:
        return errors.TooManyRequests(f"{SERVICE} asks for fewer requests", retry_after=reply.retry_after(now))
    if reported:
        codes, messages = {each.code for each in reported}, [each.error.message for each in reported]
        # The fields of parts that failed: they were executed, and may leave no data, which is a 500, too (contract
        # graphql.md §3.3).
        failed = {step for each in reported for step in each.path[1:] if isinstance(step, str)} - LISTS_OF_PARTS
        # One unexpected error beside others says that a field failed, not the service.
        is_unexpected = all(message.startswith(FAILURE_MESSAGE) for message in messages)
        # The service failed, so that the same query may succeed a moment later.
        if is_unexpected or codes & FAILURE_CODES or (reply.status in FAILURE_STATUSES and not failed):
            if reply.status >= 500:
                return _unusable(reply, SERVICE, now)
            return errors.UpstreamFault(f"{SERVICE} failed: {shortened(messages[0])}")
        message = shortened("; ".join(dict.fromkeys(messages)))
        if TOO_COMPLEX in codes:
            return errors.OversizedOperation(message, may_be_billed=True)
        return errors.QueryRefused(message, may_be_billed=bool(failed), reported=tuple(each.error for each in reported))
    # At a wrong address nothing was executed. Anything else may have come from a proxy after the query was executed.
    billed = not (reply.status in WRONG_ADDRESS_STATUSES or 300 <= reply.status < 400)
    return _unusable(reply, SERVICE, now, may_be_billed=billed)


def is_failure(reply: HttpResponse, error: errors.BridgeError) -> bool:
    """Return whether an error is a failure of the service, as opposed to this query, this client or an invalid
    record."""
    if isinstance(error, errors.UpstreamUnreadable):
        # An error page under 200 is a broken service; under 404 it is a wrong address, which no cooldown mends.
        return reply.status == 200 and not reply.body.lstrip().startswith(b"{")
    return isinstance(error, errors.UpstreamFault)


def access_token(reply: HttpResponse, application: str, now: float) -> AccessToken:
    """Return the token of a response to a request that was sent at `now`. Raises TokenLimit, CredentialsRefused,
    UpstreamFault or UpstreamUnreadable."""
    try:
        # Not strict: some servers send expires_in as text.
        response = msgspec.json.decode(reply.body, type=_TokenResponse, strict=False)
    except _UNDECODABLE:
        response = _TokenResponse()
    if reply.status == 200 and response.access_token is not None:
        return _new_token(response.access_token, response.expires_in, now)
    # The code of the error (RFC 6749 §5.2); other text is not passed on.
    error = response.error and (response.error if re.fullmatch(r"[a-z_]{1,40}", response.error) else "an unknown error")
    # How the identity service reports its rate limit is not documented; slow_down is the code of RFC 8628.
    if reply.status == 429 or error == "slow_down":
        wait = reply.retry_after(now)
        seconds = RETRY_AFTER_DEFAULT if wait is None else max(1, wait)
        raise errors.TokenLimit(f"{IDENTITY} asks application {application} to wait", retry_after=seconds)
    if reply.status >= 500 or not (error or reply.status == 401):
        raise _unusable(reply, IDENTITY, now)
    if error in ("server_error", "temporarily_unavailable"):
        raise errors.UpstreamFault(f"{IDENTITY} answered with {error}")
    advice = f"; {SCOPE_ADVICE}" if error == "invalid_scope" else ""
    raise errors.CredentialsRefused(f"{IDENTITY} refuses application {application}: {error or 'HTTP 401'}{advice}")


def _new_token(token: str, expires_in: float | None, now: float) -> AccessToken:
    """Return a token, which ends at the soonest of the times that `expires_in` and its claim say."""
    try:  # decoded, not verified: the GraphQL service verifies it
        claims = msgspec.convert(jwt.decode(token, options={"verify_signature": False}), _Claims)
    except (jwt.InvalidTokenError, OverflowError, *_UNDECODABLE):
        claims = _Claims()
    ends = claims.exp, None if expires_in is None else now + expires_in
    expires = min((end for end in ends if end is not None and math.isfinite(end)), default=None)
    # A line break in it would let the identity service write headers of GraphQL requests.
    if not re.fullmatch(r"[!-~]+", token):
        mistake = "that cannot be put into a header"
    elif expires is None:
        mistake = "without saying how long it lives"
    elif expires <= now:
        mistake = "that has already expired; is the clock of this machine right?"
    else:
        return AccessToken(token, expires)
    raise errors.UpstreamUnreadable(f"{IDENTITY} sent a token {mistake}")


def _unusable(
    reply: HttpResponse, service: str, now: float, *, may_be_billed: bool = False
) -> errors.UpstreamFault | errors.UpstreamUnreadable:
    """Return the error for a 5xx, or for a response that is something else than expected.

    A 503 means that the request was not processed, so it was not billed; it is passed on with its Retry-After, any
    other 5xx becomes 502. After an HTML page, a redirect or a missing path the error names the setting that has a wrong
    address. The message holds nothing of the body, and no address.
    """
    if reply.status >= 500:
        fault = errors.UpstreamFault(f"{service} answered with HTTP {reply.status}", may_be_billed=may_be_billed)
        if reply.status == 503:
            fault.status, fault.retry_after, fault.may_be_billed = 503, reply.retry_after(now), False
        return fault
    is_page, size = reply.body.lstrip().startswith(b"<"), counted(len(reply.body), "byte")
    if is_page or reply.status in WRONG_ADDRESS_STATUSES or 300 <= reply.status < 400:
        content = "HTML" if is_page else "a redirect" if reply.status < 400 else size
        expected, setting = ("GraphQL", "graphql_url") if service == SERVICE else ("a token", "token_url")
        text = f"with {content} instead of {expected}; check the address in upstream.{setting}"
        message = f"{service} answered HTTP {reply.status} {text}"
    else:
        message = f"{service} sent something that is not its answer (HTTP {reply.status}, {size})"
    return errors.UpstreamUnreadable(message, may_be_billed=may_be_billed)
