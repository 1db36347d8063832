"""Whole parts against those with requested fields only: bytes, latency over slow networks, CPU, and what caches hold.

A request of 20 queries, each for one part of the sandbox's catalog. The sandbox is behind a network of so many Mbit/s,
and compresses nothing.
"""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import nexar_sandbox
from bench.goals import Goal
from bench.processes import TIMEOUT, Changes, Server, service
from bench.soak import servers
from proxy.config import CacheSettings

QUERIES, PARTS = 20, 100
RATES = (1, 10, 100)  # Mbit/s
CHUNK = 16_384
FETCHED = {"whole": "all", "requested": "requested"}
STALLED = "parts billed twice over 1 Mbit/s"
GOALS = {STALLED: Goal("≤", 0)}


class Link:
    """Network with a rate: a TCP proxy whose responses take their time. `received` counts their bytes."""

    def __init__(self, port: int, rate: float) -> None:
        self._target = port
        self._seconds = 8 / (rate * 1_000_000)  # for one byte
        self.received = 0
        self.port = 0

    async def serve(self, started: threading.Event) -> None:
        """Accept connections until the task is cancelled."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        await asyncio.gather(self._copy(reader, up_writer, 0.0), self._copy(up_reader, writer, self._seconds))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
        due = 0.0
        while data := await reader.read(CHUNK):
            if seconds:
                self.received += len(data)
                due = max(due, time.monotonic()) + len(data) * seconds
                await asyncio.sleep(due - time.monotonic())
            writer.write(data)
        writer.close()


class Figures(NamedTuple):
    """One request: seconds, bytes of the response, CPU ms of the service, parts billed beyond one a query."""

    seconds: float
    received: int
    cpu: float
    extra: int


def run() -> dict[str, float]:
    """Return bytes, latency and CPU by what is fetched and rate, and how many parts the caches hold."""
    figures: dict[str, float] = {}
    numbers = _numbers()
    with tempfile.TemporaryDirectory() as name, servers.sandbox(Path(name), 1) as printed:
        folder = Path(name)
        for kind, fetch in FETCHED.items():
            for rate in RATES:
                measured = _request(printed, folder, numbers, fetch, rate)
                figures[f"{QUERIES} parts, {kind}, {rate} Mbit/s: latency (ms)"] = 1000 * measured.seconds
                if rate == RATES[0] and kind == "whole":
                    figures[STALLED] = measured.extra
            figures[f"a part, {kind}: bytes from the upstream"] = measured.received / QUERIES
            figures[f"{QUERIES} parts, {kind}: CPU of the service (ms)"] = measured.cpu
        figures |= _held(printed, folder, numbers)
    return figures


def _request(printed: dict[str, str], folder: Path, numbers: list[str], fetch: str, rate: float) -> Figures:
    """Send one request to a new service, after one that has its token and has compiled its documents."""
    with ExitStack() as stack:
        link, url = stack.enter_context(_link(printed["graphql_url"], rate))
        server = stack.enter_context(service(Server(0, 0), folder, _changes(printed, url, fetch)))
        server.body(_target(numbers[-1:]))
        received, cpu, billed, began = link.received, server.cpu(), _billed(printed), time.perf_counter()
        results = json.loads(server.body(_target(numbers[:QUERIES])))["results"]
        seconds = time.perf_counter() - began
        if any(len(result["items"]) != 1 for result in results):
            raise RuntimeError("a query without its part")
        extra = _billed(printed) - billed - QUERIES
        return Figures(seconds, link.received - received, 1000 * (server.cpu() - cpu), extra)


def _held(printed: dict[str, str], folder: Path, numbers: list[str]) -> dict[str, float]:
    """Return how many whole parts fit into the caches as shipped, by what 100 take."""
    changes = {**_changes(printed, printed["graphql_url"], "all"), "listen.metrics": True}
    with service(Server(0, 0), folder, changes) as server:
        for first in range(0, PARTS, QUERIES):
            server.body(_target(numbers[first : first + QUERIES]))
        text = server.body("/metrics").decode()
    command = [sys.executable, "-m", "proxy", "cache", "stats", "--json", "--config", str(server.config)]
    printed_stats = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT).stdout
    shared = sum(entry["bytes"] for entry in json.loads(printed_stats)) / PARTS
    found = re.findall(r"^v3bridge_cache_bytes\{[^}]*queries[^}]*\} (\S+)", text, re.MULTILINE)
    memory, settings = float(found[0]) / PARTS, CacheSettings()
    return {
        "whole parts in the memory of a worker": settings.query_bytes / memory,
        "whole parts in the shared cache": settings.shared_bytes / shared,
    }


def _changes(printed: dict[str, str], url: str, fetch: str) -> Changes:
    return {
        "upstream": {"graphql_url": url, "token_url": printed["token_url"]},
        "applications.demo.client_id": printed["client_id"],
        "applications.demo.client_secret": printed["client_secret"],
        "applications.demo.features": "all",
        "cache.fetch": fetch,
    }


@contextmanager
def _link(url: str, rate: float) -> Iterator[tuple[Link, str]]:
    """Start a link to an address in a thread; yields it, and the address behind it."""
    address = urlsplit(url)
    link, started, loop = Link(address.port or 80, rate), threading.Event(), asyncio.new_event_loop()
    task = loop.create_task(link.serve(started))

    def serve() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            loop.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    started.wait()
    try:
        yield link, f"http://127.0.0.1:{link.port}{address.path}"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def _billed(printed: dict[str, str]) -> int:
    with urlopen(f"{printed['sandbox']}/admin/journal?last=0") as response:
        parts: int = json.load(response)["totals"]["parts"]
    return parts


def _target(numbers: list[str]) -> str:
    queries = quote(json.dumps([{"mpn": number, "limit": 1} for number in numbers]))
    return f"/v3/parts/match?apikey=EXAMPLE_KEY&queries={queries}"


def _numbers() -> list[str]:
    """Return numbers of one part each."""
    catalog = nexar_sandbox.open_catalog()
    try:
        parts = list(catalog.parts())
    finally:
        catalog.close()
    plain = re.compile(r"\W")
    spellings = Counter(plain.sub("", mpn).upper() for part in parts for mpn in (part.mpn, *part.aka_mpns))
    return [part.mpn for part in parts if spellings[plain.sub("", part.mpn).upper()] == 1]
