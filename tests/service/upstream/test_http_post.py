"""Tests of misbehaving connections, over real sockets."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from proxy import config, errors
from proxy.upstream import http_post

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
        for answer in self.connections.pop(0):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break  # the peer closed it
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            self.requests += 1
            if answer == BREAK:
                break
            writer.write(answer)
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
    "answer, message",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", "an answer that is cut"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "an answer that is cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", "an answer that is cut"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "something that is not HTTP"),
    ],
)
async def test_malformed_response_is_unreadable_and_not_retried(
    open_session: OpenSession, answer: bytes, message: str
) -> None:
    raw = Raw([OK, answer], [OK])
    async with raw.running() as url, open_session() as session:
        await http_post.post(session, request(url))
        with pytest.raises(errors.UpstreamUnreadable, match=f"the service sent {message}") as found:
            await http_post.post(session, request(url))
    assert raw.requests == 2
    assert found.value.may_be_billed


def limits(**seconds: float) -> config.TimeoutSettings:
    return config.TimeoutSettings(**{f"{name}_seconds": value for name, value in seconds.items()})


@pytest.mark.parametrize(
    "answer, timeouts, limit",
    [
        (BREAK, limits(total=0.05), "not whole within 0.05 s"),
        (BREAK, limits(first_byte=0.05), "no first byte within 0.05 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", limits(total=0.05), "not whole within 0.05 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", limits(first_byte=0.05), "no further byte within 0.05 s"),
    ],
)
async def test_timeout_is_unreachable_and_names_its_limit(
    open_session: OpenSession, answer: Any, timeouts: Any, limit: str
) -> None:
    class Silent(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            writer.write(answer)
            await reader.read()

    raw = Silent()
    async with raw.running() as url, open_session(timeouts=timeouts) as session:
        with pytest.raises(errors.UpstreamUnreachable, match=f"the service did not answer in time: {limit}") as found:
            await http_post.post(session, request(url))
    assert found.value.may_be_billed
    assert not isinstance(found.value, errors.DeadlineExceeded)


@pytest.mark.parametrize(
    "timeouts, seconds, fair",
    [
        (limits(first_byte=60, total=60), 0.05, False),
        (limits(first_byte=60, total=0.2), 0.15, True),
        (limits(first_byte=0.2, total=60), 60, True),
    ],
)
async def test_fair_time_is_half_of_the_shorter_limit(
    open_session: OpenSession, timeouts: Any, seconds: float, fair: bool
) -> None:
    class Silent(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            await reader.read()

    raw = Silent()
    async with raw.running() as url, open_session(timeouts=timeouts) as session:
        with pytest.raises(errors.UpstreamUnreachable, match="did not answer in time") as found:
            await http_post.post(session, request(url)._replace(seconds=seconds))
    assert found.value.may_be_billed
    assert isinstance(found.value, errors.DeadlineExceeded) is not fair


async def test_failed_connect_is_named_and_unbilled(open_session: OpenSession) -> None:
    """The peer accepts the connection, and never responds in the TLS handshake."""

    class Silent(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            await reader.read()

    raw = Silent()
    async with raw.running() as url, open_session(timeouts=limits(connect=0.05)) as session:
        with pytest.raises(errors.UpstreamUnreachable, match=r"in time: no connection within 0\.05 s") as found:
            await http_post.post(session, request(url.replace("http:", "https:")))
    assert not found.value.may_be_billed


async def test_wait_for_a_free_connection_is_unbilled(open_session: OpenSession) -> None:
    arrived = asyncio.Event()

    class Silent(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            arrived.set()
            await reader.read()

    raw = Silent()
    async with raw.running() as url, open_session(connections=1, timeouts=limits(total=0.5)) as session:
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


async def test_compressed_response_is_decompressed(serve: Any, open_session: OpenSession) -> None:
    async def packed(_: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(b"plain"), headers={"Content-Encoding": "gzip"})

    async with serve(packed) as url, open_session() as session:
        assert (await http_post.post(session, request(url))).body == b"plain"


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


async def test_connection_is_reused(open_session: OpenSession) -> None:
    raw = Raw([OK, OK, OK])
    async with raw.running() as url, open_session() as session:
        for _ in range(3):
            assert (await http_post.post(session, request(url))).status == 200
    assert raw.requests == 3


async def test_response_ended_by_close_is_complete(open_session: OpenSession) -> None:
    raw = Raw([b"HTTP/1.0 200 OK\r\n\r\nall of it"], [OK])
    async with raw.running() as url, open_session() as session:
        assert (await http_post.post(session, request(url))).body == b"all of it"
        assert (await http_post.post(session, request(url))).body == b"ok"


async def test_early_hints_are_skipped(open_session: OpenSession) -> None:
    raw = Raw([b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK, OK])
    async with raw.running() as url, open_session() as session:
        assert (await http_post.post(session, request(url))).body == b"ok"
        assert (await http_post.post(session, request(url))).body == b"ok"


async def test_redirect_is_a_response(open_session: OpenSession) -> None:
    raw = Raw([b"HTTP/1.1 307 Elsewhere\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"])
    async with raw.running() as url, open_session() as session:
        assert (await http_post.post(session, request(url))).status == 307
    assert raw.requests == 1


async def test_header_injection_is_prevented(open_session: OpenSession, serve: Any) -> None:
    async def never(_: web.Request) -> web.Response:
        raise AssertionError

    async with serve(never) as url, open_session() as session:
        broken = request(url)._replace(headers={"Authorization": "Bearer x\r\nX-Other: y"})
        with pytest.raises(ValueError, match="header"):
            await http_post.post(session, broken)


async def test_cancelled_caller_leaves_no_reusable_connection(open_session: OpenSession) -> None:
    arrived = asyncio.Event()

    class Slow(Raw):
        async def _serve(self, reader: Any, writer: Any) -> None:
            if not arrived.is_set():
                arrived.set()
                await reader.read()
            else:
                await super()._serve(reader, writer)

    raw = Slow([OK])
    async with raw.running() as url, open_session(connections=1) as session:
        first = asyncio.create_task(http_post.post(session, request(url)))
        await arrived.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await http_post.post(session, request(url))).body == b"ok"
