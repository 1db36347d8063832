"""Tests of endless responses over real sockets: cut off, bounded memory, possibly billed."""

import contextlib
import gzip
import tracemalloc
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from service.upstream.test_http_post import Raw, request

from proxy import errors
from proxy.upstream import http_post

OpenSession = Callable[..., aiohttp.ClientSession]

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
