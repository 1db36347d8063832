"""The longest that one request keeps the event loop, and with it everybody else, on lists of 10 000 entries.

The service runs as it is shipped in a thread of its own, and each step of its event loop is measured in CPU time of
that thread, so that a busy machine does not count. What it is asked is worst_requests.py's.
"""

import asyncio
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import yaml

from bench import processes, upstream, worst_requests
from bench.goals import Goal
from proxy import config
from proxy.telemetry import log
from proxy.workers import single_process

ENTRIES, EACH, SEED = 10_000, 60, 1
KINDS = (
    "before the apikey is known",
    "a search of a list",
    "a search of parts",
    "a match",
    "objects by uid",
)
NAME = f"one request keeps the loop at most, lists of {ENTRIES}"
GOALS = {f"{NAME}: {kind} (ms)": Goal("≤", 50.0) for kind in KINDS}


class _Steps:
    """The steps of one event loop, in ms of its thread's CPU time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._longest = 0.0

    def longest(self) -> float:
        """The longest since this was asked last; called from another thread."""
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop).result()  # the step that responded is over then
        longest, self._longest = self._longest, 0.0
        return longest

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure every step while the block runs."""
        whole = asyncio.Handle._run

        def run(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            whole(handle)
            if handle._loop is self.loop:  # type: ignore[attr-defined]
                self._longest = max(self._longest, (time.thread_time() - began) * 1e3)

        asyncio.Handle._run = run  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            asyncio.Handle._run = whole  # type: ignore[method-assign]


def run() -> dict[str, float]:
    """Milliseconds of the longest step under every kind of request; `BENCH_WORST` prints the requests."""
    found = dict.fromkeys(KINDS, 0.0)
    worst = dict.fromkeys(KINDS, "")
    with (
        _upstream() as behind,
        tempfile.TemporaryDirectory() as folder,
        _service(behind, Path(folder)) as (port, steps),
    ):
        for path in worst_requests.LISTS:
            _ask(port, f"/v3/{path}/search?q=a&apikey=EXAMPLE_KEY")
        steps.longest()
        for kind, target in worst_requests.targets(random.Random(SEED), EACH):
            _ask(port, target if kind == KINDS[0] else f"{target}&apikey=EXAMPLE_KEY")
            if (longest := steps.longest()) > found[kind]:
                found[kind], worst[kind] = longest, target
    if "BENCH_WORST" in os.environ:
        print(json.dumps(worst, indent=1))
    return {f"{NAME}: {kind} (ms)": longest for kind, longest in found.items()}


def _ask(port: int, target: str) -> None:
    """Send one request and read the response, whatever it is."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", target, headers={"X-Request-Id": "bench", "Accept-Encoding": "gzip"})
    connection.getresponse().read()
    connection.close()


@contextmanager
def _service(behind: int, folder: Path) -> Iterator[tuple[int, _Steps]]:
    """The service in a thread, its port, and what its loop's steps take."""
    started, stop = Queue[tuple[str, _Steps]](), asyncio.Event()
    file = folder / "config.yaml"
    changes = {"upstream.retries": 0, "log.level": "error", "cache.seconds": 0}
    file.write_text(yaml.safe_dump(processes.configuration(behind, folder, changes)), encoding="utf-8")
    settings = config.load(file, os.environ)

    async def serve() -> None:
        steps = _Steps(asyncio.get_running_loop())
        async with single_process.running(settings) as url:
            with steps.measured():
                started.put((url, steps))
                await stop.wait()

    with (folder / "log").open("w", encoding="utf-8") as written:
        log.configure(settings.log.level, settings.log.format, written)
        thread = threading.Thread(target=lambda: asyncio.run(serve()), name="service")
        thread.start()
        url, steps = started.get(timeout=60)
        try:
            yield int(url.rpartition(":")[2]), steps
        finally:
            steps.loop.call_soon_threadsafe(stop.set)
            thread.join()


@contextmanager
def _upstream() -> Iterator[int]:
    """The port of an upstream that has long lists, and refuses everything else."""
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _Upstream)
    threading.Thread(target=listening.serve_forever, name="upstream").start()
    try:
        yield listening.server_port
    finally:
        listening.shutdown()
        listening.server_close()


class _Upstream(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/token"):
            answer: Any = {"access_token": upstream.TOKEN, "expires_in": upstream.LIFE, "token_type": "Bearer"}
        else:
            name = json.loads(body)["operationName"]
            answer = {"data": {name: [_entry(n) for n in range(ENTRIES)]}} if name in ROOTS else REFUSED
        sent = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        """No line for each request."""


ROOTS = ("supManufacturers", "supSellers", "supCategories", "supAttributes")
REFUSED = {"errors": [{"message": "the bench has no parts"}]}


def _entry(number: int) -> dict[str, Any]:
    """A record of any of the lists: a tree of ten children each, two names."""
    name = worst_requests.name_of
    above = [{"id": str(number // 10**n), "name": name(number // 10**n)} for n in (3, 2, 1)]
    below = [{"id": str(n), "name": name(n)} for n in range(10 * number, 10 * number + 10) if n < ENTRIES]
    return {
        "id": str(number),
        "name": name(number),
        "shortname": f"spec{number}",
        "aliases": [f"{name(number * 7)} Inc"],
        "homepageUrl": f"http://{number}.example" if number % 3 else None,
        "displayFlag": "US" if number % 2 else None,
        "numParts": number * 37 % 1000,
        "ancestors": above,
        "children": below,
    }
