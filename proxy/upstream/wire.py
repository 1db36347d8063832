"""One POST and its whole answer. The one place that knows aiohttp's errors and turns them into ours.

Used for tokens and for GraphQL. Follows no redirect, and repeats a request only when a connection that had
been idle turned out to be closed: a POST that may have been billed is not sent again.
"""

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import aiohttp

from proxy import errors
from proxy.upstream import session as sessions


class Request(NamedTuple):
    """What to post and where. `service` is the other side's name in errors."""

    url: str
    service: str
    body: bytes
    headers: Mapping[str, str]


class Reply(NamedTuple):
    """Status, whole body, and the Retry-After header as it came."""

    status: int
    body: bytes
    retry_after: str | None = None


class _BrokenError(Exception):
    """A connection that was there ended before any answer."""


async def post(session: aiohttp.ClientSession, request: Request) -> Reply:
    """The service's answer, whatever its status. Raises UpstreamUnreachable and UpstreamUnreadable."""
    attempt = sessions.Attempt()
    try:
        return await _post(session, request, attempt)
    except _BrokenError as broken:
        if not attempt.reused:
            raise _unreachable(request) from broken
    try:
        return await _post(session, request, sessions.Attempt())
    except _BrokenError as broken:
        raise _unreachable(request) from broken


async def _post(session: aiohttp.ClientSession, request: Request, attempt: sessions.Attempt) -> Reply:
    sessions.ATTEMPT.set(attempt)
    try:
        async with session.post(
            request.url, data=request.body, headers=request.headers, allow_redirects=False
        ) as response:
            return await _read(response, request.service)
    except TimeoutError as error:
        raise errors.UpstreamUnreachable(f"{request.service} did not answer in time") from error
    except aiohttp.ClientConnectorError as error:
        raise errors.UpstreamUnreachable(f"{request.service} cannot be reached") from error
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError) as error:
        raise _BrokenError from error
    except aiohttp.ClientResponseError as error:
        raise errors.UpstreamUnreadable(f"{request.service} sent something that is not HTTP") from error
    except (aiohttp.ClientError, OSError) as error:
        raise errors.UpstreamUnreachable(f"{request.service} cannot be reached") from error


def _unreachable(request: Request) -> errors.UpstreamUnreachable:
    return errors.UpstreamUnreachable(f"{request.service} broke the connection off without an answer")


async def _read(response: aiohttp.ClientResponse, service: str) -> Reply:
    try:
        body = await response.read()
    except TimeoutError:
        raise
    except (aiohttp.ClientError, OSError) as error:
        raise errors.UpstreamUnreadable(f"{service} sent an answer that is cut") from error
    return Reply(response.status, body, response.headers.get("Retry-After"))


def seconds(retry_after: str | None, now: float) -> int | None:
    """Retry-After (RFC 9110 §10.2.3), a number or a date, as whole seconds from `now`; None if unreadable."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return int(text) if len(text) < 10 else None
    try:
        return max(0, math.ceil(parsedate_to_datetime(text).timestamp() - now))
    except (ValueError, OverflowError):
        return None


def fault(reply: Reply, service: str, now: float) -> errors.UpstreamFault | None:
    """The error for a 5xx: 503 and its Retry-After are passed on, any other is a bad gateway."""
    if reply.status < 500:
        return None
    message = f"{service} answered with HTTP {reply.status}"
    if reply.status != 503:
        return errors.UpstreamFault(message)
    return errors.UpstreamFault(message, status=503, retry_after=seconds(reply.retry_after, now))
