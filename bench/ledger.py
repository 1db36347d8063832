"""Cost of quota accounting per request: a durable intent, a journal entry of usage, a reservation with its settlement.

The intent and the journal entry are writes to a file beside the SQLite store. A reservation, which only
quota accounts with a limit need, is a transaction, and so is its settlement. Medians of alternating rounds.
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
ENTRIES = tuple(LedgerEntry(owner, period) for owner in ("demo", "demo/erp") for period in PERIODS)
GROUP = EntryGroup(ENTRIES)
GOALS: dict[str, Goal] = {}


def run() -> dict[str, float]:
    """Return microseconds per request."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder) / "state.sqlite"))


async def _measure(file: Path) -> dict[str, float]:
    store = await SqliteStore.open(file, clock.SystemClock())
    journal = store.journal("bench")
    await store.heartbeat("bench", 3600)
    numbers = iter(range(1, 1 << 30))

    async def intent() -> None:
        journal.close_intent(journal.open_intent(3, GROUP))

    async def note() -> None:
        journal.record_usage(1, GROUP, 3, 0)

    async def reservation() -> None:
        number = next(numbers)
        record = ReservationRecord(f"reservation-{number}", "bench", 3, (QuotaLimit(ENTRIES[1], 1 << 40),), ENTRIES)
        await store.reserve([record])
        await store.settle(
            Settlement("bench", number, (record.id,), tuple(UsageIncrement(entry, 3, 0) for entry in ENTRIES))
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
    start = time.perf_counter()
    for _ in range(count):
        await step()
    return (time.perf_counter() - start) / count * 1e6
