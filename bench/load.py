"""Load generator: sends requests over a fixed number of connections, as fast as they are answered or at a steady rate.

Run as `python -m bench.load PORT SECONDS CONNECTIONS TARGET EVERY`; prints requests a second and percentiles in ms.
With EVERY above 0 a request is sent every so many seconds over a free connection, however slow the responses are.
NUMBER in the target is replaced by a different number in each request, so that no response comes from a cache.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import count
from typing import cast


def response_end(received: bytes) -> int | None:
    """Return the length of the first whole response in `received`, None if it has not arrived completely."""
    head_end = received.find(b"\r\n\r\n")
    if head_end < 0:
        return None
    length = int(received[:head_end].lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    end = head_end + 4 + length
    return end if len(received) >= end else None


class LoadConnection(asyncio.Protocol):
    """Connection that sends a request, reads the response, and sends the next one at once or on demand."""

    def __init__(
        self, requests: Iterator[bytes], times: list[float], free: "asyncio.Queue[LoadConnection] | None"
    ) -> None:
        self._requests = requests
        self._times = times
        self._free = free
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if response_end(self._buffer) is None:
            return
        if not self._buffer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self._buffer[:200])
        self._times.append(time.perf_counter() - self._sent)
        self._buffer = b""
        self._next()

    def send(self) -> None:
        """Send the next request."""
        self._sent = time.perf_counter()
        self._transport.write(next(self._requests))

    def _next(self) -> None:
        if self._free is None:
            self.send()
        else:
            self._free.put_nowait(self)


async def send_regularly(free: asyncio.Queue[LoadConnection], every: float, seconds: float) -> None:
    """Send a request every `every` seconds, over the next free connection."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number in range(int(seconds / every)):
        await asyncio.sleep(max(0.0, start + number * every - loop.time()))
        (await free.get()).send()


async def main(port: int, seconds: float, connections: int, target: str, every: float) -> None:
    first = time.time_ns() % 10**9  # differs between runs, so that no run repeats the requests of another
    text = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n"
    requests = (text.replace("NUMBER", str(first + number)).encode() for number in count())
    times: list[float] = []
    free: asyncio.Queue[LoadConnection] | None = asyncio.Queue() if every else None
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: LoadConnection(requests, times, free), "127.0.0.1", port)
    await (asyncio.sleep(seconds) if free is None else send_regularly(free, every, seconds))
    shares = statistics.quantiles(times, n=100)
    print(json.dumps({"rate": len(times) / seconds, "p50": shares[49] * 1000, "p99": shares[98] * 1000}))


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4], float(sys.argv[5])))
