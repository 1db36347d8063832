"""Load of the team's day: sends its requests in order, each program over one connection, as fast as they are answered.

Run as `python -m bench.team_day.load PORT` under a moved clock, which is that of the server, too. It is moved by
five minutes at a time, when no request is in flight: a request may not take minutes. Prints the percentiles of the
responses' times in milliseconds.
"""

import asyncio
import itertools
import json
import os
import statistics
import sys
import time
from pathlib import Path

from bench.load import response_end
from bench.moved_clock import VARIABLE, MovedClock
from bench.team_day.programs import PROGRAMS, TRACE

READ = 65_536
SPAN = 300.0  # seconds of the day in which the clock stands


class Connection:
    """Connection of a program, which sends a request as soon as the one before is answered."""

    def __init__(self) -> None:
        self.free = asyncio.Lock()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self, port: int) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def send(self, target: str) -> float:
        """Send a request, for which the connection was acquired; return the seconds to its response."""
        began, received = time.perf_counter(), b""
        self._writer.write(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n".encode())
        while response_end(received) is None:
            if not (data := await self._reader.read(READ)):
                raise ConnectionError(f"the server closed the connection: {target}")
            received += data
        if not received.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{target}: {received[:300]!r}")
        self.free.release()
        return time.perf_counter() - began


async def main(port: int, clock: MovedClock) -> None:
    """Send the day's requests."""
    connections = {name: Connection() for name in PROGRAMS}
    for connection in connections.values():
        await connection.open(port)
    seconds: list[float] = []
    requests = [json.loads(line) for line in TRACE.read_text().splitlines()]
    for span, due in itertools.groupby(requests, lambda request: request[0] // SPAN):
        clock.move(span * SPAN)
        async with asyncio.TaskGroup() as group:
            for _, name, named in due:
                await connections[name].free.acquire()
                sending = group.create_task(connections[name].send(PROGRAMS[name].target(named)))
                sending.add_done_callback(lambda sent: seconds.append(sent.result()))
    shares = statistics.quantiles(seconds, n=100)
    print(json.dumps({name: shares[int(name[1:]) - 1] * 1_000 for name in ("p50", "p95", "p99")}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), MovedClock(Path(os.environ[VARIABLE]))))
