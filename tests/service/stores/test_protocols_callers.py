"""Tests of the store protocol for callers with memory, SQLite and a real Redis: their counts, added up."""

from pathlib import Path

from proxy.kit import clock
from proxy.stores.protocols import BATCH_SECONDS, Store
from proxy.telemetry.callers import ADDRESS_KEYS_MAX, DAY_SECONDS, KEYS_MAX, Caller, CallerCount, UnknownKey

TESTS = Path(__file__).parents[2]
TODAY = 19_675
ERP = Caller("demo", "erp", "parts/match", "python-requests/2.31.0", "sortby (ignored)")
BOM = Caller("demo", "2", "parts/{uid}", "", "")
UNKNOWN = Caller("", "", "parts/search", 'a "quoted" \\ text, é and 𝄞 [0,1] \'; DROP TABLE callers; --', "")


async def stored(store: Store, first_day: int = 0) -> list[CallerCount]:
    return sorted(await store.callers(first_day))


async def test_counts_are_added_with_the_last_time(store: Store) -> None:
    await store.add_callers("1", [CallerCount(TODAY, ERP, 5, 200)])
    counts = [CallerCount(TODAY, ERP, 2, 60), CallerCount(TODAY, BOM, 1, 10), CallerCount(TODAY - 1, UNKNOWN, 4, 30)]
    await store.add_callers("2", counts)
    assert await stored(store) == [
        CallerCount(TODAY - 1, UNKNOWN, 4, 30),
        CallerCount(TODAY, BOM, 1, 10),
        CallerCount(TODAY, ERP, 7, 200),
    ]


async def test_batch_that_is_sent_again_is_added_once(store: Store, manual_clock: clock.ManualClock) -> None:
    for _ in range(2):
        await store.add_callers("1", [CallerCount(TODAY, ERP, 5, 1)])
        manual_clock.advance(BATCH_SECONDS - 1)
    assert await stored(store) == [CallerCount(TODAY, ERP, 5, 1)]


async def test_days_are_read_from_the_first_one_and_deleted_before_it(store: Store) -> None:
    days = [TODAY - 395, TODAY - 30, TODAY - 29, TODAY]
    await store.add_callers("1", [CallerCount(day, ERP, 1, day * DAY_SECONDS) for day in days])
    assert [count.day for count in await stored(store, TODAY - 29)] == days[2:]
    assert await stored(store, TODAY + 1) == []
    await store.prune_callers(TODAY - 30)
    assert [count.day for count in await stored(store)] == days[1:]


async def test_unknown_keys_are_added_up_with_their_last_request(store: Store) -> None:
    await store.add_callers("1", [], [UnknownKey("a", "192.0.2.1", "curl/8", 100, 200, 3)])
    await store.add_callers("1", [], [UnknownKey("a", "192.0.2.1", "curl/8", 100, 200, 3)])  # sent again
    await store.add_callers("2", [], [UnknownKey("a", "192.0.2.2", "old/1 'é\"", 50, 150, 2)])
    others = [UnknownKey("a", "192.0.2.3", "", 300, 300, 1), UnknownKey("b", "::1", "", 300, 310, 1)]
    await store.add_callers("3", [], others)
    assert await store.unknown_keys() == [
        UnknownKey("b", "::1", "", 300, 310, 1),
        UnknownKey("a", "192.0.2.3", "", 50, 300, 6),
    ]
    await store.prune_callers(1)
    assert await store.unknown_keys() == []


async def test_unknown_keys_of_an_address_and_in_all_are_bounded(store: Store) -> None:
    kept = UnknownKey("kept", "192.0.2.1", "erp/1", 1, 1, 1)
    guesses = [UnknownKey(f"{n:03}", "192.0.2.2", "", n + 10, n + 10, 1) for n in range(3 * ADDRESS_KEYS_MAX)]
    await store.add_callers("1", [], [kept, *guesses])
    assert await store.unknown_keys() == [*reversed(guesses[-ADDRESS_KEYS_MAX:]), kept]
    flood = [UnknownKey(f"flood {n:03}", f"10.0.{n // 200}.{n % 200}", "", 900, 900, 1) for n in range(KEYS_MAX + 5)]
    await store.add_callers("2", [], flood)
    assert await store.unknown_keys() == flood[:KEYS_MAX]


async def test_large_numbers_are_exact(store: Store) -> None:
    large = 10**12
    for batch in ("1", "2"):
        await store.add_callers(batch, [CallerCount(TODAY, ERP, large, 4_102_444_800)])
    assert await stored(store) == [CallerCount(TODAY, ERP, 2 * large, 4_102_444_800)]
