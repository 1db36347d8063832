"""Load of the team's day: sends its requests in order, each program over one connection, as fast as they are answered.

Run as `python -m bench.team_day.load PORT CLOCK`. Before each request CLOCK, a file that the service's clock is moved
by (bench/moved_clock.py), gets the second of the day. Prints the percentiles of the responses' times in milliseconds.
"""

import asyncio
import json
import statistics
import sys
import time
from pathlib import Path

from bench.load import response_end
from bench.moved_clock import MovedClock
from bench.team_day.programs import PROGRAMS, TRACE

READ = 65_536


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
    sending = []
    async with asyncio.TaskGroup() as group:
        for line in TRACE.read_text().splitlines():
            second, name, named = json.loads(line)
            await connections[name].free.acquire()
            clock.move(second)
            sending.append(group.create_task(connections[name].send(PROGRAMS[name].target(named))))
    shares = statistics.quantiles([task.result() * 1_000 for task in sending], n=100)
    print(json.dumps({"p50": shares[49], "p95": shares[94], "p99": shares[98]}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), MovedClock(Path(sys.argv[2]))))
