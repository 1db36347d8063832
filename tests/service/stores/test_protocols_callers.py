"""Tests of the store protocol for callers with memory, SQLite and a real Redis: their times and counts, added up."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.stores.protocols import BATCH_SECONDS, Store
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry.callers import (
    ADDRESS_KEYS_MAX,
    DAY_SECONDS,
    KEYS_MAX,
    Caller,
    CallerCount,
    CallerSeen,
    KeyDurations,
    MonthlyRequests,
    UnknownKey,
    UnsupportedUse,
)

TESTS = Path(__file__).parents[2]
TODAY = 19_675
ERP = Caller("demo", "erp", "parts/match", "python-requests/2.31.0")
BOM = Caller("demo", "2", "parts/{uid}", "")
UNKNOWN = Caller("", "", "parts/search", 'a "quoted" \\ text, é and 𝄞 [0,1] \'; DROP TABLE callers; --')
CALLERS = (ERP, BOM, UNKNOWN)


def seen(caller: Caller, first: int, last: int | None = None) -> CallerSeen:
    return CallerSeen(caller, first, first if last is None else last)


async def stored(store: Store, first_day: int = 0, last_day: int = TODAY) -> tuple[list[CallerSeen], list[CallerCount]]:
    seen, counts = await store.caller_usage(first_day, last_day)
    assert sorted(await store.callers()) == sorted(seen)
    return sorted(seen), sorted(counts)


async def test_counts_are_added_and_times_widened(store: Store) -> None:
    await store.add_callers("1", [seen(ERP, 100, 200)], [CallerCount(TODAY, ERP, 5, 1, 7)])
    await store.add_callers(
        "2",
        [seen(ERP, 50, 60), seen(BOM, 10), seen(UNKNOWN, 30)],
        [CallerCount(TODAY, ERP, 2, 2, 0), CallerCount(TODAY, BOM, 1, 0, 1), CallerCount(TODAY - 1, UNKNOWN, 4, 4, 0)],
    )
    times, counts = await stored(store)
    assert times == [seen(UNKNOWN, 30), seen(BOM, 10), seen(ERP, 50, 200)]
    assert counts == [
        CallerCount(TODAY - 1, UNKNOWN, 4, 4, 0),
        CallerCount(TODAY, BOM, 1, 0, 1),
        CallerCount(TODAY, ERP, 7, 3, 7),
    ]


async def test_batch_that_is_sent_again_is_added_once(store: Store, manual_clock: clock.ManualClock) -> None:
    for _ in range(2):
        await store.add_callers("1", [seen(ERP, 1)], [CallerCount(TODAY, ERP, 5, 1, 7)])
        manual_clock.advance(BATCH_SECONDS - 1)
    assert (await stored(store))[1] == [CallerCount(TODAY, ERP, 5, 1, 7)]


async def test_requests_of_a_month_are_added_up_once(store: Store) -> None:
    erp, shop = ("2023-11", "demo", "erp"), ("2023-11", "demo", 'a "quoted" key')
    for batch in ("1", "1", "2"):  # the first is sent again
        months = [MonthlyRequests(*erp, 5, 4, 30, 2), MonthlyRequests("2023-12", "demo", "erp", 1, 1, 1, 1)]
        await store.add_callers(batch, [], [], months=months)
    await store.add_callers("3", [], [], months=[MonthlyRequests(*shop, 2**40, 0, 2**40, 0)])
    assert await store.monthly_requests("2023-11") == [
        MonthlyRequests(*shop, 2**40, 0, 2**40, 0),
        MonthlyRequests(*erp, 10, 8, 60, 4),
    ]
    assert await store.monthly_requests("2023-10") == []


async def test_unsupported_uses_are_added_up_once_and_pruned(store: Store) -> None:
    price, sort = ("demo", "erp", 'filter "price"'), ("demo", "erp", "sortby")
    for batch in ("1", "1", "2"):  # the first is sent again
        await store.add_callers(
            batch, [], [], unsupported=[UnsupportedUse(*price, 1, 100, 100), UnsupportedUse(*sort, 5, 90, 200)]
        )
    await store.add_callers("3", [], [], unsupported=[UnsupportedUse(*price, 2**40, 50, 86_500)])
    uses = [UnsupportedUse(*price, 2**40 + 2, 50, 86_500), UnsupportedUse(*sort, 10, 90, 200)]
    assert await store.unsupported_uses() == uses
    await store.prune_callers(1)
    assert await store.unsupported_uses() == uses[:1]


async def test_durations_of_a_day_add_up_once_and_are_pruned(store: Store) -> None:
    quoted = KeyDurations(TODAY, "demo", 'a "quoted" key', (2**40, 0, 1))
    for batch in ("1", "1", "2"):  # the first is sent again
        buckets = *range(11, 0, -1), 0, 7
        durations = [KeyDurations(TODAY, "demo", "erp", buckets), KeyDurations(TODAY - 1, "demo", "erp", (1, 2))]
        await store.add_callers(batch, [], [], durations=durations)
    await store.add_callers("3", [], [], durations=[quoted])
    twice = KeyDurations(TODAY, "demo", "erp", tuple(2 * number for number in buckets))
    assert sorted(await store.durations(TODAY, TODAY)) == sorted([quoted, twice])
    assert await store.durations(TODAY - 2, TODAY - 1) == [KeyDurations(TODAY - 1, "demo", "erp", (2, 4))]
    await store.prune_callers(TODAY)
    assert sorted(await store.durations(0, TODAY)) == sorted([quoted, twice])


async def test_counts_of_a_day_add_up_with_hits_and_durations(store: Store) -> None:
    for batch in ("1", "2"):
        await store.add_callers(batch, [seen(ERP, 1)], [CallerCount(TODAY, ERP, 5, 1, 7, 2, 40)])
    assert (await stored(store))[1] == [CallerCount(TODAY, ERP, 10, 2, 14, 4, 80)]


async def test_months_are_pruned_when_all_their_days_are(store: Store) -> None:
    months = ("2023-10", "2023-11", "2023-12")
    await store.add_callers("1", [], [], months=[MonthlyRequests(month, "demo", "erp", 1, 0, 0, 0) for month in months])
    november_30 = 19_691
    for first_day, left in ((november_30 - 29, months[1:]), (november_30, months[1:]), (november_30 + 1, months[2:])):
        await store.prune_callers(first_day)
        assert [month for month in months if await store.monthly_requests(month)] == list(left)


async def test_only_the_days_asked_for_are_read(store: Store) -> None:
    days = [TODAY - 395, TODAY - 30, TODAY - 29, TODAY]
    await store.add_callers("1", [seen(ERP, 1)], [CallerCount(day, ERP, 1, 0, 0) for day in days])
    assert [count.day for count in (await stored(store, TODAY - 29))[1]] == days[2:]
    assert [count.day for count in (await stored(store, TODAY - 395, TODAY - 30))[1]] == days[:2]
    assert (await stored(store, TODAY + 1, TODAY + 9))[1] == []


async def test_old_counts_and_callers_are_deleted(store: Store) -> None:
    start = TODAY * DAY_SECONDS
    await store.add_callers(
        "1",
        [seen(ERP, start - 90, start - 1), seen(BOM, start - 90, start)],
        [CallerCount(day, caller, 1, 0, 0) for caller in (ERP, BOM) for day in (TODAY - 2, TODAY - 1)]
        + [CallerCount(TODAY, BOM, 3, 0, 0)],
    )
    await store.prune_callers(TODAY)
    await store.prune_callers(TODAY)
    assert await stored(store) == ([seen(BOM, start - 90, start)], [CallerCount(TODAY, BOM, 3, 0, 0)])
    # A caller that comes back is a new one, and gets none of its old counts.
    await store.add_callers("2", [seen(ERP, start + 5)], [CallerCount(TODAY, ERP, 1, 0, 0)])
    times, counts = await stored(store)
    assert seen(ERP, start + 5) in times
    assert CallerCount(TODAY, ERP, 1, 0, 0) in counts


async def test_counts_are_of_returned_callers_while_others_are_deleted(store: Store) -> None:
    days = range(TODAY - 40, TODAY + 1)
    for day in days:
        # One caller for each day, all but the last of which is then deleted.
        caller = ERP._replace(user_agent=f"bom/{day}")
        await store.add_callers(str(day), [seen(caller, day * DAY_SECONDS)], [CallerCount(day, caller, 1, 0, 0)])
    (callers, counts), _ = await asyncio.gather(store.caller_usage(days[0], TODAY), store.prune_callers(TODAY))
    assert {count.caller for count in counts} <= {each.caller for each in callers}
    assert CallerCount(TODAY, ERP._replace(user_agent=f"bom/{TODAY}"), 1, 0, 0) in counts
    assert len((await stored(store))[1]) == 1


async def test_unknown_keys_are_added_up_with_their_last_request(store: Store) -> None:
    await store.add_callers("1", [], [], unknown=[UnknownKey("a", "192.0.2.1", "curl/8", 100, 200, 3)])
    await store.add_callers("1", [], [], unknown=[UnknownKey("a", "192.0.2.1", "curl/8", 100, 200, 3)])  # sent again
    await store.add_callers("2", [], [], unknown=[UnknownKey("a", "192.0.2.2", "old/1 'é\"", 50, 150, 2)])
    await store.add_callers(
        "3", [], [], unknown=[UnknownKey("a", "192.0.2.3", "", 300, 300, 1), UnknownKey("b", "::1", "", 300, 310, 1)]
    )
    assert await store.unknown_keys() == [
        UnknownKey("b", "::1", "", 300, 310, 1),
        UnknownKey("a", "192.0.2.3", "", 50, 300, 6),
    ]
    await store.prune_callers(1)
    assert await store.unknown_keys() == []


async def test_unknown_keys_of_an_address_and_in_all_are_bounded(store: Store) -> None:
    kept = UnknownKey("kept", "192.0.2.1", "erp/1", 1, 1, 1)
    guesses = [UnknownKey(f"{n:03}", "192.0.2.2", "", n + 10, n + 10, 1) for n in range(3 * ADDRESS_KEYS_MAX)]
    await store.add_callers("1", [], [], unknown=[kept, *guesses])
    assert await store.unknown_keys() == [*reversed(guesses[-ADDRESS_KEYS_MAX:]), kept]
    flood = [UnknownKey(f"flood {n:03}", f"10.0.{n // 200}.{n % 200}", "", 900, 900, 1) for n in range(KEYS_MAX + 5)]
    await store.add_callers("2", [], [], unknown=flood)
    assert await store.unknown_keys() == flood[:KEYS_MAX]


async def test_large_numbers_are_exact(store: Store) -> None:
    large = 10**12
    for batch in ("1", "2"):
        await store.add_callers(batch, [seen(ERP, 4_102_444_800)], [CallerCount(TODAY, ERP, large, 1, large + 1)])
    assert await stored(store) == (
        [seen(ERP, 4_102_444_800)],
        [CallerCount(TODAY, ERP, 2 * large, 2, 2 * large + 2)],
    )


COUNTS = st.builds(
    CallerCount,
    st.integers(TODAY - 3, TODAY),
    st.sampled_from(CALLERS),
    st.integers(1, 9),
    st.integers(0, 9),
    st.integers(0, 9),
)
BATCHES = st.lists(st.lists(st.tuples(COUNTS, st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=5))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@settings(max_examples=25, deadline=None)
@given(batches=BATCHES)
def test_any_batches_add_up_as_counted_by_hand(
    tmp_path_factory: pytest.TempPathFactory, kind: str, batches: list[list[tuple[CallerCount, int, int]]]
) -> None:
    expected: dict[tuple[int, Caller], list[int]] = {}
    times: dict[Caller, list[int]] = {}

    async def work() -> None:
        time = clock.ManualClock()
        file = tmp_path_factory.mktemp("store") / "state.sqlite"
        store: Store = MemoryStore(time) if kind == "memory" else await SqliteStore.open(file, time)
        for number, batch in enumerate(batches):
            # As a process does, a batch names each caller and each of its days once.
            unique = {(count.day, count.caller): (count, min(a, b), max(a, b)) for count, a, b in batch}
            spans: dict[Caller, list[int]] = {}
            for count, first, last in unique.values():
                added = count.requests, count.errors, count.parts
                numbers = expected.setdefault((count.day, count.caller), [0, 0, 0])
                expected[count.day, count.caller] = [sum(pair) for pair in zip(numbers, added, strict=True)]
                spans.setdefault(count.caller, []).extend((first, last))
                times.setdefault(count.caller, []).extend((first, last))
            await store.add_callers(
                str(number),
                [CallerSeen(caller, min(span), max(span)) for caller, span in spans.items()],
                [count for count, _, _ in unique.values()],
            )
        assert sorted((await store.caller_usage(0, TODAY))[1]) == sorted(
            CallerCount(*place, *numbers) for place, numbers in expected.items()
        )
        assert sorted(await store.callers()) == sorted(
            CallerSeen(caller, min(span), max(span)) for caller, span in times.items()
        )
        await store.aclose()

    asyncio.run(work())


ADDING = """
import asyncio, sys
from service.stores.conftest import open_at
from service.stores.test_protocols_callers import ERP, TODAY, seen
from proxy.kit import clock
from proxy.telemetry.callers import CallerCount

async def work():
    store = await open_at(sys.argv[1], clock.ManualClock())
    for number in range(50):
        await store.add_callers(f"{sys.argv[2]}-{number}", [seen(ERP, number)], [CallerCount(TODAY, ERP, 3, 1, 2)])
    await store.aclose()

asyncio.run(work())
"""


async def test_processes_together_lose_no_count(
    open_store: Callable[[str], Awaitable[Store]], store_address: Callable[[str], str], persistent_kind: str
) -> None:
    store = await open_store(persistent_kind)
    environment = {"PYTHONPATH": f"{TESTS.parent}:{TESTS}"}
    command = [sys.executable, "-c", ADDING, store_address(persistent_kind)]
    processes = [subprocess.Popen([*command, name], env=environment) for name in "abc"]
    assert [await asyncio.to_thread(process.wait, 60) for process in processes] == [0, 0, 0]
    assert await stored(store) == ([seen(ERP, 0, 49)], [CallerCount(TODAY, ERP, 450, 150, 300)])
