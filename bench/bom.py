"""Parts, upstream requests, time and memory of a bill of materials (BOM) that is requested twice.

Requests of 20 queries, four at a time, each over a new connection; the second time in another order. Every line is one
part. With the shipped configuration but for `listen.workers` and the store, on a canned upstream of 50 ms that counts;
the service's ledger is compared with that count, and once with the count of the sandbox. Lines that are repeated, or
requested again from another worker, from another machine or after a restart, should cost nothing.
"""

import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from urllib.request import urlopen

from bench import moved_clock
from bench.goals import Goal
from bench.processes import TARGET, TIMEOUT, Changes, Server, redis, sandbox, service, upstream

QUERIES, CLIENTS, UPSTREAM_MS = 20, 4, 50
BURST_CLIENTS, BURSTS, BURST_MS = 40, 5, 200
TOLERANCE = 1.02


class Setup(NamedTuple):
    """Deployment of the service: workers of each machine; the second time is after a restart, or another machine's."""

    name: str
    workers: int = 1
    restarted: bool = False
    machines: int = 1

    def row(self, lines: int, figure: str) -> str:
        """Return the name of a row."""
        return f"BOM of {lines} lines, twice, {self.name}: {figure}"

    def burst_row(self) -> str:
        """Return the name of the row of equal queries."""
        return f"the same query by {BURST_CLIENTS} clients at once, {self.name}: parts"


FOUR, MACHINES = Setup("4 workers", workers=4), Setup("2 machines on one Redis", machines=2)
SETUPS = (
    Setup("1 worker"),
    Setup("2 workers", workers=2),
    FOUR,
    Setup("restarted in between", restarted=True),
    MACHINES,
)
DISTINCT = {300: 300, 1_000: 800}
"""Distinct lines, by the number of lines of a BOM."""
LEDGER = "ledger less the upstream's count, largest of all BOMs (parts)"
BILLED = "parts that the sandbox billed"
SANDBOX_LEDGER = "ledger less the sandbox's count (parts)"
PROGRAMS = (
    ("", 1),
    ("&include[]=descriptions&include[]=imagesets", 3),
    ("&include[]=specs&include[]=datasheets", 1),
    ("&hide[]=offers", 20),
)
"""What four programs ask beside the numbers: fields, and `limit`."""
PAID_ONCE = (
    "BOM of 300 lines by 4 programs, by number and uid; again after 6 minutes and, restarted, after 23 hours; "
    "4 workers: parts that the sandbox billed"
)
LATER, NEXT_DAY = (360.0, 23 * 3600.0), 24 * 3600.0  # seconds after the first time
GOALS = {
    **{
        setup.row(lines, "parts"): Goal("≤", distinct * TOLERANCE)
        for lines, distinct in DISTINCT.items()
        for setup in SETUPS
    },
    LEDGER: Goal("≤", 0),
    FOUR.row(300, BILLED): Goal("≤", 300 * TOLERANCE),
    FOUR.row(300, SANDBOX_LEDGER): Goal("≤", 0),
    PAID_ONCE: Goal("≤", 300 * TOLERANCE),
    **{setup.burst_row(): Goal("≤", 1) for setup in (FOUR, MACHINES)},
}


class Observation(NamedTuple):
    """A BOM requested twice: seconds of each time, memory growth in MB the first time, and parts in the ledger."""

    first: float
    second: float
    growth: float
    ledger: int


