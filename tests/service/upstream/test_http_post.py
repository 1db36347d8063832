"""Tests of misbehaving connections, over real sockets."""

import asyncio
import contextlib
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from proxy import config, errors
from proxy.upstream import connections, http_post

OpenSession = Callable[..., aiohttp.ClientSession]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BREAK = b""


class Raw:
    """A server that answers each request on a connection with the next of its bytes; BREAK closes instead."""

    def __init__(self, *connections: list[bytes]) -> None:
        self.connections = list(connections)
        self.requests = 0
        self.handlers: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        finally:
            server.close()
            await asyncio.gather(*self.handlers)
            await server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.handlers.append(asyncio.create_task(self._closing(reader, writer)))

    async def _closing(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # a client that gives up may reset the connection
            await self._serve(reader, writer)
            writer.close()
            await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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


def request(url: str, billed: bool = True) -> http_post.HttpRequest:
    return http_post.HttpRequest(url, "the service", b"body", {"Content-Type": "text/plain"}, billed)


async def test_stale_connection_is_replaced_once(open_session: OpenSession) -> None:
    raw = Raw([OK, BREAK], [OK])
    async with raw.running() as url, open_session() as session:
        assert (await http_post.post(session, request(url))).body == b"ok"
        assert (await http_post.post(session, request(url))).body == b"ok"
    assert raw.requests == 3


async def test_retry_opens_a_new_connection(open_session: OpenSession) -> None:
    raw = Raw([OK, BREAK], [OK, BREAK], [OK, OK])
    async with raw.running() as url, open_session() as session:
        await asyncio.gather(*(http_post.post(session, request(url)) for _ in range(2)))
        assert (await http_post.post(session, request(url))).body == b"ok"
        assert (await http_post.post(session, request(url))).body == b"ok"
    assert raw.requests == 5


async def test_failure_of_a_new_connection_is_not_retried(open_session: OpenSession) -> None:
    raw = Raw([BREAK], [OK])
    async with raw.running() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreachable, match="the service closed the connection") as found:
            await http_post.post(session, request(url))
    assert raw.requests == 1
    assert found.value.may_be_billed


