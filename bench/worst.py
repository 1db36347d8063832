"""Longest time that one request blocks the event loop, with lists of 10 000 entries, and 20 000 callers on record.

The service runs with the shipped configuration in its own thread. Each step of its event loop is measured in CPU time
of that thread, so that other load on the machine does not count. worst_requests.py makes the requests.
"""

import asyncio
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from types import MappingProxyType
from typing import Any

import yaml

from bench import processes, upstream, worst_requests
from bench.goals import Goal
from proxy.config import loader
from proxy.kit import clock
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry import log
from proxy.telemetry.callers import DAY_SECONDS, Caller, CallerCount, CallerSeen
from proxy.web.admin import pages
from proxy.workers import single_process
from proxy.workers.listening import ServiceUrls

ENTRIES, REQUESTS_PER_KIND, SEED = 10_000, 60, 1
KINDS = (
    "before the API key is checked",
    "a search of a list",
    "a search of parts",
    "a match",
    "objects by uid",
    "a page of the admin interface",
)
TOKEN = "the-admin-token-of-the-benchmark"
NAME = f"one request keeps the loop at most, lists of {ENTRIES}"
GOALS = {f"{NAME}: {kind} (ms)": Goal("≤", 50.0) for kind in KINDS}
CALLERS, DAYS = 20_000, 30


class _StepTimer:
    """Timer of the steps of one event loop, in ms of its thread's CPU time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._longest = 0.0

    def take_longest(self) -> float:
        """Return the longest step since the last call, and reset it; called from another thread."""
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop).result()  # the step that responded is over then
        longest, self._longest = self._longest, 0.0
        return longest

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure every step while the block runs."""
        original = asyncio.Handle._run

        def run(handle: asyncio.Handle) -> None:
            start = time.thread_time()
            original(handle)
            if handle._loop is self.loop:  # type: ignore[attr-defined]
                self._longest = max(self._longest, (time.thread_time() - start) * 1e3)

        asyncio.Handle._run = run  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            asyncio.Handle._run = original  # type: ignore[method-assign]


def run() -> dict[str, float]:
    """Return milliseconds of the longest step for every kind of request; BENCH_WORST=1 prints the requests."""
    longest_by_kind = dict.fromkeys(KINDS, 0.0)
    worst = dict.fromkeys(KINDS, "")
    with (
        _upstream() as behind,
        _folder_with_callers() as folder,
        _service(behind, folder) as (port, admin_port, steps),
    ):
        for path in worst_requests.LISTS:
            _send(port, f"/v3/{path}/search?q=a&apikey=EXAMPLE_KEY")
        steps.take_longest()
        for kind, target in worst_requests.targets(random.Random(SEED), REQUESTS_PER_KIND):
            _send(port, target if kind == KINDS[0] else f"{target}&apikey=EXAMPLE_KEY")
            if (longest := steps.take_longest()) > longest_by_kind[kind]:
                longest_by_kind[kind], worst[kind] = longest, target
        for page in (*pages.PAGES, *pages.PAGES):  # the first page of all also loads the templates
            _send(admin_port, page.url, {"Accept": "text/html", "Authorization": f"Bearer {TOKEN}"})
            if (longest := steps.take_longest()) > longest_by_kind[KINDS[-1]]:
                longest_by_kind[KINDS[-1]], worst[KINDS[-1]] = longest, page.url
    if "BENCH_WORST" in os.environ:
        print(json.dumps(worst, indent=1))
    return {f"{NAME}: {kind} (ms)": longest for kind, longest in longest_by_kind.items()}


def _send(port: int, target: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
    """Send one request and read the response; its status does not matter."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", target, headers={"X-Request-Id": "bench", "Accept-Encoding": "gzip", **headers})
    connection.getresponse().read()
    connection.close()


@contextmanager
def _folder_with_callers() -> Iterator[Path]:
    """Yield the folder of a store in which each of the last days has every caller."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_record_callers(Path(folder) / "state.sqlite"))
        yield Path(folder)


async def _record_callers(file: Path) -> None:
    now = int(time.time())
    callers = [Caller("demo", f"key {number}", "parts/match", f"erp/{number}") for number in range(CALLERS)]
    seen = [CallerSeen(caller, now - DAYS * DAY_SECONDS, now) for caller in callers]
    counts = [CallerCount(now // DAY_SECONDS - day, each, 5, 1, 3) for each in callers for day in range(DAYS)]
    store = await SqliteStore.open(file, clock.SystemClock())
    await store.add_callers("bench", seen, counts)
    await store.aclose()


@contextmanager
def _service(behind: int, folder: Path) -> Iterator[tuple[int, int, _StepTimer]]:
    """Start the service in a thread; yields its port, that of the admin interface, and the timer of its event loop."""
    started, stop = Queue[tuple[ServiceUrls, _StepTimer]](), asyncio.Event()
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(processes.configuration(behind, folder, {"admin.token": TOKEN})), encoding="utf-8")
    settings = loader.load(file, os.environ)

    async def serve() -> None:
        steps = _StepTimer(asyncio.get_running_loop())
        async with single_process.running(settings) as service:
            with steps.measured():
                started.put((service.urls, steps))
                await stop.wait()

    with (folder / "log").open("w", encoding="utf-8") as written:
        log.configure(settings.log.level, settings.log.format, written)
        thread = threading.Thread(target=lambda: asyncio.run(serve()), name="service")
        thread.start()
        urls, steps = started.get(timeout=60)
        try:
            yield int(urls.public.rpartition(":")[2]), int(urls.admin.rpartition(":")[2]), steps
        finally:
            steps.loop.call_soon_threadsafe(stop.set)
            thread.join()


@contextmanager
def _upstream() -> Iterator[int]:
    """Start an upstream with long lists that refuses all other queries; yields its port."""
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _UpstreamHandler)
    threading.Thread(target=listening.serve_forever, name="upstream").start()
    try:
        yield listening.server_port
    finally:
        listening.shutdown()
        listening.server_close()


class _UpstreamHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/token"):
            document: Any = {
                "access_token": upstream.TOKEN,
                "expires_in": upstream.TOKEN_SECONDS,
                "token_type": "Bearer",
            }
        else:
            name = json.loads(body)["operationName"]
            document = {"data": {name: [_entry(n) for n in range(ENTRIES)]}} if name in ROOTS else REFUSED
        sent = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        """Suppress the log line of each request."""


ROOTS = ("supManufacturers", "supSellers", "supCategories", "supAttributes")
REFUSED = {"errors": [{"message": "the bench has no parts"}]}


def _entry(number: int) -> dict[str, Any]:
    """Return a record that fits every list: ten children, two names."""
    name = worst_requests.name_of
    ancestors = [{"id": str(number // 10**n), "name": name(number // 10**n)} for n in (3, 2, 1)]
    children = [{"id": str(n), "name": name(n)} for n in range(10 * number, 10 * number + 10) if n < ENTRIES]
    return {
        "id": str(number),
        "name": name(number),
        "shortname": f"spec{number}",
        "aliases": [f"{name(number * 7)} Inc"],
        "homepageUrl": f"http://{number}.example" if number % 3 else None,
        "displayFlag": "US" if number % 2 else None,
        "numParts": number * 37 % 1000,
        "ancestors": ancestors,
        "children": children,
    }
