"""Tests of server shutdown: open connections are served once more, and closed without delay afterwards."""

import asyncio
import contextlib
import socket
from typing import Any

import pytest
from aiohttp import web
from support import running_server

from proxy import sockets
from proxy.v3.encoding import EncodedBody
from proxy.web import responses, routing, server
from proxy.web.connections import Limits


async def nothing(_: web.BaseRequest) -> web.Response:
    return web.Response(status=404, text="nothing")


def limits(drain_seconds: float) -> Limits:
    return Limits(stop_seconds=60, drain_seconds=drain_seconds)


async def end_after(turns: int) -> bytes:
    """Return the response to a request after shutdown, on a connection opened some event loop turns before it."""
    async with asyncio.timeout(20), contextlib.AsyncExitStack() as stack:
        async with running_server.running(nothing, limits=limits(0)) as url:
            port = int(url.rpartition(":")[2])
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            for _ in range(turns):
                await asyncio.sleep(0)
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            return await asyncio.to_thread(connection.recv, 1)
        return b""


@pytest.mark.parametrize("turns", range(8))
def test_unused_connection_is_closed_on_shutdown(turns: int) -> None:
    assert asyncio.run(end_after(turns)) == b""


REQUEST = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


async def requested_while_draining(*requests: bytes, unused: bool) -> list[bytes]:
    """Return the heads of the responses to requests that are sent together after shutdown began, on a connection that
    was idle before, or `unused`. Fails unless the shutdown ends with the connection, long before its time limits."""
    async with asyncio.timeout(20):
        stack = contextlib.AsyncExitStack()
        url = await stack.enter_async_context(running_server.running(nothing, limits=limits(60)))
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        if not unused:
            writer.write(REQUEST)
            assert b"connection: close" not in (await head(reader)).lower()
        shutdown = asyncio.create_task(stack.aclose())
        await asyncio.sleep(0.1)
        assert not shutdown.done()
        writer.write(b"".join(requests))
        heads = [await head(reader) for _ in requests]
        assert await reader.read() == b""
        await shutdown
        writer.close()
        return heads


async def head(reader: asyncio.StreamReader) -> bytes:
    """Read a response, and return its head."""
    received = await reader.readuntil(b"\r\n\r\n")
    length = int(received.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return received


@pytest.mark.parametrize("unused", [True, False])
def test_request_on_an_open_connection_is_served_during_shutdown_and_is_its_last(unused: Any) -> None:
    (only,) = asyncio.run(requested_while_draining(REQUEST, unused=unused))
    assert only.startswith(b"HTTP/1.1 404")
    assert b"\r\nConnection: close\r\n" in only


async def without_connections() -> None:
    async with (
        asyncio.timeout(20),
        running_server.running(nothing, limits=limits(60)),
    ):
        pass


def test_shutdown_without_connections_waits_for_nothing() -> None:
    asyncio.run(without_connections())


async def idle_until_the_end() -> bytes:
    async with asyncio.timeout(20):
        async with running_server.running(nothing, limits=limits(0.05)) as url:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(REQUEST)
            await head(reader)
        received = await reader.read()
        writer.close()
        return received


def test_idle_connection_is_closed_when_its_time_is_over() -> None:
    assert asyncio.run(idle_until_the_end()) == b""


def saying(name: str) -> routing.Handler:
    async def respond(_: web.BaseRequest) -> web.Response:
        return web.Response(text=name)

    return respond


async def names_before_and_after_a_replacement() -> list[bytes]:
    """Return the ends of the responses to two requests on one connection."""
    async with asyncio.timeout(20), server.listening(saying("first"), sockets.listen("127.0.0.1", 0)) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(listener.url.rpartition(":")[2]))
        names = []
        for name in (b"first", b"second"):
            writer.write(REQUEST)
            names.append((await reader.readuntil(name))[-len(name) :])
            listener.replace(saying("second"), Limits())
        writer.close()
        return names


def test_open_connection_is_served_by_the_new_handler() -> None:
    assert asyncio.run(names_before_and_after_a_replacement()) == [b"first", b"second"]


HEADERS = {"Content-Type": "application/json", "X-Cache": "hit"}


async def plain(request: routing.Request) -> web.StreamResponse:
    return responses.response(request, EncodedBody(b"the body", HEADERS))


async def by_aiohttp(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=b"the body", headers=HEADERS)


async def received(handler: routing.Handler, request: bytes) -> list[set[bytes]]:
    """Return the lines of the responses to a request that is sent twice at once, unless it is the last one; without
    those of the moment."""
    times = 1 if b"close" in request else 2
    async with asyncio.timeout(20), running_server.running(handler, limits=limits(0)) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(request * times)
        heads = []
        for _ in range(times):
            heads.append({line for line in (await reader.readuntil(b"\r\n\r\n")).splitlines() if b"Date: " not in line})
            if not request.startswith(b"HEAD"):
                assert await reader.readexactly(8) == b"the body"
        if times == 1:
            assert await reader.read() == b""
        writer.close()
        return heads


@pytest.mark.parametrize(
    "first, more",
    [
        (b"GET / HTTP/1.1", b""),
        (b"GET / HTTP/1.1", b"Connection: close\r\n"),
        (b"HEAD / HTTP/1.1", b""),
        (b"GET / HTTP/1.0", b"Connection: keep-alive\r\n"),
    ],
)
def test_head_that_is_written_here_is_that_of_aiohttp(first: bytes, more: bytes) -> None:
    request = first + b"\r\nHost: a\r\n" + more + b"\r\n"
    written = asyncio.run(received(plain, request))
    assert written == asyncio.run(received(by_aiohttp, request))
    assert (b"Connection: close" in written[0]) == (b"close" in request)
