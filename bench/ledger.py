"""What accounting takes of a request: its intent made durable and closed, its usage noted, its reservation in a store.

The intent and the note are writes to the pages of a file beside the SQLite store; a reservation, which only accounts
with a limit need, is a transaction, and so is its settlement. Medians of rounds that take turns.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.goals import Goal
from proxy.kit import clock
from proxy.stores.protocols import EntryGroup, LedgerEntry, QuotaLimit, ReservationRecord, Settlement, UsageIncrement
from proxy.stores.sqlite import SqliteStore

ROUNDS, NOTES, TRANSACTIONS = 15, 2_000, 40
PERIODS = ("2026-11-22", "2026-11", "lifetime")
LINES = tuple(LedgerEntry(account, period) for account in ("demo", "demo/erp") for period in PERIODS)
GROUP = EntryGroup(LINES)
GOALS: dict[str, Goal] = {}


def run() -> dict[str, float]:
    """Microseconds a request."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measured(Path(folder) / "state.sqlite"))


async def _measured(file: Path) -> dict[str, float]:
    store = await SqliteStore.open(file, clock.SystemClock())
    journal = store.journal("bench")
    await store.heartbeat("bench", 3600)
    numbers = iter(range(1, 1 << 30))

    async def intent() -> None:
        journal.close_intent(journal.open_intent(3, GROUP))

    async def note() -> None:
        journal.note(1, GROUP, 3, 0)

    async def reservation() -> None:
        number = next(numbers)
        claim = ReservationRecord(f"claim-{number}", "bench", 3, (QuotaLimit(LINES[1], 1 << 40),), LINES)
        await store.reserve([claim])
        await store.settle(
            Settlement("bench", number, (claim.id,), tuple(UsageIncrement(line, 3, 0) for line in LINES))
        )

    steps = {
        "intent, opened and closed (µs)": (intent, NOTES),
        "usage noted in the journal (µs)": (note, NOTES),
        "reservation and settlement, SQLite (µs)": (reservation, TRANSACTIONS),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, (step, count) in steps.items():
            times[name].append(await _timed(step, count))
    journal.settled(1)
    journal.close()
    await store.aclose()
    return {name: statistics.median(taken) for name, taken in times.items()}


async def _timed(step: Callable[[], Awaitable[None]], count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        await step()
    return (time.perf_counter() - began) / count * 1e6
