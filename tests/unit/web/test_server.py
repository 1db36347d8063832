"""Tests of server shutdown: connections accepted at the last moment are closed without delay."""

import asyncio
import contextlib
import socket
from typing import Any

import pytest
from aiohttp import web

from proxy.kit import event_loop
from proxy.web import server


async def end_after(turns: int) -> bytes:
    """Return the response to a request after shutdown, on a connection opened some event loop turns before it."""
    async with asyncio.timeout(20), contextlib.AsyncExitStack() as stack:
        async with server.running(web.Application(), "127.0.0.1", 0, stop_seconds=60) as url:
            port = int(url.rpartition(":")[2])
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            for _ in range(turns):
                await asyncio.sleep(0)
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            return await asyncio.to_thread(connection.recv, 1)
        return b""


@pytest.mark.parametrize("turns", range(8))
def test_unused_connection_is_closed_on_shutdown(turns: Any) -> None:
    assert event_loop.run(end_after(turns)) == b""
