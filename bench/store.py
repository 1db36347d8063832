"""Cost of a new request in the SQLite store: `begin` and `finish` with parts of 28 kB, 200 times a second.

CPU is that of the event loop's thread; checkpoints have a thread of their own.
"""

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from bench.goals import Goal
from proxy.kit import clock
from proxy.store.protocol import Account, Begin, Finish, Hit, Result, Selection, Want
from proxy.store.sqlite import SqliteStore

PARTS, BODY_BYTES = (1, 3), 28_000
RATE, SECONDS, WARM = 200, 15, 200
CACHE_BYTES = 256 * 2**20  # as shipped
SELECTION = Selection("selection", 7)
ACCOUNTS = [
    Account(account, period, 1 << 40) for account in ("application", "key") for period in ("2026-11-29", "2026-11")
]
CPU, WALL = "begin and finish, parts of 28 kB: {}, median CPU (ms)", "begin and finish, parts of 28 kB: {}, p99 (ms)"
GOALS = {
    **{CPU.format(parts): Goal("≤", 0.6) for parts in PARTS},
    **{WALL.format(parts): Goal("≤", 2) for parts in PARTS},
}


def run() -> dict[str, float]:
    """Return milliseconds."""
    figures = {}
    for parts in PARTS:
        with tempfile.TemporaryDirectory() as folder:
            cpu, wall = asyncio.run(_measure(Path(folder) / "store.sqlite", parts))
        figures[CPU.format(parts)] = statistics.median(cpu) * 1e3
        figures[WALL.format(parts)] = statistics.quantiles(wall, n=100)[-1] * 1e3
    return figures


async def _measure(file: Path, parts: int) -> tuple[list[float], list[float]]:
    """Return the seconds of CPU and wall time of each request."""
    store = await SqliteStore.open(file, clock.SystemClock(), "bench", CACHE_BYTES)
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
    now = time.time()
    wants = [Want(id, len(uids))]
    await store.begin([Begin(id, "scope", SELECTION, wants, ACCOUNTS, now - 84_600, 35)])
    items = tuple(Hit(uid, "SN74S74N", "Dual D-type flip-flop") for uid in uids)
    result = Result(id, len(uids), len(uids), items, bodies, tuple(uids), b"{}", now)
    await store.finish([Finish(id, "scope", SELECTION, [result], ACCOUNTS, len(uids), 0)])
