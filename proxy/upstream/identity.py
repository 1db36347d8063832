"""One conversation with the identity service (contract graphql.md §4): credentials in, a token and its end.

Used by acquisition.py, which decides when to have it. Keeps nothing. How long a token lives, lifetimes.py works out.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import urlencode

import aiohttp
import msgspec

from proxy import config, errors
from proxy.upstream import http_post, lifetimes

SERVICE = "the identity service"
WAIT_SECONDS = 60  # after a 429 without Retry-After
ANSWER_BYTES = 65_536  # that an answer with a token may have

_HEADERS = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
# What an application needs for supply data, and where it gets it (contract graphql.md §4.1, §8).
SCOPE_ADVICE = (
    "supply data needs the scope supply.domain: check that upstream.scope has it and that the application has the "
    "Supply domain in the portal, or use the client id and secret of one that has"
)
_BROKEN = {"server_error", "temporarily_unavailable"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """Client id and secret of the application `name`. Without them it cannot ask for anything."""

    name: str
    client_id: str | None
    client_secret: config.Secret | None

    def __hash__(self) -> int:
        """Of the name alone: it is asked for at every look-up."""
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Grant:
    """A bearer token and the moment, in seconds since 1970, from which it must not be used.

    `doubts` are about its times: something for the operator to look at, and no reason not to use it.
    """

    token: str = field(repr=False)
    expires: float
    doubts: tuple[lifetimes.Doubt, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float | None = None


class _Refusal(msgspec.Struct, frozen=True):
    error: str


async def ask(
    session: aiohttp.ClientSession, token_url: str, scope: str, credentials: Credentials
) -> http_post.HttpResponse:
    """Ask for a token, once. Raises UpstreamUnreachable, UpstreamUnreadable, CredentialsRefused."""
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
        session, http_post.HttpRequest(token_url, SERVICE, body, _HEADERS, False, max_bytes=ANSWER_BYTES)
    )


def understand(reply: http_post.HttpResponse, application: str, now: float) -> Grant:
    """The grant in an answer. Raises TokenLimit, CredentialsRefused, UpstreamFault or UpstreamUnreadable."""
    if reply.status == 200:
        return _grant(reply, now)
    error = _oauth_error(reply.body)
    if reply.status == 429 or error == "slow_down":
        wait = http_post.retry_after_seconds(reply.retry_after, now)
        raise errors.TokenLimit(
            f"{SERVICE} asks application {application} to wait",
            retry_after=WAIT_SECONDS if wait is None else max(1, wait),
        )
    if fault := http_post.server_error(reply, SERVICE, now):
        raise fault
    if error in _BROKEN:
        raise errors.UpstreamFault(f"{SERVICE} answered with {error}")
    if error or reply.status == 401:
        advice = f"; {SCOPE_ADVICE}" if error == "invalid_scope" else ""
        raise errors.CredentialsRefused(f"{SERVICE} refuses application {application}: {error or 'HTTP 401'}{advice}")
    message = http_post.wrong_service(reply, SERVICE, "a token", "upstream.token_url")
    raise errors.UpstreamUnreadable(message or f"{SERVICE} sent something that is not its answer (HTTP {reply.status})")


def is_failure(reply: http_post.HttpResponse) -> bool:
    """Whether an answer is about the service as a whole: who refuses an application, or has no such page, is there."""
    return reply.status >= 500 or (reply.status == 200 and not reply.body.lstrip().startswith(b"{"))


def _grant(reply: http_post.HttpResponse, now: float) -> Grant:
    body = reply.body
    if not body.strip():
        raise errors.UpstreamUnreadable(f"{SERVICE} sent an empty answer instead of a token")
    if message := http_post.wrong_service(reply, SERVICE, "a token", "upstream.token_url"):
        raise errors.UpstreamUnreadable(message)
    try:
        answer = msgspec.json.decode(body, type=_Answer, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise errors.UpstreamUnreadable(f"{SERVICE} sent something that is not a token") from None
    if not re.fullmatch(r"[!-~]+", answer.access_token):
        raise errors.UpstreamUnreadable(f"{SERVICE} sent a token that cannot be put into a header")
    told = lifetimes.number(answer.expires_in)
    times = lifetimes.read(answer.access_token)
    expires = lifetimes.end(times, told, now)
    if expires is None:
        raise errors.UpstreamUnreadable(f"{SERVICE} sent a token without saying how long it lives")
    if expires <= now:
        raise errors.UpstreamUnreadable(
            f"{SERVICE} sent a token that has already expired; is the clock of this machine right?"
        )
    return Grant(answer.access_token, expires, tuple(lifetimes.doubts(times, told, now)))


def _oauth_error(body: bytes) -> str:
    """The `error` code (RFC 6749 §5.2), or "" where there is none. Only codes are believed, never prose."""
    try:
        error = msgspec.json.decode(body, type=_Refusal).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return error if re.fullmatch(r"[a-z_]{1,40}", error) else "an unknown error"
