"""HTTP to the upstream services: the client session, and one POST with its whole response.

Used for token requests and GraphQL; the only module that converts aiohttp's exceptions into errors of this service.
Follows no redirect. Sends a request again only if a pooled connection turns out to be closed, which shows at once: a
POST that may have been billed is not repeated. The connection pool records how far each attempt came, by private
attributes and undocumented behavior of aiohttp: test_http_post.py names each of them, and fails when an aiohttp lacks
one; `pyproject.toml` bounds the version.
"""

import asyncio
import math
import socket
import ssl
from collections.abc import Mapping
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import aiohttp
import msgspec
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey

import proxy
from proxy import config, errors

RESPONSE_SHARE = 0.9  # of the time of a client's request; the rest is left to say that there was no response
IDLE_CLOSE_SECONDS = 1.0  # after which a connection that ends was not closed before the request came
LONGEST = 33_554_432  # bytes of a response with parts, decompressed
RETRY_AFTER_MAX = 86_400  # seconds of a Retry-After that are passed on; no client waits for longer
FAIR_SHARE = 0.5  # of the session's time limit; a timeout after less than that is not the service's fault

# application/json only: Hot Chocolate chooses statuses and content type by Accept (contract graphql.md §3.3).
JSON = {"Content-Type": "application/json", "Accept": "application/json"}

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
        connector=AttemptConnector(
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


class Attempt(msgspec.Struct):
    """Progress of one attempt to send a request.

    `since`: the loop's time at which the attempt got its connection; infinite while it waits for a free one. `reused`:
    that connection had been idle in the pool. `sent`: it had a connection. `answered`: a response head has come.
    """

    since: float
    reused: bool = True
    sent: bool = True
    answered: bool = False


ATTEMPT: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


class AttemptConnector(aiohttp.TCPConnector):
    """Records in the current `ATTEMPT` that it waits for a free connection, and that it opens a new one.

    Reuse of an idle connection, the usual case, is an attempt's default and costs nothing; aiohttp's own tracing takes
    a tenth of a request's time.
    """

    def close_idle(self) -> None:
        """Close all connections that no request uses."""
        for idle in self._conns.values():
            for protocol, _ in idle:
                protocol.close()
        self._conns.clear()

    async def _wait_for_available_connection(self, key: ConnectionKey, traces: list[Any]) -> None:
        if attempt := ATTEMPT.get():
            attempt.sent = False
            attempt.since = math.inf
        await super()._wait_for_available_connection(key, traces)
        if attempt:
            attempt.sent = True
            attempt.since = asyncio.get_running_loop().time()

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        if attempt := ATTEMPT.get():
            attempt.reused = attempt.sent = False
        # The whole set-up: name, TCP, proxy and TLS. aiohttp's sock_connect bounds the TCP handshake only.
        async with asyncio.timeout(config.CONNECT_SECONDS):
            connection = await super()._create_connection(req, traces, timeout)
        if attempt:
            attempt.sent = True
        return connection


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
        timeout = aiohttp.ClientTimeout(total=max(0.001, started + min(seconds, limit) - attempt.since))
        pieces: list[bytes] = []
        try:
            async with session.post(
                service.url, data=body, headers=headers, allow_redirects=False, timeout=timeout
            ) as response:
                attempt.answered = True
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
        finally:
            pieces.clear()


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
