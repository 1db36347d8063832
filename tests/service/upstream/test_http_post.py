"""Tests of one POST over real sockets, to servers that misbehave, and of its session: trusted certificates, headers,
proxies and fixed hosts."""

import asyncio
import base64
import gzip
import math
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.certificates import CertificateAuthority
from support.forwarding_proxy import ForwardingProxy
from support.served import serve
from support.time_limit import until

from proxy import config, errors
from proxy.upstream import http_post

OpenSession = Callable[..., aiohttp.ClientSession]

BREAK = b""
MOST = 1_000_000
BOMB = gzip.compress(bytes(400 * MOST), 1)
COMPRESSED = {"Content-Encoding": "gzip"}


def response(*fields: str, body: bytes = b"", status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode() + body


def chunks(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%X\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


CHUNKED = "Transfer-Encoding: chunked"
GZIP = "Content-Encoding: gzip"
OK = response("Content-Length: 2", body=b"ok")


class Raw:
    """A server that answers each request on a connection with the next of its bytes; BREAK closes instead."""

    def __init__(self, *connections: list[bytes]) -> None:
        self.connections = list(connections)
        self.requests = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        async with asyncio.TaskGroup() as group:

            def connected(*streams: Any) -> None:
                group.create_task(self._handle(*streams))

            async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
                yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # a client that gives up may reset the connection
            await self.serve(reader, writer)
            writer.close()
            await writer.wait_closed()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for sent in self.connections.pop(0):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break  # the peer closed it
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            self.requests += 1
            if sent == BREAK:
                break
            writer.write(sent)
            await writer.drain()


class Silent(Raw):
    """A server that sends the beginning of a response, and no more; `arrived` is set at the first connection."""

    def __init__(self, beginning: bytes = b"") -> None:
        super().__init__()
        self.beginning = beginning
        self.arrived = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.arrived.set()
        writer.write(self.beginning)
        await reader.read()


async def post(
    session: aiohttp.ClientSession, url: str, seconds: float = math.inf, max_bytes: int = MOST, bills: bool = True
) -> http_post.HttpResponse:
    service = http_post.Service("the service", url, max_bytes, bills)
    return await http_post.post(session, service, b"body", {"Content-Type": "text/plain"}, seconds)


@pytest.mark.parametrize("first", [[BREAK], [OK, BREAK]])
async def test_what_may_have_been_read_is_not_sent_again(open_session: OpenSession, first: list[bytes]) -> None:
    """A connection that the service closes without a response, new or used before."""
    raw = Raw(first, [OK])
    async with raw.running() as url, open_session() as session:
        for _ in first[1:]:
            await post(session, url)
        with pytest.raises(errors.UpstreamUnreachable, match="the service closed the connection") as found:
            await post(session, url)
        assert raw.requests == len(first)
        assert found.value.may_be_billed
        assert (await post(session, url)).body == b"ok"


@pytest.mark.parametrize(
    "sent, message",
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "something that is not HTTP"),
        (response("Content-Length: 20", body=b"ok"), "an answer that is cut"),
        (response(CHUNKED, body=b"5\r\nab"), "an answer that is cut"),
        (response(GZIP, "Content-Length: 2", body=b"ok"), "an answer that is cut"),
        (response(CHUNKED, GZIP, body=chunks(b"not compressed", 99)), "an answer that is cut"),
        (response("Content-Length: 2", body=b"ok, and more than that"), ""),
        (response(CHUNKED, body=chunks(b"ok", 9) + b"more"), ""),
        (response(CHUNKED, body=b"five\r\nab"), ""),
        (response(CHUNKED, body=b"2\r\nabc\r\n0\r\n\r\n"), ""),
        (response(CHUNKED, body=b"-1\r\nab"), ""),
        (response(CHUNKED, body=b"1" * 20_000), ""),
        (response(*(f"X-{n}: {'x' * 4_000}" for n in range(1_000))), ""),
    ],
)
async def test_invalid_response_is_unreadable_and_may_be_billed(
    open_session: OpenSession, sent: bytes, message: str
) -> None:
    raw = Raw([OK, sent], [OK])
    async with raw.running() as url, open_session() as session:
        await post(session, url)
        with pytest.raises(errors.UpstreamUnreadable, match=f"the service sent {message}") as found:
            await post(session, url)
        assert raw.requests == 2
        assert found.value.may_be_billed
        assert (await post(session, url)).body == b"ok"


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"])
@pytest.mark.parametrize("total, seconds", [(60.0, 0.2), (0.3, 60)])
async def test_late_response_may_be_billed(
    open_session: OpenSession, sent: bytes, total: float, seconds: float
) -> None:
    async with Silent(sent).running() as url, open_session(total_seconds=total) as session:
        limit = f"the service did not answer in time: not whole within {0.9 * total:g} s"
        with pytest.raises(errors.UpstreamUnreachable, match=limit) as found:
            await post(session, url, seconds)
    assert found.value.may_be_billed


