"""Load generator: sends requests over a fixed number of connections, as fast as they are answered or at a steady rate.

Run as `python -m bench.load PORT SECONDS CONNECTIONS EVERY TARGET`; prints requests a second, their number, and the
median in ms. With EVERY above 0 a request is sent every so many seconds over a free connection, however slow the
responses are. NUMBER in the target is replaced by a different number in each request, so that no response comes from a
cache. A TARGET that is a file has one on each line: all are sent once, in order, whatever SECONDS says.
"""

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import cast


class Load:
    """Requests of one run and the durations of their responses in seconds. With `steady`, free connections wait in a
    queue for their next request."""

    def __init__(self, requests: Iterator[bytes], steady: bool) -> None:
        self.requests = requests
        self.free: asyncio.Queue[Connection] | None = asyncio.Queue() if steady else None
        self.times: list[float] = []
        self.in_flight = 0
        self.ended = False
        self.drained = asyncio.Event()  # nothing is sent any more, and what was in flight was answered

    def end(self) -> None:
        """Send no more requests. The server spends CPU time on those in flight, too, so they count."""
        self.ended = True
        if not self.in_flight:
            self.drained.set()

    def fail(self, reason: str) -> None:
        """End the process: figures of a run with errors mean nothing."""
        if self.in_flight:
            print(f"load: {reason}", file=sys.stderr, flush=True)
            os._exit(1)


class Connection(asyncio.Protocol):
    """Connection that sends a request, reads the response, and sends the next one at once or on demand."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self._load.fail(f"the server responded {self._received[:200]!r}")
        self._load.times.append(time.perf_counter() - self._sent)
        self._load.in_flight -= 1
        self._received = b""
        if self._load.ended:
            self._load.end()
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._load.fail(f"a connection was closed: {error}")

    def send(self) -> None:
        """Send the next request, unless the run has ended."""
        request = None if self._load.ended else next(self._load.requests, None)
        if request is None:
            self._load.end()
            return
        self._load.in_flight += 1
        self._sent = time.perf_counter()
        self._transport.write(request)

    def _next(self) -> None:
        if self._load.free is None:
            self.send()
        else:
            self._load.free.put_nowait(self)


def requests(target: str) -> Iterator[bytes]:
    """Yield the requests of a target or of a file of targets."""
    text = "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n"
    if Path(target).is_file():
        yield from (text.format(line).encode() for line in Path(target).read_text().splitlines())
        return
    # Differs between runs, so that no run repeats the requests of another. Ten digits, so that bodies have one length;
    # none is a zero before the others, which the upstream writes without.
    for number in count(10**9 + time.time_ns() % 10**9):
        yield text.format(target.replace("NUMBER", f"{number}")).encode()


async def main(port: int, seconds: float, connections: int, every: float, target: str) -> None:
    """Print what was measured."""
    load = Load(requests(target), every > 0)
    loop = asyncio.get_running_loop()
    start = time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(lambda: Connection(load), "127.0.0.1", port)
    if Path(target).is_file():
        await load.drained.wait()
    elif load.free is not None:
        for number in range(int(seconds / every)):
            await asyncio.sleep(max(0.0, start + number * every - time.perf_counter()))
            (await load.free.get()).send()
    else:
        await asyncio.sleep(seconds)
    rate = len(load.times) / (time.perf_counter() - start)
    load.end()
    await load.drained.wait()
    median = statistics.median(load.times) * 1000
    print(json.dumps({"rate": rate, "responses": len(load.times), "p50": median}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]))
