"""A client that asks as fast as it is answered, over a fixed number of connections.

Run as `python -m bench.load PORT SECONDS CONNECTIONS TARGET`; prints requests a second and the 99th percentile in ms.
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
    """One connection: ask, read the whole reply, ask again."""

    def __init__(self, requests: Iterator[bytes], times: list[float]) -> None:
        self._requests = requests
        self._times = times
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._ask()

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
        self._ask()

    def _ask(self) -> None:
        self._asked = time.perf_counter()
        self._transport.write(next(self._requests))


async def main(port: int, seconds: float, connections: int, target: str) -> None:
    first = time.time_ns() % 10**9  # runs do not repeat each other's numbers
    text = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n"
    requests = (text.replace("NUMBER", str(first + number)).encode() for number in count())
    times: list[float] = []
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Asker(requests, times), "127.0.0.1", port)
    await asyncio.sleep(seconds)
    print(json.dumps({"rate": len(times) / seconds, "p99": statistics.quantiles(times, n=100)[98] * 1000}))


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
