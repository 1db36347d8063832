"""Load of v3 requests by a client that repeats nothing: whatever is not a whole response is a failure.

HTTP libraries send a request again if its connection breaks, which would hide what these tests look for.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

HOST = "127.0.0.1"
HEAD_MAX = 65_536

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Check = Callable[[int, bytes], None]
"""Raises AssertionError for a response (status, body) that is not the expected one."""


class Load:
    """Requests sent so far, and failures."""

    def __init__(self, port: int, check: Check) -> None:
        self._port = port
        self._check = check
        self.responses = 0
        self.failures: list[str] = []
        self.closed = 0  # responses that announced the end of their connection
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()

    def keep_connection(self, target: Callable[[], str], pause: float) -> None:
        """Send requests one after the other, on one connection until a response says `Connection: close`."""
        self._run(self._keep_connection(target, pause))

    def open_connections(self, target: Callable[[], str], pause: float) -> None:
        """Send each request on a connection of its own, whether the ones before have their responses or not."""
        self._run(self._open_connections(target, pause))

    async def stop(self) -> None:
        """Send no more, and wait for the responses."""
        self._stopped = True
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _run(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep_connection(self, target: Callable[[], str], pause: float) -> None:
        while not self._stopped:
            connection = await self._connect()
            while connection and not self._stopped and await self._request(*connection, target()):
                await asyncio.sleep(pause)
            _close(connection)

    async def _open_connections(self, target: Callable[[], str], pause: float) -> None:
        while not self._stopped:
            self._run(self._request_once(target()))
            await asyncio.sleep(pause)

    async def _request_once(self, target: str) -> None:
        connection = await self._connect()
        if connection:
            await self._request(*connection, target)
        _close(connection)

    async def _connect(self) -> Connection | None:
        try:
            return await asyncio.open_connection(HOST, self._port, limit=HEAD_MAX)
        except OSError as error:
            self.failures.append(f"connect: {error!r}")
            return None

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str) -> bool:
        """Send a request, and return whether its connection stays open."""
        try:
            writer.write(f"GET {target} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            self._check(int(head.split(" ", 2)[1]), await reader.readexactly(length))
        except (OSError, EOFError, ValueError, AssertionError) as error:
            self.failures.append(repr(error))
            return False
        self.responses += 1
        is_last = "connection: close" in head
        self.closed += is_last
        return not is_last


def _close(connection: Connection | None) -> None:
    if connection:
        connection[1].close()
