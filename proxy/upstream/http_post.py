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
import msgspec

from proxy import config, errors
from proxy.kit import counted
from proxy.upstream.connections import ATTEMPT, Attempt, AttemptConnector

IDLE_CLOSE_SECONDS = 1.0  # after which a connection that ends was not closed before the request came
LONGEST = 33_554_432  # bytes of a response with parts, decompressed
RETRY_AFTER_MAX = 86_400  # seconds of a Retry-After that are passed on; no client waits for longer
WRONG_ADDRESS_STATUSES = {404, 405}
FAIR_SHARE = 0.5  # of the session's time limit; a timeout after less than that is not the service's fault

# application/json only: Hot Chocolate chooses statuses and content type by Accept (contract graphql.md §3.3).
JSON = {"Content-Type": "application/json", "Accept": "application/json"}

# Exceptions of decoding a body. RecursionError: thousands of opening brackets, whatever sent them.
UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_CONNECTION_LOST = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError)


class Service(NamedTuple):
    """Where to POST. `name` is the service's in error messages; `max_bytes` bounds its responses, decompressed;
    `bills`: a response costs parts, so that an error says whether it may have been billed."""

    name: str
    url: str
    max_bytes: int
    bills: bool


class HttpResponse(NamedTuple):
    """Status, whole body, and headers."""

    status: int
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})

    def retry_after(self, now: float) -> int | None:
        """Return the Retry-After (RFC 9110 §10.2.3), a number or a date: whole seconds from `now`, at most a day; None
        if there is none, or an invalid one."""
        text = self.headers.get("Retry-After", "").strip()
        if text.isascii() and text.isdigit():
            # Ten digits are more than the maximum; int() of a long text would take quadratic time.
            return min(int(text[:10]), RETRY_AFTER_MAX)
        try:
            return min(max(0, math.ceil(parsedate_to_datetime(text).timestamp() - now)), RETRY_AFTER_MAX)
        except (ValueError, OverflowError):
            return None


async def post(
    session: aiohttp.ClientSession, service: Service, body: bytes, headers: Mapping[str, str], seconds: float = math.inf
) -> HttpResponse:
    """Send a request and return the response, whatever its status, within `seconds` and the session's time limit.

    Raises UpstreamUnreachable, UpstreamUnreadable and OversizedOperation.
    """
    now = asyncio.get_running_loop().time
    started, limit = now(), session.timeout.total or math.inf
    is_repeated = False
    while True:
        attempt = Attempt(now())
        # aiohttp gives its connector no argument for it: the connector reads this context variable.
        ATTEMPT.set(attempt)
        # Above 0, which aiohttp takes for no limit.
        total = max(0.001, started + min(seconds, limit) - attempt.since)
        timeout = aiohttp.ClientTimeout(total=total)
        try:
            async with session.post(
                service.url, data=body, headers=headers, allow_redirects=False, timeout=timeout
            ) as response:
                attempt.answered = True
                content = await _read_bounded(response, service.max_bytes)
                if content is not None:
                    return HttpResponse(response.status, content, response.headers)
        except (aiohttp.ClientError, OSError) as error:
            # A new connection, or one that ended late: the server may have read the request, so it is not sent again.
            is_stale = attempt.reused and not attempt.answered and now() - started <= IDLE_CLOSE_SECONDS
            if is_repeated or not is_stale or not isinstance(error, _CONNECTION_LOST):
                raise _error(error, service, attempt, limit) from error
            is_repeated = True
            if isinstance(session.connector, AttemptConnector):
                session.connector.close_idle()  # the server has probably closed the others, too
        else:
            del response  # the traceback of the error references this frame, and with it what was received
            message = f"{service.name} sent an answer of more than {service.max_bytes} bytes"
            raise errors.OversizedOperation(message, may_be_billed=service.bills)


async def _read_bounded(response: aiohttp.ClientResponse, max_bytes: int) -> bytes | None:
    """Read a whole body, decompressed; None if it has more than so many bytes.

    Without the bound the upstream would decide how much memory a response takes. aiohttp bounds the decompressed size
    of one piece.
    """
    length, size = response.headers.get("Content-Length", ""), 0
    if length.isdigit() and int(length) > max_bytes:
        return None
    pieces: list[bytes] = []
    try:
        while size <= max_bytes:
            piece = await response.content.readany()
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            size += len(piece)
        return None
    finally:
        pieces.clear()  # the traceback of an error references this frame, and with it the pieces


def _error(
    error: aiohttp.ClientError | OSError, service: Service, attempt: Attempt, limit: float
) -> errors.ServerError:
    """Convert an exception, without the addresses in aiohttp's messages."""
    kind: type[errors.ServerError] = errors.UpstreamUnreachable
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        text = f"did not answer in time: no connection within {config.CONNECT_SECONDS:g} s"
    elif isinstance(error, TimeoutError):
        text = f"did not answer in time: not whole within {limit:g} s"
        # The service had no time to respond where the caller came with little of it, or waited for a free connection.
        if asyncio.get_running_loop().time() - attempt.since < FAIR_SHARE * limit:
            kind = errors.DeadlineExceeded
    elif isinstance(error, aiohttp.ClientConnectorCertificateError):
        text = "shows a certificate that is not trusted"
    elif isinstance(error, aiohttp.ClientHttpProxyError):
        text = f"cannot be reached: the proxy on the way says HTTP {error.status}"
    elif isinstance(error, aiohttp.ClientProxyConnectionError):
        text = "cannot be reached: there is no connection to the proxy on the way"
    elif isinstance(error, aiohttp.ClientConnectorError) or not attempt.sent:
        text = "cannot be reached"
    elif isinstance(error, _CONNECTION_LOST) and not attempt.answered:
        text = "closed the connection without a response"
    else:
        kind = errors.UpstreamUnreadable
        text = f"sent {'an answer that is cut' if attempt.answered else 'something that is not HTTP'}"
    return kind(f"{service.name} {text}", may_be_billed=service.bills and attempt.sent)


def unreadable(
    reply: HttpResponse, service: str, expected: str, setting: str, *, may_be_billed: bool = False
) -> errors.UpstreamUnreadable:
    """Error for a response that is something else than expected. After an HTML page, a redirect or a missing path it
    names the setting that has a wrong address. The message holds nothing of the body, and no address."""
    is_page, size = reply.body.lstrip().startswith(b"<"), counted(len(reply.body), "byte")
    if is_page or reply.status in WRONG_ADDRESS_STATUSES or 300 <= reply.status < 400:
        content = "HTML" if is_page else "a redirect" if reply.status < 400 else size
        text = f"answered HTTP {reply.status} with {content} instead of {expected}; check the address in {setting}"
    else:
        text = f"sent something that is not its answer (HTTP {reply.status}, {size})"
    return errors.UpstreamUnreadable(f"{service} {text}", may_be_billed=may_be_billed)


def server_error(
    reply: HttpResponse, service: str, now: float, *, may_be_billed: bool = False
) -> errors.UpstreamFault | None:
    """Error for a 5xx: 503 with its Retry-After is passed on, any other becomes 502.

    A 503 means that the request was not processed, so it was not billed.
    """
    if reply.status < 500:
        return None
    is_closed = reply.status == 503
    message = f"{service} answered with HTTP {reply.status}"
    fault = errors.UpstreamFault(message, may_be_billed=may_be_billed and not is_closed)
    if is_closed:
        fault.status, fault.retry_after = 503, reply.retry_after(now)
    return fault
