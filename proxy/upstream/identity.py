"""Token request to the identity service (contract graphql.md §4): client credentials in, access token out. Stateless.

A token's lifetime is that of its claims and `expires_in`, although the clocks of both sides may differ: clock skew
never makes a good token unusable.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
import jwt
import msgspec

from proxy import config, errors
from proxy.upstream import http_post

SERVICE = "the identity service"
RETRY_AFTER_DEFAULT = 60  # seconds, for a 429 without Retry-After
RESPONSE_BYTES = 65_536  # limit of a token response

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
# The scope of supply data, and where an application gets it (contract graphql.md §4.1, §8).
SCOPE = "supply.domain"
SCOPE_ADVICE = (
    f"supply data needs the scope {SCOPE}: check that the application has the Supply domain in the portal, or use the "
    "client id and secret of one that has"
)
_SERVER_ERRORS = {"server_error", "temporarily_unavailable"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Client credentials of the application `name`; without them it gets no token."""

    name: str
    client_id: str | None
    client_secret: config.Secret | None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Bearer token and its expiry in seconds since 1970."""

    token: str = field(repr=False)
    expires: float


class _TokenResponse(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float | None = None


class _ErrorResponse(msgspec.Struct, frozen=True):
    error: str


async def request_token(
    session: aiohttp.ClientSession, token_url: str, credentials: Credentials, seconds: float
) -> http_post.HttpResponse:
    """Send one token request, which may take so many seconds. Raises UpstreamUnreachable, UpstreamUnreadable or
    CredentialsRefused."""
    if not credentials.client_id or not credentials.client_secret:
        raise errors.CredentialsRefused(f"application {credentials.name} has no client id and secret")
    form = {
        "grant_type": "client_credentials",
        "client_id": credentials.client_id,
        "client_secret": credentials.client_secret.reveal(),
        "scope": SCOPE,
    }
    service = http_post.Service(SERVICE, token_url, RESPONSE_BYTES, bills=False)
    return await http_post.post(session, service, urlencode(form).encode(), FORM, seconds)


def parse(reply: http_post.HttpResponse, application: str, now: float) -> AccessToken:
    """Return the token of a response. Raises TokenLimit, CredentialsRefused, UpstreamFault or UpstreamUnreadable."""
    if reply.status == 200:
        return _parse_token(reply, now)
    try:  # the code of the error (RFC 6749 §5.2); other text is not passed on
        error = msgspec.json.decode(reply.body, type=_ErrorResponse).error
        error = error if re.fullmatch(r"[a-z_]{1,40}", error) else "an unknown error"
    except http_post.UNDECODABLE:
        error = ""
    # How the identity service reports its rate limit is not documented; slow_down is the code of RFC 8628.
    if reply.status == 429 or error == "slow_down":
        wait = reply.retry_after(now)
        seconds = RETRY_AFTER_DEFAULT if wait is None else max(1, wait)
        raise errors.TokenLimit(f"{SERVICE} asks application {application} to wait", retry_after=seconds)
    if fault := http_post.server_error(reply, SERVICE, now):
        raise fault
    if error in _SERVER_ERRORS:
        raise errors.UpstreamFault(f"{SERVICE} answered with {error}")
    if error or reply.status == 401:
        advice = f"; {SCOPE_ADVICE}" if error == "invalid_scope" else ""
        raise errors.CredentialsRefused(f"{SERVICE} refuses application {application}: {error or 'HTTP 401'}{advice}")
    raise http_post.unreadable(reply, SERVICE, "a token", "upstream.token_url")


def _parse_token(reply: http_post.HttpResponse, now: float) -> AccessToken:
    try:
        # Not strict: some servers send expires_in as text.
        response = msgspec.json.decode(reply.body, type=_TokenResponse, strict=False)
    except http_post.UNDECODABLE:
        raise http_post.unreadable(reply, SERVICE, "a token", "upstream.token_url") from None
    expires = expiry(response.access_token, response.expires_in, now)
    # A line break in it would let the identity service write headers of GraphQL requests.
    if not re.fullmatch(r"[!-~]+", response.access_token):
        mistake = "that cannot be put into a header"
    elif expires is None:
        mistake = "without saying how long it lives"
    elif expires <= now:
        mistake = "that has already expired; is the clock of this machine right?"
    else:
        return AccessToken(response.access_token, expires)
    raise errors.UpstreamUnreadable(f"{SERVICE} sent a token {mistake}")


def expiry(token: str, expires_in: float | None, now: float) -> float | None:
    """Return when a token requested at `now` expires, by this machine's clock; None if nothing says.

    It is the soonest end of those that `expires_in` and the claims say. A claim that it has expired already says only
    that the clocks differ: no service hands out an expired token. The token is decoded, not verified: the GraphQL
    service verifies it.
    """
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError):
        claims = {}
    start, end = _time(claims.get("iat", claims.get("nbf"))), _time(claims.get("exp"))
    ends = [] if expires_in is None or not math.isfinite(expires_in) else [now + expires_in]
    if end is not None and end > now:
        ends.append(end)
    if end is not None and start is not None and end > start:
        ends.append(now + end - start)
    return min(ends, default=None)


def _time(value: Any) -> float | None:
    """Return a claimed time; None for anything else: a claim may have any type."""
    try:
        is_time = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return float(value) if is_time else None
    except OverflowError:
        return None