async def test_late_connection_is_named_and_unbilled(
    open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer accepts the connection, and never responds in the TLS handshake."""
    monkeypatch.setattr(config, "CONNECT_SECONDS", 0.05)
    async with Silent().running() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreachable, match=r"in time: no connection within 0\.05 s") as found:
            await post(session, url.replace("http:", "https:"))
    assert not found.value.may_be_billed


async def test_wait_for_a_free_connection_is_unbilled(
    open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "UPSTREAM_CONNECTIONS", 1)
    monkeypatch.setattr(config, "CONNECT_SECONDS", 0.05)
    raw = Silent()
    async with raw.running() as url, open_session() as session:
        first = asyncio.create_task(post(session, url))
        await raw.arrived.wait()
        with pytest.raises(errors.UpstreamUnreachable, match="no connection within") as found:
            await post(session, url)
        first.cancel()
    assert not found.value.may_be_billed


async def test_free_request_is_never_uncertain_usage(open_session: OpenSession) -> None:
    raw = Raw([BREAK], [b"SSH-2.0\r\n\r\n"], [response("Content-Length: 3", body=b"yes")])
    async with raw.running() as url, open_session() as session:
        for kind in (errors.UpstreamUnreachable, errors.UpstreamUnreadable, errors.OversizedOperation):
            with pytest.raises(kind) as found:
                await post(session, url, max_bytes=2, bills=False)
            assert not found.value.may_be_billed


async def test_cancelled_caller_leaves_no_reusable_connection(
    open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "UPSTREAM_CONNECTIONS", 1)

    raw = Raw([b"HTTP/1.1 200 OK\r\n", OK], [OK])
    async with raw.running() as url, open_session() as session:
        leaving, waiting = (asyncio.create_task(post(session, url)) for _ in range(2))
        await until(lambda: raw.requests)
        leaving.cancel()
        assert (await waiting).body == b"ok"


@pytest.mark.parametrize(
    "sent",
    [
        response(GZIP, CHUNKED, body=chunks(gzip.compress(b"a body"), 11)),
        response("Content-Encoding: deflate", CHUNKED, body=chunks(zlib.compress(b"a body"), 11)),
        response("Location: /x", "Content-Length: 6", body=b"a body", status="307 Elsewhere"),
        response("Retry-After:  120", "Content-Length: 6", body=b"a body", status="503 Later"),
    ],
)
async def test_response_is_whole_whatever_its_status_and_its_connection_reused(
    open_session: OpenSession, sent: bytes
) -> None:
    raw = Raw([sent, OK])
    async with raw.running() as url, open_session() as session:
        reply = await post(session, url)
        assert (reply.status, reply.body) == (int(sent[9:12]), b"a body")
        assert reply.retry_after(0.0) == (120 if reply.status == 503 else None)
        assert (await post(session, url)).body == b"ok"


@pytest.mark.parametrize("headers", [{}, COMPRESSED])
async def test_body_is_bounded_as_it_is_decompressed(open_session: OpenSession, headers: dict[str, str]) -> None:
    body = b"x" * MOST

    async def exactly(_: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(body) if headers else body, headers=headers)

    async with serve(exactly) as url, open_session() as session:
        assert (await post(session, url)).body == body
        with pytest.raises(errors.OversizedOperation, match=f"more than {MOST - 1} bytes"):
            await post(session, url, max_bytes=MOST - 1)


@pytest.mark.parametrize(
    "headers, piece", [({"Content-Length": str(10**12)}, b"x" * 65_536), ({}, b"x" * 65_536), (COMPRESSED, BOMB)]
)
async def test_endless_response_is_cancelled_and_nothing_of_it_kept(
    open_session: OpenSession, headers: dict[str, str], piece: bytes
) -> None:
    """Errors keep their frames, and form cycles that the garbage collector finds late."""
    connections = set()

    async def endless(got: web.Request) -> web.StreamResponse:
        connections.add(got.transport)
        response = web.StreamResponse(headers=headers)
        await response.prepare(got)
        with suppress(ConnectionError):
            while True:
                await response.write(piece)
        return response

    caught = []
    async with serve(endless) as url, open_session() as session:
        tracemalloc.start()
        try:
            for _ in range(10):
                with pytest.raises(errors.OversizedOperation, match=f"more than {MOST} bytes") as found:
                    await post(session, url)
                caught.append(found.value)
            held, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert all(error.may_be_billed for error in caught)
    assert len(connections) == 10
    assert held < 8 * MOST
    assert peak < 60 * MOST


async def ok(_: web.Request) -> web.Response:
    response = web.Response(text="ok")
    response.set_cookie("session", "1")
    return response


async def test_authorities_are_the_system_s_and_those_of_ssl_cert_file(
    open_session: OpenSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = CertificateAuthority(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*authority.issue("server"))
    async with serve(ok, tls=tls) as url:
        async with open_session() as session:
            with pytest.raises(errors.UpstreamUnreachable, match="shows a certificate that is not trusted") as found:
                await post(session, url)
        assert not found.value.may_be_billed
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
        async with open_session() as session:
            assert (await post(session, url)).body == b"ok"
            with pytest.raises(errors.UpstreamUnreachable, match="not trusted"):
                await post(session, url.replace("127.0.0.1", "localhost"))


async def test_proxy_credentials_are_sent_to_the_proxy(open_session: OpenSession) -> None:
    proxy = ForwardingProxy()
    async with (
        proxy.running() as address,
        open_session(proxy=config.secret.ProxyAddress(f"http://me:the%20word@{address}")) as session,
    ):
        assert (await post(session, "http://service.example/graphql")).body == b"proxy"
    (head,) = proxy.heads
    assert head.startswith("POST http://service.example/graphql HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:the word').decode()}\r\n" in head


async def test_proxy_that_refuses_or_is_away_is_named(open_session: OpenSession, unused_tcp_port: int) -> None:
    proxy = ForwardingProxy(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    async with proxy.running() as refusing:
        for address, message in (
            (refusing, "cannot be reached: the proxy on the way says HTTP 407"),
            (f"127.0.0.1:{unused_tcp_port}", "cannot be reached: there is no connection to the proxy on the way"),
        ):
            async with open_session(proxy=config.secret.ProxyAddress(f"http://me:hidden@{address}")) as session:
                with pytest.raises(errors.UpstreamUnreachable) as found:
                    await post(session, "https://service.example/")
            assert found.value.message == f"the service {message}"
            assert not found.value.may_be_billed


async def test_fixed_host_is_connected_to_and_neither_cookies_nor_the_environment_used(
    open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    heads = []

    async def noting(got: web.Request) -> web.Response:
        heads.append((got.host, dict(got.cookies)))
        return await ok(got)

    async with serve(noting) as url:
        address = url.removeprefix("http://").partition("/")[0]
        async with open_session(connect_to=(f"service.example:80:{address}",)) as session:
            for _ in range(2):
                assert (await post(session, "http://service.example/graphql")).body == b"ok"
    assert heads == [("service.example", {})] * 2
