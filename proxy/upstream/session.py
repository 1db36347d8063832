"""Client session for the upstream services: connection pool, time limits, TLS and proxy as configured."""

import socket
import ssl
from collections.abc import Mapping

import aiohttp
from aiohttp.abc import ResolveResult

import proxy
from proxy import config, errors
from proxy.upstream import connector

BYTE_SHARE = 2 / 3  # of the whole time, until the first byte, and between two


def open_session(upstream: config.UpstreamSettings) -> aiohttp.ClientSession:
    """Open a client session, which the caller closes. No cookies, nothing from the environment.

    Raises ConfigError for a CA file that cannot be used.
    """
    connections_to, seconds = upstream.connections_to, upstream.total_seconds
    return aiohttp.ClientSession(
        connector=connector.AttemptConnector(
            config.CONNECT_SECONDS,
            limit=config.UPSTREAM_CONNECTIONS,
            ssl=tls_context(upstream.ca_file),
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


def tls_context(ca_file: str | None) -> ssl.SSLContext | bool:
    """Return the TLS context with the configured CA; True is aiohttp's default, the system's CAs."""
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (ssl.SSLError, OSError):
        raise errors.ConfigError(f"upstream.ca_file: {ca_file} holds no certificate in PEM form") from None
