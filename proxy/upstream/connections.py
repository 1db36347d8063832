"""Client session for the upstream services: time limits, TLS and proxy as configured; and its connection pool, which
records how far each request came, for the decision whether it may be sent again.

The one module that uses private attributes and undocumented behavior of aiohttp. Its test names each of them, and fails
when an aiohttp lacks one; `pyproject.toml` bounds the version.
"""

import asyncio
import math
import socket
import ssl
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey

import proxy
from proxy import config

RESPONSE_SHARE = 0.9  # of the time of a client's request; the rest is left to say that there was no response


def open_session(upstream: config.UpstreamSettings) -> aiohttp.ClientSession:
    """Open a client session, which the caller closes. No cookies, and nothing from the environment but OpenSSL's own
    SSL_CERT_FILE: authorities that are trusted beside the system's."""
    is_tls = any(url.startswith("https:") for url in (upstream.graphql_url, upstream.token_url))
    return aiohttp.ClientSession(
        connector=AttemptConnector(
            config.CONNECT_SECONDS,
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


class Attempt:
    """Progress of one attempt to send a request.

    `sent`: it had a connection. `reused`: that connection had been idle in the pool. `answered`: a response head has
    come. `since`: the loop's time at which the attempt got its connection; infinite while it waits for a free one.
    """

    __slots__ = ("answered", "reused", "sent", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.reused = self.sent = True
        self.answered = False


ATTEMPT: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


class AttemptConnector(aiohttp.TCPConnector):
    """Records in the current `ATTEMPT` that it waits for a free connection, and that it opens a new one.

    Reuse of an idle connection, the usual case, is an attempt's default and costs nothing; aiohttp's own tracing takes
    a tenth of a request's time. `connect_seconds` bounds the whole set-up of a connection: name, TCP, proxy and TLS.
    """

    def __init__(self, connect_seconds: float, **settings: Any) -> None:
        super().__init__(**settings)
        self._connect_seconds = connect_seconds

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
        async with asyncio.timeout(self._connect_seconds):  # aiohttp's sock_connect bounds the TCP handshake only
            connection = await super()._create_connection(req, traces, timeout)
        if attempt:
            attempt.sent = True
        return connection
