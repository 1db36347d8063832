"""One POST and its whole answer. The one place that knows aiohttp's errors and turns them into ours.

Used for tokens and for GraphQL. Follows no redirect, and repeats a request only when a connection that had
been idle turned out to be closed, which shows at once: a POST that may have been billed is not sent again.
"""

import asyncio
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import aiohttp

from proxy import errors
from proxy.kit.wording import counted
from proxy.upstream import bounded, exchange, stalls
from proxy.upstream import session as sessions

STALE_SECONDS = 1.0  # after which a connection that ends was not closed before the request came
SMALL = 1_048_576  # bytes of an answer that is no list and no parts
RETRY_MAX = 86_400  # seconds of a Retry-After that are passed on; more says nothing that a client could wait for
ELSEWHERE = {404, 405}  # statuses of an address that no service answers at
FAIR = 0.5  # of the shorter limit for an answer: less says nothing about a service

Poster = aiohttp.ClientSession | exchange.Exchanges  # aiohttp's session, or the shorter way for what is asked all day


class Request(NamedTuple):
    """What to post and where. `service` is the other side's name in errors.

    `billed`: an answer costs parts, so an error says whether it may have been given. `seconds` is what is left of the
    caller's time, where it is not the whole. `most` is the number of bytes that the answer may have, unpacked.
    """

    url: str
    service: str
    body: bytes
    headers: Mapping[str, str]
    billed: bool
    seconds: float | None = None
    most: int = SMALL


class Reply(NamedTuple):
    """Status, whole body, and the Retry-After header as it came."""

    status: int
    body: bytes
    retry_after: str | None = None


class _BrokenError(Exception):
    """A connection that was there ended before any answer."""


_BREAKS = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError)


async def post(session: Poster, request: Request, sending: stalls.ActiveRequest | None = None) -> Reply:
    """The service's answer, whatever its status. `sending` learns how far it has come.

    Raises UpstreamUnreachable and UpstreamUnreadable.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    attempt = _attempt(started, sending)
    try:
        return await _post(session, request, attempt)
    except _BrokenError as broken:
        if not attempt.reused or loop.time() - started > STALE_SECONDS:
            raise _broken_off(request, attempt) from broken
    whole = session.timeout.total if request.seconds is None else request.seconds
    left = None if whole is None else max(0.001, whole - (loop.time() - started))
    if isinstance(session.connector, sessions.Connector):
        session.connector.drop_idle()  # where one was closed, the others may be, too
    attempt = _attempt(loop.time(), sending)
    try:
        return await _post(session, request._replace(seconds=left), attempt)
    except _BrokenError as broken:
        raise _broken_off(request, attempt) from broken


def _attempt(since: float, sending: stalls.ActiveRequest | None) -> sessions.Attempt:
    attempt = sessions.Attempt(since)
    if sending is not None:
        sending.attempt = attempt
    return attempt


async def _post(session: Poster, request: Request, attempt: sessions.Attempt) -> Reply:
    sessions.ATTEMPT.set(attempt)
    total = session.timeout.total if request.seconds is None else request.seconds
    try:
        if isinstance(session, exchange.Exchanges):
            return Reply(*await session.post(request.body, request.headers, total, attempt, request.most))
        limits = _shortened(session.timeout, total)
        async with session.post(
            request.url, data=request.body, headers=request.headers, allow_redirects=False, timeout=limits
        ) as response:
            attempt.answered, attempt.content = True, response.content
            body = await bounded.read(response.content, request.most, response.headers.get("Content-Length"))
            return Reply(response.status, body, response.headers.get("Retry-After"))
    except bounded.TooLargeError as error:
        message = f"{request.service} sent an answer of more than {request.most} bytes"
        without_frames = error.with_traceback(None)  # they hold the connection, and what it has read
        raise errors.UpstreamUnreadable(message, may_be_billed=request.billed) from without_frames
    except TimeoutError as error:
        message = f"{request.service} did not answer in time: {_limit(error, attempt, session.timeout)}"
        kind = errors.UpstreamUnreachable if _was_fair(error, attempt, session.timeout) else errors.DeadlineExceeded
        raise kind(message, may_be_billed=request.billed and attempt.sent) from error
    except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as error:
        raise errors.UpstreamUnreachable(f"{request.service} {_unreached(error)}") from error
    except (aiohttp.ClientError, OSError) as error:
        if not attempt.answered and isinstance(error, _BREAKS):
            raise _BrokenError from error
        raise _spoilt(request, attempt) from error


def _shortened(limits: aiohttp.ClientTimeout, total: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, sock_connect=limits.sock_connect, sock_read=limits.sock_read)


def _limit(error: TimeoutError, attempt: sessions.Attempt, limits: aiohttp.ClientTimeout) -> str:
    """Which of the limits ended a request."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {limits.sock_connect:g} s"
    if isinstance(error, aiohttp.SocketTimeoutError):
        return f"no {'further' if attempt.answered else 'first'} byte within {limits.sock_read:g} s"
    return f"not whole within {limits.total:g} s"


