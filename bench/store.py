"""The SQLite store: `begin` and `finish` with parts of 28 kB, 200 times a second, and results from it after a restart.

CPU is that of the event loop's thread; checkpoints have a thread of their own.
"""

import asyncio
import os
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles

from bench import canned
from bench.processes import TIMEOUT, service, target, upstream
from proxy.kit import clock
from proxy.store.protocol import Account, Begin, Finish, Hit, Result, Want
from proxy.store.sqlite import SqliteStore

PARTS, BODY_BYTES = (1, 3), 28_000
RATE, SECONDS, WARM, STORED = 200, 15, 200, 500
FEATURES = 7
PERIODS = ("2026-11-29", "2026-11")
ACCOUNTS = [Account(account, period, 1 << 40) for account in ("application", "key") for period in PERIODS]
CPU, WALL = "begin and finish, parts of 28 kB: {}, median CPU (ms)", "begin and finish, parts of 28 kB: {}, p99 (ms)"
RESTARTED = "a result from the store after a restart, median of one at a time (ms)"
GOALS = {row.format(parts): goal for row, goal in ((CPU, -0.6), (WALL, -2.0)) for parts in PARTS} | {RESTARTED: -0.5}


def run() -> dict[str, float]:
    """Return milliseconds."""
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for parts in PARTS:
            cpu, wall = asyncio.run(_measure(Path(folder) / f"{parts}.sqlite", parts))
            figures[CPU.format(parts)] = median(cpu) * 1e3
            figures[WALL.format(parts)] = quantiles(wall, n=100)[-1] * 1e3
        return figures | {RESTARTED: _restarted(Path(folder))}


async def _measure(file: Path, parts: int) -> tuple[list[float], list[float]]:
    """Return the seconds of CPU and wall time of each request."""
    store = await SqliteStore.open(file, clock.Clock(), "bench", 256 * 2**20)
    cpu, wall = [], []
    start = time.perf_counter()
    for number in range(RATE * SECONDS):
        await asyncio.sleep(max(0.0, start + number / RATE - time.perf_counter()))
        uids = [f"{number}.{each}" for each in range(parts)]
        bodies = tuple(os.urandom(BODY_BYTES) for _ in uids)
        before = time.thread_time(), time.perf_counter()
        await _request(store, f"{number:032x}", uids, bodies)
        cpu.append(time.thread_time() - before[0])
        wall.append(time.perf_counter() - before[1])
    await store.aclose()
    return cpu[WARM:], wall[WARM:]


async def _request(store: SqliteStore, id: str, uids: list[str], bodies: tuple[bytes, ...]) -> None:
    begin = Begin(id, "scope", FEATURES, Want(id, len(uids)), ACCOUNTS, time.time() - 84_600, 35)
    await store.begin([begin])
    items = tuple(Hit(uid, "SN74S74N", "Dual D-type flip-flop") for uid in uids)
    result = Result(id, len(uids), len(uids), items, bodies, tuple(uids), b"{}")
    await store.finish([Finish(begin, FEATURES, [result], ACCOUNTS, len(uids), 0)])


def _restarted(folder: Path) -> float:
    changes = {"store": f"sqlite:{folder}/restarted.sqlite"}
    with upstream() as behind:
        for _ in range(2):
            with service(behind, changes) as server:
                connection, times = HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT), []
                for number in range(STORED):
                    start = time.perf_counter()
                    connection.request("GET", target(canned.mpn(number)))
                    connection.getresponse().read()
                    times.append(time.perf_counter() - start)
                connection.close()
        return median(times) * 1e3
