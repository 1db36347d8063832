"""Token request to the identity service (contract graphql.md §4): client credentials in, access token out. Stateless.

Used by token_requests.py, which decides when to send one.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import urlencode

import aiohttp
import msgspec

from proxy import config, errors
from proxy.upstream import http_post
from proxy.upstream.auth import lifetimes

SERVICE = "the identity service"
RETRY_AFTER_DEFAULT = 60  # seconds, for a 429 without Retry-After
RESPONSE_BYTES = 65_536  # limit of a token response

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


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Bearer token and its expiry in seconds since 1970. `mismatches` between its times are logged; it can be used."""

    token: str = field(repr=False)
    expires: float
    mismatches: tuple[lifetimes.TimeMismatch, ...] = ()


class _TokenResponse(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float | None = None


class _ErrorResponse(msgspec.Struct, frozen=True):
    error: str


async def request_token(
    session: aiohttp.ClientSession, token_url: str, scope: str, credentials: Credentials
) -> http_post.HttpResponse:
    """Send one token request. Raises UpstreamUnreachable, UpstreamUnreadable or CredentialsRefused."""
    if not credentials.client_id or not credentials.client_secret:
        raise errors.CredentialsRefused(f"application {credentials.name} has no client id and secret")
    form = {
        "grant_type": "client_credentials",
        "client_id": credentials.client_id,
        "client_secret": credentials.client_secret.reveal(),
        **({"scope": scope} if scope else {}),
    }
    body = urlencode(form).encode()
    return await http_post.post(
        session, http_post.HttpRequest(token_url, SERVICE, body, _HEADERS, False, max_bytes=RESPONSE_BYTES)
    )


def parse(reply: http_post.HttpResponse, application: str, now: float) -> AccessToken:
    """Return the token of a response. Raises TokenLimit, CredentialsRefused, UpstreamFault or UpstreamUnreadable."""
    if reply.status == 200:
        return _parse_token(reply, now)
    error = _oauth_error(reply.body)
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
        raise errors.CredentialsRefused(f"{SERVICE} refuses application {application}: {error or 'HTTP 401'}{advice}")
    message = http_post.wrong_service(reply, SERVICE, "a token", "upstream.token_url")
    raise errors.UpstreamUnreadable(message or f"{SERVICE} sent something that is not its answer (HTTP {reply.status})")


def is_failure(reply: http_post.HttpResponse) -> bool:
    """Return whether a response is a failure of the service, not a refusal of an application or a path."""
    return reply.status >= 500 or (reply.status == 200 and not reply.body.lstrip().startswith(b"{"))


def _parse_token(reply: http_post.HttpResponse, now: float) -> AccessToken:
    body = reply.body
    if not body.strip():
        raise errors.UpstreamUnreadable(f"{SERVICE} sent an empty answer instead of a token")
    if message := http_post.wrong_service(reply, SERVICE, "a token", "upstream.token_url"):
        raise errors.UpstreamUnreadable(message)
    try:
        response = msgspec.json.decode(body, type=_TokenResponse, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise errors.UpstreamUnreadable(f"{SERVICE} sent something that is not a token") from None
    if not re.fullmatch(r"[!-~]+", response.access_token):
        raise errors.UpstreamUnreadable(f"{SERVICE} sent a token that cannot be put into a header")
    expires_in = lifetimes.number(response.expires_in)
    times = lifetimes.claimed(response.access_token)
    expires = lifetimes.expiry(times, expires_in, now)
    if expires is None:
        raise errors.UpstreamUnreadable(f"{SERVICE} sent a token without saying how long it lives")
    if expires <= now:
        raise errors.UpstreamUnreadable(
            f"{SERVICE} sent a token that has already expired; is the clock of this machine right?"
        )
    return AccessToken(response.access_token, expires, tuple(lifetimes.mismatches(times, expires_in, now)))


def _oauth_error(body: bytes) -> str:
    """Return the `error` code (RFC 6749 §5.2), "" if there is none; other text is not passed on."""
    try:
        error = msgspec.json.decode(body, type=_ErrorResponse).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return error if re.fullmatch(r"[a-z_]{1,40}", error) else "an unknown error"
