"""Clients of the service under test: one that asks at a steady rate whatever the responses do, and raw connections."""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from bench.load import response_end


@dataclass(slots=True)
class Seen:
    """Responses by status (0: none came), and the seconds that each 200 took."""

    statuses: Counter[int] = field(default_factory=Counter)
    served: list[float] = field(default_factory=list)

    def note(self, status: int, seconds: float) -> None:
        """One more response."""
        self.statuses[status] += 1
        if status == 200:
            self.served.append(seconds)

    @property
    def p50(self) -> float:
        """Seconds."""
        return statistics.median(self.served) if self.served else float("inf")

    @property
    def p99(self) -> float:
        """Seconds."""
        return statistics.quantiles(self.served, n=100)[98] if len(self.served) > 1 else float("inf")


class Connection(asyncio.Protocol):
    """Sends a request when told, notes the response, and is free again."""

    def __init__(self, seen: Seen, free: Callable[["Connection"], None]) -> None:
        self._seen = seen
        self._free = free
        self._buffer = b""
        self._asked = 0.0
        self.open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        self.open = True
        self._free(self)

    def connection_lost(self, _: Exception | None) -> None:
        self.open = False
        if self._asked:
            self._seen.note(0, time.perf_counter() - self._asked)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if response_end(self._buffer) is None:
            return
        self._seen.note(int(self._buffer[9:12]), time.perf_counter() - self._asked)
        self._buffer, self._asked = b"", 0.0
        self._free(self)

    def ask(self, request: bytes) -> None:
        """Send a request."""
        self._asked = time.perf_counter()
        self._transport.write(request)

    def close(self) -> None:
        """Close it; a response that has not come is not noted."""
        self._asked = 0.0
        self._transport.close()


async def ask(
    port: int, request: Callable[[], bytes], seconds: float, connections: int, rate: float | None = None
) -> Seen:
    """Ask over so many connections: `rate` requests a second, as far as connections are free, or each connection as
    soon as it is answered."""
    seen, loop = Seen(), asyncio.get_running_loop()
    idle: list[Connection] = []
    end = 0.0

    def free(connection: Connection) -> None:
        if rate is None and loop.time() < end:
            connection.ask(request())
        else:
            idle.append(connection)

    made = [
        (await loop.create_connection(lambda: Connection(seen, free), "127.0.0.1", port))[1] for _ in range(connections)
    ]
    began, sent = loop.time(), 0
    end = began + seconds
    while loop.time() < end:
        wanted = connections if rate is None else (loop.time() - began) * rate
        while sent < wanted:
            sent += 1
            if idle and (connection := idle.pop()).open:
                connection.ask(request())
        await asyncio.sleep(0.01)
    for connection in made:
        connection.close()
    return seen
