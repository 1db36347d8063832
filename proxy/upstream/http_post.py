"""One POST and its whole response; the only module that converts aiohttp's exceptions into errors of this service.

Used for token requests and GraphQL. Follows no redirect. Sends a request again only if a pooled connection turns out to
be closed, which shows at once: a POST that may have been billed is not repeated.
"""

import asyncio
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import NamedTuple

import aiohttp

from proxy import errors
from proxy.kit.wording import counted
from proxy.upstream.connections import ATTEMPT, Attempt, AttemptConnector

IDLE_CLOSE_SECONDS = 1.0  # after which a connection that ends was not closed before the request came
DEFAULT_MAX_BYTES = 1_048_576  # of a response that is neither a list nor parts
LONGEST = 33_554_432  # bytes of a response with parts, decompressed
RETRY_AFTER_MAX = 86_400  # seconds of a Retry-After that are passed on; no client waits for longer
WRONG_ADDRESS_STATUSES = {404, 405}
FAIR_SHARE = 0.5  # of the shorter time limit; a timeout after less than that is not the service's fault


# application/json only: Hot Chocolate chooses statuses and content type by Accept (contract graphql.md §3.3).
JSON = {"Content-Type": "application/json", "Accept": "application/json"}


class HttpRequest(NamedTuple):
    """Request to POST. `service` is the name of the upstream in error messages.

    `billed`: a response costs parts, so an error says whether it may have been billed. `seconds`: time limit, where it
    is less than the session's. `max_bytes`: of the response body, decompressed.
    """

    url: str
    service: str
    body: bytes
    headers: Mapping[str, str]
    billed: bool
    seconds: float | None = None
    max_bytes: int = DEFAULT_MAX_BYTES


class HttpResponse(NamedTuple):
    """Status, whole body, and headers, of which Retry-After is unparsed."""

    status: int
    body: bytes
    retry_after: str | None = None
    headers: Mapping[str, str] = MappingProxyType({})


class _TooLargeError(Exception):
    """The response has more bytes than allowed."""


_CONNECTION_LOST = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError)


async def post(session: aiohttp.ClientSession, request: HttpRequest) -> HttpResponse:
    """Send `request` and return the response, whatever its status.

    Raises UpstreamUnreachable, UpstreamUnreadable and OversizedOperation.
    """
    now = asyncio.get_running_loop().time
    started = now()
    attempt = Attempt(started)
    total = session.timeout.total if request.seconds is None else request.seconds
    try:
        return await _post(session, request, attempt, total)
    except _CONNECTION_LOST as lost:
        # A new connection, or one that ended late: the server may have read the request, so it is not sent again.
        if not attempt.reused or now() - started > IDLE_CLOSE_SECONDS:
            raise _connection_lost(request, attempt) from lost
    if isinstance(session.connector, AttemptConnector):
        session.connector.close_idle()  # the server has probably closed the others, too
    attempt = Attempt(now())
    try:
        # Above 0, which aiohttp takes for no limit.
        return await _post(session, request, attempt, None if total is None else max(0.001, total - (now() - started)))
    except _CONNECTION_LOST as lost:
        raise _connection_lost(request, attempt) from lost


async def _post(
    session: aiohttp.ClientSession, request: HttpRequest, attempt: Attempt, total: float | None
) -> HttpResponse:
    """Send once, within `total` seconds. Raises one of _CONNECTION_LOST before any byte of a response."""
    # aiohttp gives its connector no argument for it: the connector reads this context variable.
    ATTEMPT.set(attempt)
    limits = session.timeout
    timeout = aiohttp.ClientTimeout(total=total, sock_connect=limits.sock_connect, sock_read=limits.sock_read)
    try:
        async with session.post(
            request.url, data=request.body, headers=request.headers, allow_redirects=False, timeout=timeout
        ) as response:
            attempt.answered, headers = True, response.headers
            body = await _read_bounded(response.content, request.max_bytes, headers.get("Content-Length"))
            return HttpResponse(response.status, body, headers.get("Retry-After"), headers)
    except _TooLargeError as error:
        message = f"{request.service} sent an answer of more than {request.max_bytes} bytes"
        # The frames of the traceback would keep the connection and its buffer alive for as long as the error.
        without_frames = error.with_traceback(None)
        raise errors.OversizedOperation(message, may_be_billed=request.billed) from without_frames
    except TimeoutError as error:
        raise _late(error, request, attempt, limits) from error
    except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as error:
        raise errors.UpstreamUnreachable(f"{request.service} {_connect_error(error)}") from error
    except (aiohttp.ClientError, OSError) as error:
        if not attempt.answered and isinstance(error, _CONNECTION_LOST):
            raise
        raise _unreadable(request, attempt) from error


