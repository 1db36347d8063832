"""Token request to the identity service (contract graphql.md §4): client credentials in, access token out. Stateless.

Used by token_requests.py, which decides when to send one. A token's lifetime is that of its claims and `expires_in`,
although the clocks of both sides may differ: clock skew never makes a good token unusable; it is reported for the log.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

import aiohttp
import jwt
import msgspec

from proxy import config, errors
from proxy.upstream import http_post

SERVICE = "the identity service"
RETRY_AFTER_DEFAULT = 60  # seconds, for a 429 without Retry-After
RESPONSE_BYTES = 65_536  # limit of a token response
TOLERANCE = 60.0  # seconds that clocks or lifetimes may differ

_HEADERS = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
# The scope of supply data, and where an application gets it (contract graphql.md §4.1, §8).
SCOPE_ADVICE = (
    "supply data needs the scope supply.domain: check that upstream.scope has it and that the application has the "
    "Supply domain in the portal, or use the client id and secret of one that has"
)
_SERVER_ERRORS = {"server_error", "temporarily_unavailable"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Client credentials of the application `name`; without them it gets no token."""

    name: str
    client_id: str | None
    client_secret: config.Secret | None

    def __hash__(self) -> int:
        """Hash of the name only: cheap, because every request looks its token up."""
        return hash(self.name)


class TokenTimes(NamedTuple):
    """Times claimed by a JWT, in seconds since 1970 by the service's clock; None for a missing claim."""

    start: float | None
    end: float | None

    @property
    def lifetime(self) -> float | None:
        """Seconds from start to end; None if a claim is missing or the end is before the start."""
        if self.start is None or self.end is None or self.end <= self.start:
            return None
        return self.end - self.start