def run() -> dict[str, float]:
    """Return the figures of each BOM in each setup."""
    figures: dict[str, float] = {LEDGER: 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for lines in DISTINCT:
            for setup in SETUPS:
                figures |= _on_canned_upstream(setup, lines, folder, figures)
        figures |= _on_sandbox(FOUR, 300, folder)
        figures |= {setup.burst_row(): _burst(setup, folder) for setup in (FOUR, MACHINES)}
    return figures


def part_numbers(lines: int) -> list[str]:
    """Return the lines of a BOM in random order."""
    rng = random.Random(lines)
    distinct = [f"SN74S{number:04}" for number in range(DISTINCT[lines])]
    return rng.sample(repeated := distinct + rng.sample(distinct, lines - len(distinct)), len(repeated))


def _on_canned_upstream(setup: Setup, lines: int, folder: Path, figures: dict[str, float]) -> dict[str, float]:
    with upstream(UPSTREAM_MS, parts=1) as behind:
        observed = _request_twice(setup, part_numbers(lines), behind, folder, {})
        requests, parts = json.loads(behind.body("/count"))
    return {
        setup.row(lines, "parts"): parts,
        setup.row(lines, "upstream requests"): requests,
        setup.row(lines, "first time (s)"): observed.first,
        setup.row(lines, "second time (s)"): observed.second,
        setup.row(lines, "memory growth of a worker (MB)"): observed.growth,
        LEDGER: max(figures[LEDGER], abs(observed.ledger - parts)),
    }


def _on_sandbox(setup: Setup, lines: int, folder: Path) -> dict[str, float]:
    """Measure a BOM on the sandbox, with a catalog that has one part for each line."""
    numbers = part_numbers(lines)
    with _sandbox(folder, numbers) as (url, changes):
        observed = _request_twice(setup, numbers, Server(0, 0), folder, changes)
        billed = _billed(url)
    return {
        setup.row(lines, BILLED): billed,
        setup.row(lines, SANDBOX_LEDGER): abs(observed.ledger - billed),
        PAID_ONCE: parts_of_a_day(setup, lines, folder).day,
    }


@contextmanager
def _sandbox(folder: Path, numbers: list[str]) -> Iterator[tuple[str, Changes]]:
    """Start a sandbox with one part for each number; yields its address and the settings of a service before it."""
    catalog = folder / "bom.jsonl"
    catalog.write_text("".join(f'{{"mpn": "{number}", "manufacturer": "370"}}\n' for number in sorted(set(numbers))))
    with sandbox("--catalog", str(catalog), "--part-limit", "1000000") as printed:
        yield (
            printed["sandbox"],
            {
                "upstream": {name: printed[name] for name in ("graphql_url", "token_url")},
                "applications.demo.client_id": printed["client_id"],
                "applications.demo.client_secret": printed["client_secret"],
            },
        )


class PartsOfADay(NamedTuple):
    """Parts that are billed when four programs request a BOM by number and then by uid, at once, after 6 minutes and,
    with a restart in between, after 23 hours; and those of one number request more, after 24 hours."""

    day: int
    next_day: int


def parts_of_a_day(setup: Setup, lines: int, folder: Path) -> PartsOfADay:
    """Let a day pass for a service and a sandbox of their own."""
    numbers = part_numbers(lines)
    with moved_clock.moving(folder) as clock, _sandbox(folder, numbers) as (url, addresses):
        changes: Changes = {
            **addresses,
            "store": f"sqlite:{tempfile.mkdtemp(dir=folder)}/state.sqlite",
            "listen.workers": setup.workers,
            "applications.demo.features": "all",
            "coalescing.stall_seconds": 60,  # on a busy machine a second attempt would be billed, too
        }
        with service(Server(0, 0), folder, changes) as server:
            _request_by_programs(server, numbers)
            clock.advance(LATER[0])
            _request_by_programs(server, numbers)
        clock.advance(LATER[1] - LATER[0])
        with service(Server(0, 0), folder, changes) as server:
            _request_by_programs(server, numbers)
            day = _billed(url)
            clock.advance(NEXT_DAY - LATER[1])
            _send(server, numbers)
        return PartsOfADay(day, _billed(url) - day)


def _billed(url: str) -> int:
    with urlopen(f"{url}/admin/journal?last=0") as response:
        parts: int = json.load(response)["totals"]["parts"]
    return parts


def _request_by_programs(server: Server, numbers: list[str]) -> None:
    """Let four programs request a BOM by number and then by uid."""
    for more, limit in PROGRAMS:
        uids = _send(server, numbers, more, limit)[1]
    for more, _ in PROGRAMS:
        for first in range(0, len(uids), QUERIES):
            wanted = uids[first : first + QUERIES]
            given = "".join(f"&uid[]={uid}" for uid in wanted)
            found = json.loads(server.body(f"/v3/parts/get_multi?apikey=EXAMPLE_KEY{more}{given}"))
            if len(found) < len(wanted):
                raise RuntimeError(f"parts without a response: {given}")


def _request_twice(setup: Setup, numbers: list[str], behind: Server, folder: Path, changes: Changes) -> Observation:
    with ExitStack() as stack:
        store = _store(setup, folder, stack)
        changes = {**changes, "store": store, "listen.workers": setup.workers}
        with ExitStack() as running:
            server = running.enter_context(service(behind, folder, changes))
            before = server.memory()
            first, _ = _send(server, numbers)
            growth = server.memory() - before
            if setup.restarted:
                running.close()
            if setup.restarted or setup.machines > 1:
                server = running.enter_context(service(behind, folder, changes))
            second, _ = _send(server, random.Random(1).sample(numbers, len(numbers)))
        return Observation(first, second, growth, _ledger(server))


def _store(setup: Setup, folder: Path, stack: ExitStack) -> str:
    if setup.machines > 1:
        return stack.enter_context(redis())
    return f"sqlite:{tempfile.mkdtemp(dir=folder)}/state.sqlite"


def _send(server: Server, numbers: list[str], more: str = "", limit: int = 3) -> tuple[float, list[str]]:
    """Send a BOM; returns seconds, and the uids of its parts."""

    def request(first: int) -> list[str]:
        queries = quote(json.dumps([{"mpn": number, "limit": limit} for number in numbers[first : first + QUERIES]]))
        results = json.loads(server.body(f"/v3/parts/match?apikey=EXAMPLE_KEY{more}&queries={queries}"))["results"]
        if short := [result for result in results if len(result["items"]) != 1]:
            raise RuntimeError(f"a line without its part: {short[0]}")
        return [result["items"][0]["uid"] for result in results]

    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        uids = [uid for found in clients.map(request, range(0, len(numbers), QUERIES)) for uid in found]
    return time.perf_counter() - start, uids


def _ledger(server: Server) -> int:
    """Return the parts of a stopped service's ledger, uncertain ones included: nothing failed, so there are none."""
    command = [sys.executable, "-m", "proxy", "usage", "--json", "--config", str(server.config)]
    rows = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT).stdout)
    return sum(row["used"] + row["uncertain"] for row in rows if row["key"] is None)


def _burst(setup: Setup, folder: Path) -> int:
    """Return the most parts that a query cost which many clients sent at once."""
    with ExitStack() as stack:
        changes: Changes = {"store": _store(setup, folder, stack), "listen.workers": setup.workers}
        behind = stack.enter_context(upstream(BURST_MS, parts=1))
        machines = [stack.enter_context(service(behind, folder, changes)) for _ in range(setup.machines)]
        most = 0
        for number in range(BURSTS):
            target = TARGET.replace("NUMBER", str(number))
            behind.body("/count")
            _send_at_once([machines[client % len(machines)] for client in range(BURST_CLIENTS)], target)
            most = max(most, json.loads(behind.body("/count"))[1])
        return most


def _send_at_once(clients: list[Server], target: str) -> None:
    """Open a connection for each client, then send the request over all, and read the responses."""
    connections = [socket.create_connection(("127.0.0.1", server.port), TIMEOUT) for server in clients]
    for connection in connections:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    for connection in connections:
        with connection, connection.makefile("rb") as response:
            if b" 200 " not in (status := response.readline()):
                raise RuntimeError(f"status {status!r}")
            response.read()
