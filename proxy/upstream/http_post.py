"""HTTP to the upstream services: the client session, and one POST with its whole response.

Used for token requests and GraphQL; the only module that converts aiohttp's exceptions into errors of this service.
Follows no redirect, and sends nothing again: a POST may have been billed, unless its exception says that there was no
connection.
"""

import math
import socket
import ssl
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import aiohttp
from aiohttp.abc import ResolveResult

import proxy
from proxy import config, errors

RESPONSE_SHARE = 0.9  # of the time of a client's request; the rest is left to say that there was no response
LONGEST = 33_554_432  # bytes of a response with parts, decompressed
RETRY_AFTER_MAX = 86_400  # seconds of a Retry-After that are passed on; no client waits for longer

# application/json only: Hot Chocolate chooses statuses and content type by Accept (contract graphql.md §3.3).
JSON = {"Content-Type": "application/json", "Accept": "application/json"}

_CONNECTION_LOST = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError)
# Of requests that had no connection yet. ClientHttpProxyError: the proxy on the way opens none.
_NOT_SENT = (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError)


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
    headers: Mapping[str, str]

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


def open_session(upstream: config.UpstreamSettings) -> aiohttp.ClientSession:
    """Open a client session, which the caller closes. No cookies, and nothing from the environment but OpenSSL's own
    SSL_CERT_FILE: authorities that are trusted beside the system's."""
    is_tls = any(url.startswith("https:") for url in (upstream.graphql_url, upstream.token_url))
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=config.UPSTREAM_CONNECTIONS,
            # With the authorities that are trusted now: aiohttp's own context knows those of its import.
            ssl=ssl.create_default_context() if is_tls else True,
            resolver=_Resolver(upstream.connections_to) if upstream.connect_to else None,
        ),
        # A cookie of one application would be sent with the requests of another.
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=upstream.total_seconds * RESPONSE_SHARE),
        headers={"User-Agent": f"v3bridge/{proxy.__version__}"},
        proxy=None if upstream.proxy is None else upstream.proxy.reveal(),
    )


class _Resolver(aiohttp.ThreadedResolver):
    """Resolves some hosts and ports to the addresses of others (`upstream.connect_to`)."""

    def __init__(self, connections_to: Mapping[tuple[str, int], tuple[str, int]]) -> None:
        super().__init__()
        self._connections_to = connections_to

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await super().resolve(*self._connections_to.get((host, port), (host, port)), family)
        return [ResolveResult({**each, "hostname": host}) for each in found]


async def post(
    session: aiohttp.ClientSession, service: Service, body: bytes, headers: Mapping[str, str], seconds: float = math.inf
) -> HttpResponse:
    """Send a request and return the response, whatever its status, within `seconds` and the session's time limit.

    Raises UpstreamUnreachable, UpstreamUnreadable and OversizedOperation.
    """
    limit = session.timeout.total or math.inf
    # Above 0, which aiohttp takes for no limit. `connect` bounds the wait for a free connection, too.
    timeout = aiohttp.ClientTimeout(total=max(0.001, min(seconds, limit)), connect=config.CONNECT_SECONDS)
    pieces: list[bytes] = []
    is_answered = False
    try:
        async with session.post(
            service.url, data=body, headers=headers, allow_redirects=False, timeout=timeout
        ) as response:
            is_answered = True
            # Without the bound the upstream would decide how much memory a response takes. aiohttp bounds the
            # decompressed size of one piece.
            length, size = response.headers.get("Content-Length", ""), 0
            is_longer = length.isdigit() and int(length) > service.max_bytes
            while not is_longer:
                pieces.append(await response.content.readany())
                if not pieces[-1]:
                    return HttpResponse(response.status, b"".join(pieces), response.headers)
                size += len(pieces[-1])
                is_longer = size > service.max_bytes
    except (aiohttp.ClientError, OSError) as error:
        raise _error(error, service, limit, is_answered=is_answered) from error
    finally:
        pieces.clear()
    del response  # the traceback of the error references this frame, and with it what was received
    message = f"{service.name} sent an answer of more than {service.max_bytes} bytes"
    raise errors.OversizedOperation(message, may_be_billed=service.bills)


def _error(
    error: aiohttp.ClientError | OSError, service: Service, limit: float, *, is_answered: bool
) -> errors.ServerError:
    """Convert an exception, without the addresses in aiohttp's messages."""
    kind: type[errors.ServerError] = errors.UpstreamUnreachable
    is_sent = not isinstance(error, _NOT_SENT)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        text = f"did not answer in time: no connection within {config.CONNECT_SECONDS:g} s"
    elif isinstance(error, TimeoutError):
        text = f"did not answer in time: not whole within {limit:g} s"
    elif isinstance(error, aiohttp.ClientConnectorCertificateError):
        text = "shows a certificate that is not trusted"
    elif isinstance(error, aiohttp.ClientHttpProxyError):
        text = f"cannot be reached: the proxy on the way says HTTP {error.status}"
    elif isinstance(error, aiohttp.ClientProxyConnectionError):
        text = "cannot be reached: there is no connection to the proxy on the way"
    elif not is_sent:
        text = "cannot be reached"
    elif isinstance(error, _CONNECTION_LOST) and not is_answered:
        text = "closed the connection without a response"
    else:
        kind = errors.UpstreamUnreadable
        text = f"sent {'an answer that is cut' if is_answered else 'something that is not HTTP'}"
    return kind(f"{service.name} {text}", may_be_billed=service.bills and is_sent)
