"""Accepting connections from a listening socket that other processes have, too, so that each gets its share.

asyncio's server calls listen() again, which changes the length of the queue for all. It also forgets connections that
it accepts as it is closed, which no other process could serve any more.

Whoever wakes first accepts, and event loops accept all that wait: of 64 connections to four idle processes one got 31
and another 1. So a process with more connections than another one leaves it a moment to accept.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from aiohttp import web

YIELD_SECONDS = 0.001  # that a process with more connections waits, the shortest time that event loops know
FAILURE_SECONDS = 1.0  # after an error of the system, as in asyncio
SLOT = 8  # bytes of a number


class ConnectionCounts:
    """Open connections of each process, in a file that all of them read and write. A number may be old for a moment,
    which only makes the shares less even, as does a file that was truncated or deleted."""

    def __init__(self, file: Path, index: int, processes: int) -> None:
        """`index`: that of this process, from 0."""
        self._file = file
        self._index = index
        self._processes = processes
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, processes * SLOT)
        finally:
            os.close(descriptor)

    def has_surplus(self, connections: int) -> bool:
        """Note the connections of this process; return whether another one has fewer."""
        try:
            descriptor = os.open(self._file, os.O_RDWR)
        except OSError:
            return False
        try:
            # Not mapped: to read a mapped file that somebody truncates ends the process (SIGBUS).
            os.pwrite(descriptor, connections.to_bytes(SLOT, "little"), self._index * SLOT)
            content = os.pread(descriptor, self._processes * SLOT, 0)
        finally:
            os.close(descriptor)
        numbers = [int.from_bytes(content[start : start + SLOT], "little") for start in range(0, len(content), SLOT)]
        return connections > min(numbers)


class SharedSocketSite(web.BaseSite):
    """Site on a socket that other processes accept from, too. `connections` returns how many this one has open, to be
    compared with `counts`; None: it takes what it gets."""

    def __init__(
        self,
        runner: web.BaseRunner,
        listening: socket.socket,
        counts: ConnectionCounts | None,
        connections: Callable[[], int],
    ) -> None:
        super().__init__(runner)
        self._socket = listening
        self._counts = counts
        self._connections = connections

    @property
    def name(self) -> str:
        return "http://{}:{}".format(*self._socket.getsockname()[:2])

    async def start(self) -> None:
        await super().start()
        assert self._runner.server is not None  # noqa: S101 - BaseSite has checked it
        self._socket.setblocking(False)
        self._server = _Acceptor(self._socket, self._runner.server, self._has_surplus)  # type: ignore[assignment]

    def _has_surplus(self) -> bool:
        return self._counts is not None and self._counts.has_surplus(self._connections())


class _Acceptor:
    """What BaseSite expects of asyncio.Server."""

    def __init__(
        self,
        listening: socket.socket,
        make_handler: Callable[[], asyncio.BaseProtocol],
        has_surplus: Callable[[], bool],
    ) -> None:
        self.sockets = (listening,)
        self._socket = listening
        self._make_handler = make_handler
        self._has_surplus = has_surplus
        self._loop = asyncio.get_running_loop()
        self._paused: asyncio.TimerHandle | None = None
        self._beginning: set[asyncio.Task[object]] = set()
        self._loop.add_reader(listening, self._readable)

    def close(self) -> None:
        """Accept no more. Other processes keep the socket."""
        self._loop.remove_reader(self._socket)
        if self._paused is not None:
            self._paused.cancel()
        self._socket.close()

    def _readable(self) -> None:
        if self._has_surplus():
            self._pause(YIELD_SECONDS)
        else:
            self._accept()

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._socket)
        self._paused = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        """Accept after all: the other processes may be busy."""
        self._loop.add_reader(self._socket, self._readable)
        self._accept()

    def _accept(self) -> None:
        """Accept one connection; the next turn of the event loop accepts the next one."""
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another process was faster, or the client is gone
        except OSError:
            # Such as no file descriptors left: the socket stays readable, and would be tried without end.
            self._pause(FAILURE_SECONDS)
            return
        task = asyncio.create_task(self._begin(connection), name="accepted connection")
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _begin(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        with suppress(OSError):  # the client is gone
            await self._loop.connect_accepted_socket(self._make_handler, connection)
