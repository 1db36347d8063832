"""The way to an origin, as requests of the service go, by one HEAD request: where it ends, or the certificate and the
Date header of the server.

Nothing secret is sent, but the name and password of the proxy. An untrusted server gets nothing at all.
"""

import os
import ssl
from dataclasses import dataclass
from typing import Literal, NamedTuple

import aiohttp
import yarl

from proxy import config, errors
from proxy.gateway.core import Upstream

DATE_SECONDS = 5.0  # for a response, without which the check goes on
# OpenSSL's codes of verification (x509_vfy.h).
_NOT_VALID_NOW = {9, 10}
_WRONG_NAME = {62, 64}

Step = Literal[
    "resolve",
    "connect",
    "proxy",
    "proxy_authentication",
    "tls",
    "certificate_trust",
    "certificate_time",
    "certificate_name",
    "loop",
]


class RouteError(Exception):
    """The connection failed at a step; the message says why, without credentials."""

    def __init__(self, step: Step, message: str) -> None:
        super().__init__(message)
        self.step = step


class Reached(NamedTuple):
    """Result of a connection: what the server is, in words, and its Date header, if it sent one."""

    description: str
    date: str | None


class _Handshake:
    """TLS handshake of a request: whether it began, and whether it succeeded."""

    def __init__(self, context: ssl.SSLContext) -> None:
        handshake = self
        self.context = context
        self.began = False
        self.succeeded = False

        class Watched(ssl.SSLObject):
            def do_handshake(self) -> None:
                handshake.began = True
                super().do_handshake()  # raises SSLWantReadError until all has come
                handshake.succeeded = True

        context.sslobject_class = Watched


@dataclass(frozen=True, slots=True)
class OriginRoute:
    """Way to the origin of a URL of the upstream, directly or through a proxy, by a session of the service."""

    url: yarl.URL
    upstream: config.UpstreamSettings
    http: aiohttp.ClientSession

    @property
    def host(self) -> str:
        return self.url.host or ""

    @property
    def proxy(self) -> yarl.URL | None:
        return yarl.URL(self.upstream.proxy.reveal()) if self.upstream.proxy else None

    async def reach(self) -> Reached:
        """Send a HEAD request. Raises RouteError, and ConfigError for files of upstream.tls."""
        context = Upstream.tls_context(self.upstream.tls)
        handshake = _Handshake(ssl.create_default_context() if isinstance(context, bool) else context)
        date = None
        try:
            response = await self._head(handshake)
            date = response.headers.get("Date")
        except aiohttp.ClientConnectorCertificateError as error:
            raise self._untrusted(error.certificate_error) from error
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is a subclass of OSError
            # A server without a response to HEAD can be reached all the same.
            if failure := self._failure(error, handshake):
                raise failure from error
        else:
            if response.status == 407 and self.proxy:
                raise _unauthorized()
            if response.status == errors.UpstreamLoop.status:
                raise RouteError("loop", f"{self.host} is a v3bridge, perhaps this one: its requests would never end")
        through = f" through the proxy {self.proxy.host}:{self.proxy.port}" if self.proxy else ""
        shown = "with TLS" if handshake.began else "without TLS"
        return Reached(f"{self.host}:{self.url.port} is reached{through} {shown}", date)

    async def _head(self, handshake: _Handshake) -> aiohttp.ClientResponse:
        seconds = self.upstream.timeouts.connect_seconds
        limits = aiohttp.ClientTimeout(sock_connect=seconds, sock_read=min(seconds, DATE_SECONDS))
        async with self.http.head(self.url, ssl=handshake.context, timeout=limits, allow_redirects=False) as response:
            return response

    def _failure(self, error: Exception, handshake: _Handshake) -> RouteError | None:
        """Return the error of the step at which a request has failed; None if it was sent."""
        if isinstance(error, aiohttp.ClientHttpProxyError):
            destination = f"{self.url.host_subcomponent}:{self.url.port}"
            refused = RouteError("proxy", f"the proxy refuses a connection to {destination} (HTTP {error.status})")
            return _unauthorized() if error.status == 407 else refused
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            step: Step = "proxy" if self.proxy else "resolve"
            return RouteError(step, f"the name {error.host} is not resolved: {_reason(error)}")
        if handshake.began:
            problem = f"{self.host} speaks no TLS that fits: {_reason(error)}"
            return None if handshake.succeeded else RouteError("tls", problem)
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            first = self.proxy or self.url
            place = first.host or "", first.port or 0
            host, port = place if self.proxy else self.upstream.connections_to.get(place, place)
            return RouteError("proxy" if self.proxy else "connect", f"no connection to {host}:{port}: {_reason(error)}")
        if self.proxy and self.url.scheme == "https":
            return RouteError("proxy", f"the proxy does not respond to CONNECT: {_reason(error)}")
        return None

    def _untrusted(self, error: Exception) -> RouteError:
        """Return the error for a certificate that is refused."""
        assert isinstance(error, ssl.SSLCertVerificationError)  # noqa: S101 - as aiohttp has it
        if error.verify_code in _WRONG_NAME:
            return RouteError("certificate_name", f"the certificate is not for {self.host}")
        if error.verify_code in _NOT_VALID_NOW:
            return RouteError(
                "certificate_time", f"the certificate of {self.host} is not valid now: {error.verify_message}"
            )
        ca_file = self.upstream.tls.ca_file
        trusted = f"in upstream.tls.ca_file ({ca_file})" if ca_file else "in the system's list"
        return RouteError(
            "certificate_trust",
            f"the issuer of the certificate of {self.host} is not {trusted}: {error.verify_message}",
        )


def routes(upstream: config.UpstreamSettings, http: aiohttp.ClientSession) -> list[OriginRoute]:
    """Return the ways to the identity service and to the GraphQL service; one if both have the same origin."""
    urls = {url.origin(): url for url in map(yarl.URL, (upstream.token_url, upstream.graphql_url))}
    return [OriginRoute(url, upstream, http) for url in urls.values()]


def _unauthorized() -> RouteError:
    return RouteError("proxy_authentication", "the proxy wants a name and a password (HTTP 407)")


def _reason(error: Exception) -> str:
    """Return why a step failed, in words and in one line."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, TimeoutError):
        return "no response in time"
    if isinstance(cause, ssl.SSLError):
        return (cause.reason or "no TLS").replace("_", " ").lower()
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        return "it closes the connection"
    if isinstance(cause, OSError):
        # asyncio's own text has the address once more. Errors of name resolution have numbers below 0.
        return os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror or str(cause)
    return "the response is not HTTP"
