"""One connection to an origin, step by step: name, proxy, TLS, and the Date header of a response.

The service's own connections say only that they failed. This one says at which step, and reads the certificate that an
untrusted server shows. Nothing secret is sent, but the name and password of the proxy.
"""

import asyncio
import base64
import email
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

import yarl
from cryptography import x509
from cryptography.x509.oid import NameOID

import proxy as program
from proxy import config
from proxy.upstream import session

DATE_SECONDS = 5.0  # for a Date header, without which the check goes on
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

T = TypeVar("T")


class RouteError(Exception):
    """The connection failed at a step; the message says why, without credentials."""

    def __init__(self, step: Step, message: str) -> None:
        super().__init__(message)
        self.step = step


class Reached(NamedTuple):
    """Result of a connection: what the server is, in words, and its Date header, if it sent one."""

    description: str
    date: str | None


@dataclass(frozen=True, slots=True)
class OriginRoute:
    """Way to an origin, such as https://api.nexar.com, directly or through a proxy."""

    origin: yarl.URL
    proxy: yarl.URL | None
    tls: config.TlsSettings
    seconds: float  # for each step
    path: str = "/"  # of a HEAD request
    connections_to: Mapping[tuple[str, int], tuple[str, int]] = field(default_factory=dict)

    async def reach(self) -> Reached:
        """Connect, and send a HEAD request. Raises RouteError, and ConfigError for files of upstream.tls."""
        context = self._context()
        async with self._connected() as (reader, writer):
            description = await self._secure(writer, context)
            date = None
            # A server without a response to HEAD can be reached all the same.
            with suppress(OSError, EOFError, ValueError):
                async with asyncio.timeout(min(self.seconds, DATE_SECONDS)):
                    date = await self._date(reader, writer)
        return Reached(description, date)

    @property
    def host(self) -> str:
        return self.origin.host or ""

    @property
    def port(self) -> int:
        return self.origin.port or 0

    def _context(self) -> ssl.SSLContext:
        context = session.tls_context(self.tls)
        return ssl.create_default_context() if isinstance(context, bool) else context

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Connect to the origin, or to the proxy and through it, without TLS."""
        first = self.proxy or self.origin
        host, port = first.host or "", first.port or 0
        if self.proxy is None:
            host, port = self.connections_to.get((host, port), (host, port))
        await self._resolve(host, port)
        try:
            reader, writer = await self._in_time(asyncio.open_connection(host, port))
        except OSError as error:
            raise RouteError(
                "proxy" if self.proxy else "connect", f"no connection to {host}:{port}: {_reason(error)}"
            ) from error
        try:
            if self.proxy and self.origin.scheme == "https":
                await self._tunnel(reader, writer)
            yield reader, writer
        finally:
            writer.close()
            with suppress(OSError, TimeoutError):
                await self._in_time(writer.wait_closed())

    async def _resolve(self, host: str, port: int) -> None:
        try:
            await self._in_time(asyncio.get_running_loop().getaddrinfo(host, port))
        except OSError as error:
            step: Step = "proxy" if self.proxy else "resolve"
            raise RouteError(step, f"the name {host} is not resolved: {_reason(error)}") from error

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        destination = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        writer.write(_head(f"CONNECT {destination}", destination, self._authorization()))
        try:
            status, _ = await self._in_time(_read_head(reader))
        except (OSError, EOFError, ValueError) as error:
            raise RouteError("proxy", f"the proxy does not respond to CONNECT: {_reason(error)}") from error
        if status == 407:
            raise RouteError("proxy_authentication", "the proxy wants a name and a password (HTTP 407)")
        if status != 200:
            raise RouteError("proxy", f"the proxy refuses a connection to {destination} (HTTP {status})")

    async def _secure(self, writer: asyncio.StreamWriter, context: ssl.SSLContext) -> str:
        """Begin TLS, where the origin has it, and describe the connection."""
        through = f" through the proxy {self.proxy.host}:{self.proxy.port}" if self.proxy else ""
        if self.origin.scheme != "https":
            return f"{self.host}:{self.port} is reached{through}, without TLS"
        try:
            await self._in_time(writer.start_tls(context, server_hostname=self.host))
        except ssl.SSLCertVerificationError as error:
            raise await self._untrusted(error) from error
        except (OSError, ssl.SSLError) as error:
            raise RouteError("tls", f"{self.host} speaks no TLS that fits: {_reason(error)}") from error
        issuer = _issuer(writer)
        return f"{self.host}:{self.port} is reached{through}, its certificate is issued by {issuer}"

    async def _untrusted(self, error: ssl.SSLCertVerificationError) -> RouteError:
        """Return the error for a certificate that is refused, with its issuer."""
        if error.verify_code in _WRONG_NAME:
            return RouteError("certificate_name", f"the certificate is not for {self.host}")
        if error.verify_code in _NOT_VALID_NOW:
            return RouteError(
                "certificate_time", f"the certificate of {self.host} is not valid now: {error.verify_message}"
            )
        issuer = await self._shown_issuer()
        trusted = f"in upstream.tls.ca_file ({self.tls.ca_file})" if self.tls.ca_file else "in the system's list"
        return RouteError(
            "certificate_trust", f"the certificate of {self.host} is issued by {issuer}, which is not {trusted}"
        )

    async def _shown_issuer(self) -> str:
        """Read the issuer of the certificate in a second connection, which trusts it and sends nothing."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            async with self._connected() as (_, writer):
                await self._in_time(writer.start_tls(context, server_hostname=self.host))
                return _issuer(writer)
        except (RouteError, OSError, ValueError):
            return "somebody unknown"

    async def _date(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str | None:
        # A proxy sees the whole address and its password where there is no tunnel.
        through_proxy = self.proxy is not None and self.origin.scheme == "http"
        target = f"{self.origin}{self.path}" if through_proxy else self.path
        host = str(self.origin).partition("://")[2]  # without the port where it is the scheme's
        writer.write(_head(f"HEAD {target}", host, self._authorization() if through_proxy else ""))
        status, headers = await _read_head(reader)
        if through_proxy and status == 407:
            raise RouteError("proxy_authentication", "the proxy wants a name and a password (HTTP 407)")
        if status == session.UpstreamLoop.status:
            raise RouteError("loop", f"{self.host} is a v3bridge, perhaps this one: its requests would never end")
        return headers.get("Date")

    def _authorization(self) -> str:
        if self.proxy is None or self.proxy.user is None:
            return ""
        credentials = f"{self.proxy.user}:{self.proxy.password or ''}".encode()
        return f"Proxy-Authorization: Basic {base64.b64encode(credentials).decode()}\r\n"

    async def _in_time(self, work: Awaitable[T]) -> T:
        async with asyncio.timeout(self.seconds):
            return await work


def routes(upstream: config.UpstreamSettings) -> list[OriginRoute]:
    """Return the ways to the identity service and to the GraphQL service; one if both have the same origin."""
    proxy = yarl.URL(upstream.proxy.reveal()) if upstream.proxy else None
    urls = {url.origin(): url for url in map(yarl.URL, (upstream.token_url, upstream.graphql_url))}
    seconds = upstream.timeouts.connect_seconds
    return [
        OriginRoute(origin, proxy, upstream.tls, seconds, url.raw_path, upstream.connections_to)
        for origin, url in urls.items()
    ]


def _head(request: str, host: str, headers: str) -> bytes:
    return (
        f"{request} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: v3bridge/{program.__version__}\r\n{headers}"
        "Connection: close\r\n\r\n"
    ).encode()


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, "email.message.Message[str, str]"]:
    """Read status and headers of a response. Raises ValueError for something that is not HTTP."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise ValueError("the head of the response is too long") from error
    status_line, _, lines = head.partition("\r\n")
    version, _, rest = status_line.partition(" ")
    if not version.startswith("HTTP/"):
        raise ValueError("the response is not HTTP")
    return int(rest[:3]), email.message_from_string(lines)


def _issuer(writer: asyncio.StreamWriter) -> str:
    """Return the name of the issuer of the server's certificate."""
    tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
    encoded = tls.getpeercert(binary_form=True)
    if encoded is None:
        return "nobody"
    name = x509.load_der_x509_certificate(encoded).issuer
    texts = [
        str(attribute.value)
        for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
        for attribute in name.get_attributes_for_oid(oid)[:1]
    ]
    return f'"{", ".join(texts)}"' if texts else name.rfc4514_string()


def _reason(error: BaseException) -> str:
    """Return why a step failed, in words and in one line."""
    if isinstance(error, TimeoutError):
        return "no response in time"
    if isinstance(error, ssl.SSLError):
        return (error.reason or "no TLS").replace("_", " ").lower()
    if isinstance(error, OSError):
        # asyncio's own text has the address once more. Errors of name resolution have numbers below 0.
        return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
    return "it closes the connection" if isinstance(error, EOFError) else str(error)