def _was_fair(error: TimeoutError, attempt: sessions.Attempt, limits: aiohttp.ClientTimeout) -> bool:
    """Whether the service had time to answer: all of a limit of its own, or else half of the shortest for an answer.

    It had not where a caller came with little time left, or waited for one of this side's connections.
    """
    if isinstance(error, aiohttp.ServerTimeoutError):
        return True
    shortest = min(limits.total or math.inf, limits.sock_read or math.inf)
    return asyncio.get_running_loop().time() - attempt.since >= FAIR * shortest


def _spoilt(request: Request, attempt: sessions.Attempt) -> errors.ServerError:
    if not attempt.sent:
        return errors.UpstreamUnreachable(f"{request.service} cannot be reached")
    what = "an answer that is cut" if attempt.answered else "something that is not HTTP"
    return errors.UpstreamUnreadable(f"{request.service} sent {what}", may_be_billed=request.billed)


def _unreached(error: aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError) -> str:
    """Why there is no connection; the library's own words would name addresses."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "shows a certificate that is not trusted"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"cannot be reached: the proxy on the way says HTTP {error.status}"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "cannot be reached: there is no connection to the proxy on the way"
    return "cannot be reached"


def _broken_off(request: Request, attempt: sessions.Attempt) -> errors.UpstreamUnreachable:
    message = f"{request.service} broke the connection off without an answer"
    return errors.UpstreamUnreachable(message, may_be_billed=request.billed and attempt.sent)


def seconds(retry_after: str | None, now: float) -> int | None:
    """Retry-After (RFC 9110 §10.2.3), a number or a date, as whole seconds from `now`, at most a day; None if
    unreadable."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:10]), RETRY_MAX)
    try:
        return min(max(0, math.ceil(parsedate_to_datetime(text).timestamp() - now)), RETRY_MAX)
    except (ValueError, OverflowError):
        return None


def strange(reply: Reply, service: str, wanted: str, setting: str) -> str | None:
    """The message for a page, a redirect or a missing path, which say that `setting` names another place than the
    service; None for any other answer. Repeats nothing of the body, and no address."""
    page = reply.body.lstrip()[:1] == b"<"
    if not page and reply.status not in ELSEWHERE and not 300 <= reply.status < 400:
        return None
    what = "HTML" if page else "a redirect" if reply.status < 400 else counted(len(reply.body), "byte")
    return f"{service} answered HTTP {reply.status} with {what} instead of {wanted}; check the address in {setting}"


def fault(reply: Reply, service: str, now: float, *, may_be_billed: bool = False) -> errors.UpstreamFault | None:
    """The error for a 5xx: 503 and its Retry-After are passed on, any other is a bad gateway.

    A 503 says that nothing was done, so it has not been billed.
    """
    if reply.status < 500:
        return None
    message = f"{service} answered with HTTP {reply.status}"
    if reply.status != 503:
        return errors.UpstreamFault(message, may_be_billed=may_be_billed)
    return errors.UpstreamFault(message, status=503, retry_after=seconds(reply.retry_after, now))
