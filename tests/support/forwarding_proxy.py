"""A proxy for outgoing requests, on loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ForwardingProxy:
    """A forwarding proxy: keeps the head of every request, passes tunnels on, answers what is not encrypted."""

    def __init__(self, refusal: bytes = b"") -> None:
        self._refusal = refusal
        self._tasks: set[asyncio.Task[None]] = set()
        self.heads: list[str] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Serve while the block runs; the address is HOST:PORT."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._pass_on(reader, writer)))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            if self._refusal:
                writer.write(self._refusal)
            elif head.startswith("CONNECT"):
                await self._tunnel(head.split()[1], reader, writer)
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy")
            await writer.drain()
            await reader.read()
        finally:
            writer.close()

    async def _tunnel(self, where: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = where.rpartition(":")
        inner, outer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(copy(reader, outer), copy(inner, writer))
        finally:
            outer.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
