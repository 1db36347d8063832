"""Load client on raw connections: at a constant rate independent of the responses, or as fast as responses come."""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from bench.load import response_end


@dataclass(slots=True)
class ObservedResponses:
    """Responses by status (0: no response), and the duration of each 200 in seconds."""

    statuses: Counter[int] = field(default_factory=Counter)
    durations: list[float] = field(default_factory=list)

    def add(self, status: int, seconds: float) -> None:
        """Count a response."""
        self.statuses[status] += 1
        if status == 200:
            self.durations.append(seconds)

    @property
    def p50(self) -> float:
        """Median duration in seconds."""
        return statistics.median(self.durations) if self.durations else float("inf")

    @property
    def p99(self) -> float:
        """99th percentile of the durations in seconds."""
        return statistics.quantiles(self.durations, n=100)[98] if len(self.durations) > 1 else float("inf")


class ClientConnection(asyncio.Protocol):
    """Connection that sends a request on demand, counts the response, and becomes idle again."""

    def __init__(self, responses: ObservedResponses, free: Callable[["ClientConnection"], None]) -> None:
        self._responses = responses
        self._free = free
        self._buffer = b""
        self._sent_at = 0.0
        self.open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        self.open = True
        self._free(self)

    def connection_lost(self, _: Exception | None) -> None:
        self.open = False
        if self._sent_at:
            self._responses.add(0, time.perf_counter() - self._sent_at)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if response_end(self._buffer) is None:
            return
        self._responses.add(int(self._buffer[9:12]), time.perf_counter() - self._sent_at)
        self._buffer, self._sent_at = b"", 0.0
        self._free(self)

    def send(self, request: bytes) -> None:
        """Send a request."""
        self._sent_at = time.perf_counter()
        self._transport.write(request)

    def close(self) -> None:
        """Close the connection; a response in flight is not counted."""
        self._sent_at = 0.0
        self._transport.close()


async def send_load(
    port: int, request: Callable[[], bytes], seconds: float, connections: int, rate: float | None = None
) -> ObservedResponses:
    """Send requests over a number of connections for some seconds; returns the responses.

    With `rate`, that many requests per second while connections are idle; otherwise each connection sends its next
    request as soon as it has a response.
    """
    responses, loop = ObservedResponses(), asyncio.get_running_loop()
    idle: list[ClientConnection] = []
    end = 0.0

    def free(connection: ClientConnection) -> None:
        if rate is None and loop.time() < end:
            connection.send(request())
        else:
            idle.append(connection)

    opened = [
        (await loop.create_connection(lambda: ClientConnection(responses, free), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    start, sent = loop.time(), 0
    end = start + seconds
    while loop.time() < end:
        due = connections if rate is None else (loop.time() - start) * rate
        while sent < due:
            sent += 1
            if idle and (connection := idle.pop()).open:
                connection.send(request())
        await asyncio.sleep(0.01)
    for connection in opened:
        connection.close()
    return responses
