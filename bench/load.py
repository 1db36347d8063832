"""A client that asks as fast as it is answered, over a fixed number of connections, or at a steady rate.

Run as `python -m bench.load PORT SECONDS CONNECTIONS TARGET EVERY`; prints requests a second and percentiles in ms.
With EVERY above 0 a request goes out each so many seconds, over a connection that is free, whatever the answers do.
Every NUMBER in the target becomes another number in each request: nobody shall share or keep answers unasked.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import count


class Asker(asyncio.Protocol):
    """One connection: ask, read the whole reply, then ask again or wait to be told."""

    def __init__(self, requests: Iterator[bytes], times: list[float], free: "asyncio.Queue[Asker] | None") -> None:
        self._requests = requests
        self._times = times
        self._free = free
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = int(self._buffer[:end].lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(self._buffer) < end + 4 + length:
            return
        if not self._buffer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self._buffer[:200])
        self._times.append(time.perf_counter() - self._asked)
        self._buffer = b""
        self._next()

    def ask(self) -> None:
        """Send the next request."""
        self._asked = time.perf_counter()
        self._transport.write(next(self._requests))

    def _next(self) -> None:
        if self._free is None:
            self.ask()
        else:
            self._free.put_nowait(self)


async def steadily(free: asyncio.Queue[Asker], every: float, seconds: float) -> None:
    """A request each `every` seconds; where no connection is free, the next that is."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number in range(int(seconds / every)):
        await asyncio.sleep(max(0.0, start + number * every - loop.time()))
        (await free.get()).ask()


async def main(port: int, seconds: float, connections: int, target: str, every: float) -> None:
    first = time.time_ns() % 10**9  # runs do not repeat each other's numbers
    text = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n"
    requests = (text.replace("NUMBER", str(first + number)).encode() for number in count())
    times: list[float] = []
    free: asyncio.Queue[Asker] | None = asyncio.Queue() if every else None
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Asker(requests, times, free), "127.0.0.1", port)
    await (asyncio.sleep(seconds) if free is None else steadily(free, every, seconds))
    shares = statistics.quantiles(times, n=100)
    print(json.dumps({"rate": len(times) / seconds, "p50": shares[49] * 1000, "p99": shares[98] * 1000}))


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4], float(sys.argv[5])))
