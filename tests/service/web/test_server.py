"""Tests of the server: its shutdown, in which open connections are served once more, and the head that it writes."""

import asyncio
import contextlib
import importlib.metadata
import socket
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from packaging.requirements import Requirement
from support import running_server

from proxy.v3.encoding import EncodedBody
from proxy.web import messages
from proxy.web.connections import Limits

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
HEADERS = {"Content-Type": "application/json", "X-Cache": "hit"}


async def nothing(_: web.BaseRequest) -> web.Response:
    return web.Response(status=404, text="nothing")


@contextlib.asynccontextmanager
async def serving(
    drain_seconds: float, handler: messages.Handler = nothing
) -> AsyncIterator[tuple[contextlib.AsyncExitStack, int]]:
    """Yield the server, which closing the stack shuts down, and its port."""
    async with asyncio.timeout(20), contextlib.AsyncExitStack() as stack:
        limits = Limits(stop_seconds=60, drain_seconds=drain_seconds)
        url = await stack.enter_async_context(running_server.running(handler, limits=limits))
        yield stack, int(url.rpartition(":")[2])


async def head(reader: asyncio.StreamReader) -> bytes:
    """Read a response, and return its head."""
    received = await reader.readuntil(b"\r\n\r\n")
    length = int(received.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return received


@pytest.mark.parametrize("turns", range(8))
async def test_unused_connection_is_closed_on_shutdown(turns: int) -> None:
    """It was opened some turns of the event loop before."""
    async with serving(0) as (server, port):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.aclose()
            with contextlib.suppress(ConnectionError):
                connection.sendall(REQUEST)
                assert await asyncio.to_thread(connection.recv, 1) == b""


@pytest.mark.parametrize("unused", [True, False])
async def test_request_on_an_open_connection_is_served_during_shutdown_and_is_its_last(unused: bool) -> None:
    """The shutdown ends with the connection, long before its time limits."""
    async with serving(60) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if not unused:
            writer.write(REQUEST)
            assert b"connection: close" not in (await head(reader)).lower()
        shutdown = asyncio.create_task(server.aclose())
        await asyncio.sleep(0.1)
        assert not shutdown.done()
        writer.write(REQUEST)
        only = await head(reader)
        assert await reader.read() == b""
        await shutdown
        writer.close()
    assert only.startswith(b"HTTP/1.1 404")
    assert b"\r\nConnection: close\r\n" in only


async def test_idle_connection_is_closed_when_its_time_is_over() -> None:
    async with serving(0.05) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        await head(reader)
        await server.aclose()
        assert await reader.read() == b""
        writer.close()


async def plain(request: messages.Request) -> web.StreamResponse:
    return messages.response(request, EncodedBody(b"the body", HEADERS))


async def by_aiohttp(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=b"the body", headers=HEADERS)


async def received(handler: messages.Handler, request: bytes) -> list[set[bytes]]:
    """Return the lines of the responses to a request that is sent twice at once, unless it is the last one; without
    those of the moment."""
    times = 1 if b"close" in request else 2
    async with serving(0, handler) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
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
async def test_head_that_is_written_here_is_that_of_aiohttp(first: bytes, more: bytes) -> None:
    request = first + b"\r\nHost: a\r\n" + more + b"\r\n"
    written = await received(plain, request)
    assert written == await received(by_aiohttp, request)
    assert (b"Connection: close" in written[0]) == (b"close" in request)


def test_project_bounds_the_version_of_aiohttp() -> None:
    """The server depends on what aiohttp does not document: `PlainResponse`, and `Listener` for malformed requests."""
    root = Path(__file__).parents[3]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bound,) = (need for need in map(Requirement, project["dependencies"]) if need.name == "aiohttp")
    assert any(each.operator == "<" for each in bound.specifier)
    assert bound.specifier.contains(importlib.metadata.version("aiohttp"))
