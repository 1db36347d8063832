"""Accepting from a socket that other processes have, too."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from proxy.kit import event_loop
from proxy.kit.aiohttp_internals import shared_socket

SECONDS = 60.0  # that a response may take before its test fails


async def status_line(port: int) -> bytes:
    """The beginning of the response to a request."""
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        line = await reader.readline()
        writer.close()
        return line


@asynccontextmanager
async def serving(
    listening: socket.socket, counts: shared_socket.ConnectionCounts, connections: int
) -> AsyncIterator[Callable[[], Awaitable[bytes]]]:
    """A process that regards itself as one with so many connections; yields a function that requests a page."""
    runner = web.AppRunner(web.Application())
    await runner.setup()
    port = listening.getsockname()[1]
    await shared_socket.SharedSocketSite(runner, listening, counts, lambda: connections).start()
    assert runner.addresses == [("127.0.0.1", port)]

    try:
        yield partial(status_line, port)
    finally:
        await runner.cleanup()


def test_counts_in_a_file_that_is_truncated_or_deleted_harm_nobody(tmp_path: Path) -> None:
    file = tmp_path / "connections"
    first, second = (shared_socket.ConnectionCounts(file, index, 2) for index in (0, 1))
    assert first.has_surplus(3)
    os.truncate(file, 0)
    assert second.has_surplus(3)
    assert not first.has_surplus(2)
    file.unlink()
    assert not second.has_surplus(3)


def test_process_with_a_surplus_accepts_where_no_other_does(tmp_path: Path) -> None:
    async def requested() -> bytes:
        counts = shared_socket.ConnectionCounts(tmp_path / "connections", 0, 2)
        async with serving(socket.create_server(("127.0.0.1", 0)), counts, 5) as get:
            return await get()

    assert event_loop.run(requested()).startswith(b"HTTP/1.1 404")


class _Exhausted(socket.socket):
    """A listening socket of a process that has no file descriptors left when it accepts first."""

    failures = 0

    def accept(self) -> tuple[socket.socket, Any]:
        if not self.failures:
            self.failures += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_accepting_goes_on_after_an_error_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_socket, "FAILURE_SECONDS", 0.01)

    async def requested() -> tuple[bytes, int]:
        listening = _Exhausted()
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        counts = shared_socket.ConnectionCounts(tmp_path / "connections", 0, 1)
        async with serving(listening, counts, 0) as get:
            return await get(), listening.failures

    line, failures = event_loop.run(requested())
    assert line.startswith(b"HTTP/1.1 404")
    assert failures == 1


def test_other_processes_keep_the_socket_of_one_that_stops(tmp_path: Path) -> None:
    async def requested() -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            files = tmp_path / "connections"
            async with serving(listening.dup(), shared_socket.ConnectionCounts(files, 0, 2), 0) as get:
                await get()
            waiting = asyncio.create_task(status_line(listening.getsockname()[1]))
            await asyncio.sleep(0.01)
            async with serving(listening.dup(), shared_socket.ConnectionCounts(files, 1, 2), 0):
                return await waiting

    assert event_loop.run(requested()).startswith(b"HTTP/1.1 404")