class TimeMismatch(NamedTuple):
    """A contradiction between times, and by how many seconds they differ.

    `clock`: this machine's clock against the identity service's, above 0 where this machine is behind.
    `lifetime`: the token's `exp - iat` against `expires_in`. `expiry`: its `exp` against the end of `expires_in`.
    """

    subject: Literal["clock", "lifetime", "expiry"]
    seconds: int


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Bearer token and its expiry in seconds since 1970. `mismatches` between its times are logged; it can be used."""

    token: str = field(repr=False)
    expires: float
    mismatches: tuple[TimeMismatch, ...] = ()


class _TokenResponse(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float | None = None


class _ErrorResponse(msgspec.Struct, frozen=True):
    error: str


async def request_token(
    session: aiohttp.ClientSession,
    token_url: str,
    scope: str,
    credentials: Credentials,
    seconds: float | None = None,
) -> http_post.HttpResponse:
    """Send one token request, which may take so many seconds.

    Raises UpstreamUnreachable, UpstreamUnreadable or CredentialsRefused.
    """
    if not credentials.client_id or not credentials.client_secret:
        raise errors.CredentialsRefused(f"application {credentials.name} has no client id and secret")
    form = {
        "grant_type": "client_credentials",
        "client_id": credentials.client_id,
        "client_secret": credentials.client_secret.reveal(),
        # Optional in practice (contract graphql.md §4.1); some identity servers refuse an empty one.
        **({"scope": scope} if scope else {}),
    }
    body = urlencode(form).encode()
    request = http_post.HttpRequest(token_url, SERVICE, body, _HEADERS, False, seconds, RESPONSE_BYTES)
    return await http_post.post(session, request)


def parse(reply: http_post.HttpResponse, application: str, now: float) -> AccessToken:
    """Return the token of a response. Raises TokenLimit, CredentialsRefused, UpstreamFault or UpstreamUnreadable."""
    if reply.status == 200:
        return _parse_token(reply, now)
    error = oauth_error(reply.body)
    # How the identity service reports its rate limit is not documented; slow_down is the code of RFC 8628.
    if reply.status == 429 or error == "slow_down":
        wait = http_post.retry_after_seconds(reply.retry_after, now)
        raise errors.TokenLimit(
            f"{SERVICE} asks application {application} to wait",
            retry_after=RETRY_AFTER_DEFAULT if wait is None else max(1, wait),
        )
    if fault := http_post.server_error(reply, SERVICE, now):
        raise fault
    if error in _SERVER_ERRORS:
        raise errors.UpstreamFault(f"{SERVICE} answered with {error}")
    if error or reply.status == 401:
        advice = f"; {SCOPE_ADVICE}" if error == "invalid_scope" else ""
        refused = errors.CredentialsRefused(
            f"{SERVICE} refuses application {application}: {error or 'HTTP 401'}{advice}"
        )
        refused.code = error
        raise refused
    raise http_post.wrong_service(reply, SERVICE, "a token", "upstream.token_url") or errors.UpstreamUnreadable(
        f"{SERVICE} sent something that is not its answer (HTTP {reply.status})"
    )


def is_failure(reply: http_post.HttpResponse) -> bool:
    """Return whether a response is a failure of the service, not a refusal of an application or a path."""
    return reply.status >= 500 or (reply.status == 200 and not reply.body.lstrip().startswith(b"{"))


def _parse_token(reply: http_post.HttpResponse, now: float) -> AccessToken:
    body = reply.body
    if not body.strip():
        raise errors.UpstreamUnreadable(f"{SERVICE} sent an empty answer instead of a token")
    if error := http_post.wrong_service(reply, SERVICE, "a token", "upstream.token_url"):
        raise error
    try:
        # Not strict: some servers send expires_in as text.
        response = msgspec.json.decode(body, type=_TokenResponse, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise errors.UpstreamUnreadable(f"{SERVICE} sent something that is not a token") from None
    # A line break in it would let the identity service write headers of GraphQL requests.
    if not re.fullmatch(r"[!-~]+", response.access_token):
        raise _unusable("a token that cannot be put into a header")
    expires_in = number(response.expires_in)
    times = claimed(response.access_token)
    expires = expiry(times, expires_in, now)
    if expires is None:
        raise _unusable("a token without saying how long it lives")
    if expires <= now:
        raise _unusable("a token that has already expired; is the clock of this machine right?")
    return AccessToken(response.access_token, expires, tuple(mismatches(times, expires_in, now)))


def _unusable(sent: str) -> errors.UpstreamUnreadable:
    error = errors.UpstreamUnreadable(f"{SERVICE} sent {sent}")
    error.sign = "unusable token"
    return error


def oauth_error(body: bytes) -> str:
    """Return the `error` code of a response (RFC 6749 §5.2), "" if there is none; other text is not passed on."""
    try:
        error = msgspec.json.decode(body, type=_ErrorResponse).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return error if re.fullmatch(r"[a-z_]{1,40}", error) else "an unknown error"


def claimed(token: str) -> TokenTimes:
    """Return `iat` (or `nbf`) and `exp` of a token; nothing for one that is not a JWT.

    The token is decoded, not verified: the GraphQL service verifies it.
    """
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError):
        return TokenTimes(None, None)
    start = number(claims.get("iat"))
    return TokenTimes(number(claims.get("nbf")) if start is None else start, number(claims.get("exp")))


def expiry(times: TokenTimes, expires_in: float | None, now: float) -> float | None:
    """Return when a token requested at `now` expires, by this machine's clock; None if nothing says.

    With clocks that agree, `exp` counts. With clock skew, or if `exp` and `expires_in` contradict each other, the
    sooner end counts, and a duration is preferred to a date.
    """
    if times.end is None:
        return None if expires_in is None else now + expires_in
    if _ahead(times, expires_in, now) is not None:
        return now + min(lifetime for lifetime in (times.lifetime, expires_in) if lifetime is not None)
    if expires_in is None:
        return times.end
    return min(times.end, now + expires_in) if times.end > now else now + expires_in


def mismatches(times: TokenTimes, expires_in: float | None, now: float) -> Iterator[TimeMismatch]:
    """Yield the contradictions that an operator should know of."""
    ahead = _ahead(times, expires_in, now)
    if ahead is not None:
        yield TimeMismatch("clock", round(ahead))
    if times.lifetime is not None and expires_in is not None and abs(times.lifetime - expires_in) > TOLERANCE:
        yield TimeMismatch("lifetime", round(abs(times.lifetime - expires_in)))
    if (
        times.lifetime is None
        and expires_in is not None
        and times.end is not None
        and abs(times.end - now - expires_in) > TOLERANCE
    ):
        yield TimeMismatch("expiry", round(abs(times.end - now - expires_in)))


def number(value: Any) -> float | None:
    """Return a finite number, None for anything else: a claim may have any type."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _ahead(times: TokenTimes, expires_in: float | None, now: float) -> float | None:
    """Return the seconds that the service's clock is ahead of this one (below 0: behind); None if not known or small.

    A token issued in the future shows it. One issued in the past may be an older token from the service's cache, unless
    `expires_in` is its whole lifetime, or it has expired already: no service hands out an expired token.
    """
    if times.start is None or times.end is None or times.lifetime is None:
        return None
    ahead = times.start - now
    # `expires_in` equal to the whole lifetime: the token was made for this request, so its start is the present.
    fresh = times.end <= now if expires_in is None else abs(times.lifetime - expires_in) <= TOLERANCE
    return ahead if ahead > TOLERANCE or (fresh and ahead < -TOLERANCE) else None
