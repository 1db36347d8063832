"""The one HTTP client of the process: its connections, its limits, and a note of how far each request came."""

import asyncio
import math
import ssl
from contextvars import ContextVar
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey

import proxy
from proxy import config, errors


class Attempt:
    """One try of one request: it had a connection (`sent`), one that had been idle (`reused`), got a head back.

    `since`, in the loop's time, is when this side had done its part: infinite while none of its connections is free.
    """

    __slots__ = ("answered", "content", "reused", "sent", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.reused = True
        self.sent = True
        self.answered = False
        self.content: aiohttp.StreamReader | None = None

    @property
    def received(self) -> int:
        """Bytes of the body that have arrived, unpacked."""
        return 0 if self.content is None else self.content.total_bytes


ATTEMPT: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


def open_session(upstream: config.Upstream) -> aiohttp.ClientSession:
    """A client session, to be closed by whoever opens it. No cookies, nothing from the environment.

    Raises ConfigError for files of upstream.tls that do not hold what they should.
    """
    limits = upstream.timeouts
    return aiohttp.ClientSession(
        connector=Connector(limits.connect_seconds, limit=upstream.connections, ssl=tls_context(upstream.tls)),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(
            total=limits.total_seconds, sock_connect=limits.connect_seconds, sock_read=limits.first_byte_seconds
        ),
        headers={"User-Agent": f"v3bridge/{proxy.__version__}"},
        proxy=None if upstream.proxy is None else upstream.proxy.reveal(),
    )


def tls_context(tls: config.Tls) -> ssl.SSLContext | bool:
    """Whom to trust and what to show; True is the system's trust, aiohttp's own way."""
    if tls.ca_file is None and tls.client_cert is None:
        return True
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except (ssl.SSLError, OSError):
        raise errors.ConfigError(f"upstream.tls.ca_file: {tls.ca_file} holds no certificate in PEM form") from None
    if tls.client_cert is not None:
        _show(context, tls.client_cert, tls.client_key)
    return context


def _show(context: ssl.SSLContext, cert: str, key: str | None) -> None:
    """Have a client certificate. A passphrase is never asked for: nobody sits there to type it."""
    try:
        context.load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError):
        raise errors.ConfigError(
            f"upstream.tls.client_cert: {cert} and {key or 'itself'} hold no certificate with its key, "
            "in PEM form and without a passphrase"
        ) from None


class Connector(aiohttp.TCPConnector):
    """Notes on the attempt under way that it waits for a connection, and that it has a new one.

    Who gets an idle one at once is not noted, so that it costs nothing; aiohttp's tracing takes a tenth of a request.
    """

    def __init__(self, connect_seconds: float, **settings: Any) -> None:
        super().__init__(**settings)
        self._connect_seconds = connect_seconds

    def drop_idle(self) -> None:
        """Close all connections that nobody uses."""
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
        async with asyncio.timeout(self._connect_seconds):  # aiohttp's own leaves out names, proxy and tunnel
            connection = await super()._create_connection(req, traces, timeout)
        if attempt:
            attempt.sent = True
        return connection
