"""Worker process of a test: spends from a shared store as fast as possible, then prints the admitted amounts.

python spender.py ADDRESS NAME LIMIT CALLS – waits for a line on standard input before it begins.
"""

import asyncio
import sys

from service.stores.conftest import open_at

from proxy.kit import clock, windows
from proxy.stores.protocols import LedgerEntry, QuotaLimit, ReservationRecord, Settlement, UsageIncrement

LINE = LedgerEntry("demo", "2023-11")


async def main(store_address: str, name: str, limit: int, calls: int) -> None:
    store = await open_at(store_address, clock.SystemClock())
    await store.heartbeat(name, 60)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    held = taken = locked = 0
    for number in range(1, calls + 1):
        claim = f"{name}-{number}"
        (full,) = await store.reserve([ReservationRecord(claim, name, 3, (QuotaLimit(LINE, limit),), (LINE,))])
        used = 2 if full is None else 0  # of three that were claimed
        held += full is None
        await store.settle(Settlement(name, number, (claim,), (UsageIncrement(LINE, used, 0),)))
        taken += await store.take("tokens", (windows.Window(5, 600.0),)) == 0.0
        locked += await store.lock("one", name, 600)
    await store.aclose()
    sys.stdout.write(f"{held} {taken} {locked}\n")


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
