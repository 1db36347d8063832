"""Load generator: sends requests over a fixed number of connections, as fast as they are answered or at a steady rate.

Run as `python -m bench.load PORT SECONDS CONNECTIONS TARGET EVERY`; prints requests a second, percentiles in ms, the
number of all responses, and its own CPU seconds, which show whether it was the bottleneck.
A target with a JSON object behind its path is that of a POST. With EVERY above 0 a request is sent every so many
seconds over a free connection, however slow the responses are.
NUMBER in the target is replaced by a different number in each request, so that no response comes from a cache, and
BURST by a number that as many requests have as there are connections.
"""

import asyncio
import json
import os
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


class LoadRun:
    """Requests of one run and the durations of their responses in seconds, shared by its connections.

    With `steady`, free connections wait in a queue for their next request.
    """

    def __init__(self, requests: Iterator[bytes], steady: bool) -> None:
        self.times: list[float] = []
        self.free: asyncio.Queue[LoadConnection] | None = asyncio.Queue() if steady else None
        self._requests = requests
        self._in_flight = 0
        self._ended = False
        self._drained = asyncio.Event()

    def fail(self, reason: str) -> None:
        """End the process: figures of a run with errors mean nothing."""
        if self._in_flight:
            print(f"load: {reason}", file=sys.stderr, flush=True)
            os._exit(1)

    def send(self, transport: asyncio.Transport) -> None:
        """Send the next request, unless the run has ended."""
        if not self._ended:
            self._in_flight += 1
            transport.write(next(self._requests))

    def responded(self, seconds: float) -> None:
        """Record a response."""
        self.times.append(seconds)
        self._in_flight -= 1
        if self._ended and not self._in_flight:
            self._drained.set()

    async def drain(self) -> None:
        """Send no more requests, and wait for the responses to those in flight: the server spends CPU time on these
        too, so they count."""
        self._ended = True
        if self._in_flight:
            await self._drained.wait()


class LoadConnection(asyncio.Protocol):
    """Connection that sends a request, reads the response, and sends the next one at once or on demand."""

    def __init__(self, run: LoadRun) -> None:
        self._run = run
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if response_end(self._buffer) is None:
            return
        if not self._buffer.startswith(b"HTTP/1.1 200"):
            self._run.fail(f"the server responded {self._buffer[:200]!r}")
        self._run.responded(time.perf_counter() - self._sent)
        self._buffer = b""
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._run.fail(f"a connection was closed: {error}")

    def send(self) -> None:
        """Send the next request."""
        self._sent = time.perf_counter()
        self._run.send(self._transport)

    def _next(self) -> None:
        if self._run.free is None:
            self.send()
        else:
            self._run.free.put_nowait(self)


async def send_regularly(free: "asyncio.Queue[LoadConnection]", every: float, seconds: float) -> None:
    """Send a request every `every` seconds, over the next free connection."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    for number in range(int(seconds / every)):
        await asyncio.sleep(max(0.0, start + number * every - loop.time()))
        (await free.get()).send()


def _numbered(text: str, number: int, connections: int) -> bytes:
    # Ten digits, so that bodies have one length.
    return text.replace("NUMBER", f"{number:010}").replace("BURST", f"{number // connections:010}").encode()


async def main(port: int, seconds: float, connections: int, target: str, every: float) -> None:
    first = time.time_ns() % 10**9  # differs between runs, so that no run repeats the requests of another
    path, _, body = target.partition(" {")  # a target with a body, an object, is that of a POST
    head = "Host: 127.0.0.1\r\nAccept: */*\r\n"
    text = f"GET {target} HTTP/1.1\r\n{head}\r\n"
    if body:
        length = len(_numbered("{" + body, first, connections))
        text = (
            f"POST {path} HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{{body}"
        )
    run = LoadRun((_numbered(text, first + number, connections) for number in count()), every > 0)
    loop = asyncio.get_running_loop()
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(connections):
        await loop.create_connection(lambda: LoadConnection(run), "127.0.0.1", port)
    await (asyncio.sleep(seconds) if run.free is None else send_regularly(run.free, every, seconds))
    rate = len(run.times) / (time.perf_counter() - start)
    await run.drain()
    shares = statistics.quantiles(run.times, n=100)
    result = {"rate": rate, "p50": shares[49] * 1000, "p99": shares[98] * 1000, "responses": len(run.times)}
    print(json.dumps(result | {"cpu": time.process_time() - cpu}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4], float(sys.argv[5])))