async def _read_bounded(content: aiohttp.StreamReader, max_bytes: int, content_length: str | None) -> bytes:
    """Read a whole body of at most `max_bytes` bytes, decompressed. Raises _TooLargeError.

    Without the bound the upstream would decide how much memory a response takes. aiohttp bounds the decompressed size
    of one piece.
    """
    if content_length is not None and content_length.isdigit() and int(content_length) > max_bytes:
        raise _TooLargeError
    pieces = [await content.readany()]
    size = len(pieces[0])
    try:
        while size <= max_bytes and (piece := await content.readany()):
            pieces.append(piece)
            size += len(piece)
            del piece
        if size > max_bytes:
            raise _TooLargeError  # noqa: TRY301 - below, the pieces are released
    except BaseException:
        pieces.clear()  # the traceback references this frame, and with it the pieces, until garbage collection
        raise
    return b"".join(pieces)


def _late(
    error: TimeoutError, request: HttpRequest, attempt: Attempt, limits: aiohttp.ClientTimeout
) -> errors.UpstreamUnreachable:
    """Return the error of a time limit that was exceeded: DeadlineExceeded where the service had no time to respond,
    because the caller came with little time left, or waited for a free connection of the pool."""
    kind = errors.UpstreamUnreachable
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        exceeded = f"no connection within {limits.sock_connect:g} s"
    elif isinstance(error, aiohttp.SocketTimeoutError):
        exceeded = f"no {'further' if attempt.answered else 'first'} byte within {limits.sock_read:g} s"
    else:
        exceeded = f"not whole within {limits.total:g} s"
        shortest = min(limits.total or math.inf, limits.sock_read or math.inf)
        # aiohttp raises ServerTimeoutError for the connect and read timeouts, TimeoutError for the total.
        is_fair = asyncio.get_running_loop().time() - attempt.since >= FAIR_SHARE * shortest
        if not is_fair and not isinstance(error, aiohttp.ServerTimeoutError):
            kind = errors.DeadlineExceeded
    message = f"{request.service} did not answer in time: {exceeded}"
    return kind(message, may_be_billed=request.billed and attempt.sent)


def _unreadable(request: HttpRequest, attempt: Attempt) -> errors.ServerError:
    if not attempt.sent:
        return errors.UpstreamUnreachable(f"{request.service} cannot be reached")
    content = "an answer that is cut" if attempt.answered else "something that is not HTTP"
    return errors.UpstreamUnreadable(f"{request.service} sent {content}", may_be_billed=request.billed)


def _connect_error(error: aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError) -> str:
    """Return why no connection was made, without the addresses in aiohttp's messages."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "shows a certificate that is not trusted"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"cannot be reached: the proxy on the way says HTTP {error.status}"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "cannot be reached: there is no connection to the proxy on the way"
    return "cannot be reached"


def _connection_lost(request: HttpRequest, attempt: Attempt) -> errors.UpstreamUnreachable:
    message = f"{request.service} closed the connection without a response"
    return errors.UpstreamUnreachable(message, may_be_billed=request.billed and attempt.sent)


def retry_after_seconds(retry_after: str | None, now: float) -> int | None:
    """Parse Retry-After (RFC 9110 §10.2.3), a number or a date: whole seconds from `now`, at most a day; None if
    invalid."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        # Ten digits are more than the maximum; int() of a long text would take quadratic time.
        return min(int(text[:10]), RETRY_AFTER_MAX)
    try:
        return min(max(0, math.ceil(parsedate_to_datetime(text).timestamp() - now)), RETRY_AFTER_MAX)
    except (ValueError, OverflowError):
        return None


def wrong_service(
    reply: HttpResponse, service: str, expected: str, setting: str, *, may_be_billed: bool = False
) -> errors.UpstreamUnreadable | None:
    """Error for an HTML page, a redirect or a missing path: `setting` holds a wrong address. None for any other
    response. The message holds nothing of the body, and no address."""
    page = reply.body.lstrip()[:1] == b"<"
    if not page and reply.status not in WRONG_ADDRESS_STATUSES and not 300 <= reply.status < 400:
        return None
    content = "HTML" if page else "a redirect" if reply.status < 400 else counted(len(reply.body), "byte")
    message = (
        f"{service} answered HTTP {reply.status} with {content} instead of {expected}; check the address in {setting}"
    )
    error = errors.UpstreamUnreadable(message, may_be_billed=may_be_billed)
    error.sign = "page" if page else "wrong address"
    return error


def server_error(
    reply: HttpResponse, service: str, now: float, *, may_be_billed: bool = False
) -> errors.UpstreamFault | None:
    """Error for a 5xx: 503 with its Retry-After is passed on, any other becomes 502.

    A 503 means that the request was not processed, so it was not billed.
    """
    if reply.status < 500:
        return None
    message = f"{service} answered with HTTP {reply.status}"
    if reply.status != 503:
        return errors.UpstreamFault(message, may_be_billed=may_be_billed)
    return errors.UpstreamFault(message, status=503, retry_after=retry_after_seconds(reply.retry_after, now))
