"""Client session for the upstream services: connection pool, time limits, TLS and proxy as configured."""

import socket
import ssl
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import ResolveResult

import proxy
from proxy import config
from proxy.upstream import connector

BYTE_SHARE = 2 / 3  # of the whole time, until the first byte, and between two


def open_session(upstream: config.UpstreamSettings) -> aiohttp.ClientSession:
    """Open a client session, which the caller closes. No cookies, and nothing from the environment but OpenSSL's own
    SSL_CERT_FILE: authorities that are trusted beside the system's."""
    connections_to, seconds = upstream.connections_to, upstream.total_seconds
    return aiohttp.ClientSession(
        connector=connector.AttemptConnector(
            config.CONNECT_SECONDS,
            limit=config.UPSTREAM_CONNECTIONS,
            ssl=_tls_context(upstream),
            resolver=_Resolver(connections_to) if connections_to else None,
        ),
        # A cookie of one application would be sent with the requests of another.
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(
            total=seconds, sock_connect=config.CONNECT_SECONDS, sock_read=seconds * BYTE_SHARE
        ),
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


def _tls_context(upstream: config.UpstreamSettings) -> ssl.SSLContext | bool:
    """Return the TLS context, with the authorities that are trusted now: aiohttp's own knows those of its import."""
    is_tls = any(url.startswith("https:") for url in (upstream.graphql_url, upstream.token_url))
    return ssl.create_default_context() if is_tls else True