async def test_connection_closed_after_a_delay_is_not_stale(
    open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service may have worked until then, and have billed it."""
    monkeypatch.setattr(http_post, "IDLE_CLOSE_SECONDS", 0.0)
    raw = Raw([OK, BREAK], [OK])
    async with raw.running() as url, open_session() as session:
        await http_post.post(session, request(url))
        with pytest.raises(errors.UpstreamUnreachable, match="the service closed the connection") as found:
            await http_post.post(session, request(url))
    assert raw.requests == 2
    assert found.value.may_be_billed


async def test_second_failure_is_final(open_session: OpenSession) -> None:
    raw = Raw([OK, BREAK], [BREAK], [OK])
    async with raw.running() as url, open_session() as session:
        await http_post.post(session, request(url))
        with pytest.raises(errors.UpstreamUnreachable, match="the service closed the connection"):
            await http_post.post(session, request(url))
    assert raw.requests == 3


@pytest.mark.parametrize(
    "sent, message",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", "an answer that is cut"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "an answer that is cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", "an answer that is cut"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "something that is not HTTP"),
    ],
)
async def test_malformed_response_is_unreadable_and_not_retried(
    open_session: OpenSession, sent: bytes, message: str
) -> None:
    raw = Raw([OK, sent], [OK])
    async with raw.running() as url, open_session() as session:
        await http_post.post(session, request(url))
        with pytest.raises(errors.UpstreamUnreadable, match=f"the service sent {message}") as found:
            await http_post.post(session, request(url))
    assert raw.requests == 2
    assert found.value.may_be_billed


@pytest.mark.parametrize(
    "sent, share, limit",
    [
        (BREAK, 2.0, "not whole within 0.1 s"),
        (BREAK, 0.5, "no first byte within 0.05 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", 2.0, "not whole within 0.1 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", 0.5, "no further byte within 0.05 s"),
    ],
)
async def test_timeout_is_unreachable_and_names_its_limit(
    open_session: OpenSession, monkeypatch: pytest.MonkeyPatch, sent: Any, share: float, limit: str
) -> None:
    monkeypatch.setattr(connections, "BYTE_SHARE", share)

    class Silent(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            writer.write(sent)
            await reader.read()

    raw = Silent()
    async with raw.running() as url, open_session(total_seconds=0.1) as session:
        with pytest.raises(errors.UpstreamUnreachable, match=f"the service did not answer in time: {limit}") as found:
            await http_post.post(session, request(url))
    assert found.value.may_be_billed
    assert not isinstance(found.value, errors.DeadlineExceeded)


@pytest.mark.parametrize(
    "total, seconds, fair",
    [
        (60.0, 0.05, False),
        (0.3, 0.15, True),
        (0.3, 60, True),
    ],
)
async def test_fair_time_is_half_of_the_shorter_limit(
    open_session: OpenSession, total: float, seconds: float, fair: bool
) -> None:
    class Silent(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            await reader.read()

    raw = Silent()
    async with raw.running() as url, open_session(total_seconds=total) as session:
        with pytest.raises(errors.UpstreamUnreachable, match="did not answer in time") as found:
            await http_post.post(session, request(url)._replace(seconds=seconds))
    assert found.value.may_be_billed
    assert isinstance(found.value, errors.DeadlineExceeded) is not fair


async def test_failed_connect_is_named_and_unbilled(open_session: OpenSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer accepts the connection, and never responds in the TLS handshake."""
    monkeypatch.setattr(config, "CONNECT_SECONDS", 0.05)

    class Silent(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            await reader.read()

    raw = Silent()
    async with raw.running() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreachable, match=r"in time: no connection within 0\.05 s") as found:
            await http_post.post(session, request(url.replace("http:", "https:")))
    assert not found.value.may_be_billed


async def test_wait_for_a_free_connection_is_unbilled(
    open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "UPSTREAM_CONNECTIONS", 1)
    arrived = asyncio.Event()

    class Silent(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            arrived.set()
            await reader.read()

    raw = Silent()
    async with raw.running() as url, open_session(total_seconds=0.5) as session:
        first = asyncio.create_task(http_post.post(session, request(url)))
        await arrived.wait()
        shortly = request(url)._replace(seconds=0.3)  # of which the service has nothing
        with pytest.raises(errors.DeadlineExceeded, match="not whole within") as second:
            await http_post.post(session, shortly)
        with pytest.raises(errors.UpstreamUnreachable) as found:
            await first
    assert (found.value.may_be_billed, second.value.may_be_billed) == (True, False)


async def test_free_request_is_never_uncertain_usage(open_session: OpenSession) -> None:
    raw = Raw([BREAK], [b"SSH-2.0\r\n\r\n"])
    async with raw.running() as url, open_session() as session:
        for kind in (errors.UpstreamUnreachable, errors.UpstreamUnreadable):
            with pytest.raises(kind) as found:
                await http_post.post(session, request(url, billed=False))
            assert not found.value.may_be_billed


async def test_closed_port_is_unreachable(open_session: OpenSession, closed_port: int) -> None:
    async with open_session() as session:
        with pytest.raises(errors.UpstreamUnreachable, match="the service cannot be reached") as found:
            await http_post.post(session, request(f"http://127.0.0.1:{closed_port}/"))
    assert not found.value.may_be_billed


async def test_cookies_are_not_stored(serve: Any, open_session: OpenSession) -> None:
    cookies = []

    async def baking(got: web.Request) -> web.Response:
        cookies.append(dict(got.cookies))
        response = web.Response()
        response.set_cookie("session", "1")
        return response

    async with serve(baking) as url, open_session() as session:
        await http_post.post(session, request(url))
        await http_post.post(session, request(url))
    assert cookies == [{}, {}]


async def test_redirect_is_a_response(open_session: OpenSession) -> None:
    raw = Raw([b"HTTP/1.1 307 Elsewhere\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"])
    async with raw.running() as url, open_session() as session:
        assert (await http_post.post(session, request(url))).status == 307
    assert raw.requests == 1


async def test_cancelled_caller_leaves_no_reusable_connection(
    open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "UPSTREAM_CONNECTIONS", 1)
    arrived = asyncio.Event()

    class Slow(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            if not arrived.is_set():
                arrived.set()
                await reader.read()
            else:
                await super()._serve(reader, writer)

    raw = Slow([OK])
    async with raw.running() as url, open_session() as session:
        first = asyncio.create_task(http_post.post(session, request(url)))
        await arrived.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await http_post.post(session, request(url))).body == b"ok"


def response(*fields: str, body: bytes = b"", status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode() + body


def chunks(body: bytes, size: int, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    coded = b"".join(b"%X%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)
    return coded + b"0\r\n" + trailer + b"\r\n"


CHUNKED = "Transfer-Encoding: chunked"
GZIP = "Content-Encoding: gzip"


@pytest.mark.parametrize(
    "sent",
    [
        response(GZIP, CHUNKED, body=chunks(gzip.compress(b"a body"), 11)),
        response("Content-Encoding: deflate", CHUNKED, body=chunks(zlib.compress(b"a body"), 11)),
    ],
)
async def test_compressed_body_is_whole_and_its_connection_reused(open_session: OpenSession, sent: bytes) -> None:
    raw = Raw([sent, OK])
    async with raw.running() as url, open_session() as session:
        assert [(await http_post.post(session, request(url))).body for _ in range(2)] == [b"a body", b"ok"]


async def test_status_and_retry_after_are_passed_on(open_session: OpenSession) -> None:
    raw = Raw([response("Retry-After:  120", "Content-Length: 2", body=b"no", status="503 Later")])
    async with raw.running() as url, open_session() as session:
        assert (await http_post.post(session, request(url)))[:3] == (503, b"no", "120")


@pytest.mark.parametrize(
    "sent",
    [
        response("Content-Length: 2", body=b"ok, and more than that"),
        response(CHUNKED, body=chunks(b"ok", 9) + b"more"),
        response(CHUNKED, body=b"five\r\nab"),
        response(CHUNKED, body=b"2\r\nabc\r\n0\r\n\r\n"),
        response(CHUNKED, body=b"-1\r\nab"),
        response(CHUNKED, body=b"1" * 20_000),
        response(CHUNKED, GZIP, body=chunks(b"not compressed", 99)),
    ],
)
async def test_invalid_body_is_unreadable_and_may_be_billed(open_session: OpenSession, sent: bytes) -> None:
    raw = Raw([sent], [OK])
    async with raw.running() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreadable, match="the service sent") as found:
            await http_post.post(session, request(url))
        assert found.value.may_be_billed
        assert (await http_post.post(session, request(url))).body == b"ok"


async def test_chunks_beyond_the_bound_are_refused(open_session: OpenSession) -> None:
    raw = Raw([response(CHUNKED, GZIP, body=chunks(gzip.compress(bytes(5_000)), 9))])
    async with raw.running() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreadable, match="more than 4999 bytes"):
            await http_post.post(session, request(url)._replace(max_bytes=4_999))


MOST = 1_000_000


async def test_response_within_its_bound_is_complete(serve: Any, open_session: OpenSession) -> None:
    body = b"x" * MOST

    async def exactly(_: web.Request) -> web.Response:
        return web.Response(body=body)

    async with serve(exactly) as url, open_session() as session:
        asked = request(url)._replace(max_bytes=MOST)
        assert (await http_post.post(session, asked)).body == body


@pytest.mark.parametrize("announced", [True, False])
async def test_endless_response_is_cancelled_as_possibly_billed(
    serve: Any, open_session: OpenSession, announced: bool
) -> None:
    sent = 0
    connections: list[Any] = []

    async def endless(got: web.Request) -> web.StreamResponse:
        nonlocal sent
        connections.append(got.transport)
        response = web.StreamResponse(headers={"Content-Length": str(10**12)} if announced else {})
        await response.prepare(got)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65_536)
                sent += 65_536
        return response

    async with serve(endless) as url, open_session() as session:
        for _ in range(2):
            with pytest.raises(errors.UpstreamUnreadable, match=f"more than {MOST} bytes") as caught:
                await http_post.post(session, request(url)._replace(max_bytes=MOST))
            assert caught.value.may_be_billed
    assert connections[0] is not connections[1]
    assert sent < 16 * MOST


async def test_compression_bomb_is_cancelled_before_decompression(serve: Any, open_session: OpenSession) -> None:
    bomb = gzip.compress(bytes(400_000_000), 1)

    async def packed(_: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    tracemalloc.start()
    try:
        async with serve(packed) as url, open_session() as session:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            with pytest.raises(errors.UpstreamUnreadable, match="more than"):
                await http_post.post(session, request(url)._replace(max_bytes=MOST))
            assert tracemalloc.get_traced_memory()[1] - before < 60_000_000
    finally:
        tracemalloc.stop()


async def test_endless_head_is_unreadable(open_session: OpenSession) -> None:
    class Heads(Raw):
        async def _closing(self, reader: Any, writer: Any) -> None:
            with contextlib.suppress(ConnectionError):
                await super()._closing(reader, writer)

        async def _serve(self, reader: Any, writer: Any) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n")
            for number in range(100_000):
                writer.write(b"X-%d: %s\r\n" % (number, b"x" * 4_000))
                await writer.drain()

    async with Heads().running() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreadable):
            await http_post.post(session, request(url))


async def test_error_holds_no_part_of_the_cancelled_response(serve: Any, open_session: OpenSession) -> None:
    """Errors keep their frames, and form cycles that the garbage collector finds late."""

    async def endless(got: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(got)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65_536)
        return response

    caught_errors = []
    async with serve(endless) as url, open_session() as session:
        tracemalloc.start()
        try:
            for _ in range(10):
                with pytest.raises(errors.UpstreamUnreadable) as caught:
                    await http_post.post(session, request(url)._replace(max_bytes=MOST))
                caught_errors.append(caught.value)
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
    assert len(caught_errors) == 10
    assert held < 8 * MOST
