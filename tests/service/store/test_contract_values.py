"""Contract of the store: the same tests for every implementation. Small values, windows, and who called."""

from typing import Any

import pytest

from proxy.kit.clock import ManualClock
from proxy.kit.windows import Window
from proxy.store.protocol import FAILURES_MAX, UNKNOWN_KEYS_MAX, Failure, Seen, Store, UnknownKey

SECOND, MINUTE = Window(2, 1.0), Window(3, 60.0)
DAY = 20_000


async def test_value_is_there_until_it_ends_or_is_dropped(store: Store, time: ManualClock) -> None:
    assert await store.value("a") is None
    assert await store.put_value("a", "1", 10)
    assert await store.put_value("a", "2", 20)
    assert await store.put_value("a b%", "3", 40)
    assert await store.values("a") == {"a": "2", "a b%": "3"}
    assert await store.values("a b") == {"a b%": "3"}
    assert await store.values("%") == {}
    await store.drop_value("a", "1")
    time.advance(19)
    assert await store.value("a") == "2"
    time.advance(2)
    assert await store.value("a") is None
    assert await store.values("a") == {"a b%": "3"}
    await store.drop_value("a b%", "3")
    assert await store.values("") == {}
    await store.put_value("a", "4", 10)
    await store.drop_value("a")
    assert await store.value("a") is None


async def test_lease_has_one_owner_who_extends_it(store: Store, time: ManualClock) -> None:
    owners = ("one", "two")
    assert [await store.put_value("lease", owner, 10, absent=True) for owner in owners] == [True, False]
    time.advance(9)
    assert [await store.put_value("lease", owner, 10, absent=True) for owner in owners] == [True, False]
    time.advance(9)
    assert await store.value("lease") == "one"
    time.advance(2)
    assert await store.put_value("lease", "two", 10, absent=True)
    assert await store.value("lease") == "two"


async def test_request_counts_in_every_window_or_in_none(store: Store, time: ManualClock) -> None:
    both = (SECOND, MINUTE)
    assert [await store.take("a", both) for _ in range(2)] == [0.0, 0.0]
    assert await store.take("a", both) == pytest.approx(1.0, abs=0.2)
    assert await store.take("b", both) == 0.0
    time.advance(1.0)
    assert await store.take("a", both) == 0.0
    assert await store.take("a", both) == pytest.approx(59.0, abs=0.2)
    time.advance(59.0)
    assert [await store.take("a", both) for _ in range(2)] == [0.0, 0.0]


async def test_clock_set_back_blocks_nothing_for_longer(store: Store, time: ManualClock) -> None:
    time.advance(86_400)
    await store.take("a", (Window(1, 60.0),))
    await store.put_value("lease", "one", 10)
    time.advance(-86_400)
    assert 0.0 < await store.take("a", (Window(1, 60.0),)) <= 60.0
    assert await store.put_value("lease", "two", 10, absent=True)


def seen(**changes: Any) -> Seen:
    return Seen(DAY, "erp", "key", "parts/match", "curl/8", "", 2, 7.0)._replace(**changes)


async def test_requests_are_added_once_for_each_id(store: Store) -> None:
    for id in ("1", "1", "2"):
        await store.add_seen(id, [seen(), seen(user_agent="wget")], [], [])
    await store.add_seen("3", [seen(day=DAY - 1), seen(last=9.0, requests=1), seen(last=5.0, requests=1)], [], [])
    added = [seen(requests=6, last=9.0), seen(user_agent="wget", requests=4)]
    assert sorted(await store.seen(DAY)) == added
    assert sorted(await store.seen(DAY - 1)) == [seen(day=DAY - 1), *added]


async def test_unknown_keys_are_bounded_and_the_last_one_is_first(store: Store) -> None:
    keys = [UnknownKey(f"key {number}", "::1", "curl", 1.0, float(number), 1) for number in range(UNKNOWN_KEYS_MAX + 9)]
    await store.add_seen("1", [], keys, [])
    again = UnknownKey(keys[9].digest, "::2", "wget", 900.0, 999.0, 4)
    await store.add_seen("2", [], [again], [])
    stored = await store.unknown_keys()
    assert stored == [again._replace(first=1.0, requests=5), *reversed(keys[10:])]


async def test_failures_are_bounded_and_the_last_one_is_first(store: Store) -> None:
    failures = [Failure(float(number), 502, f"id {number}", "erp", "/x", "it broke") for number in range(FAILURES_MAX)]
    await store.add_seen("1", [], [], failures)
    await store.add_seen("2", [], [], [last := failures[0]._replace(at=99.0)])
    assert await store.failures() == [last, *reversed(failures[1:])]


async def test_store_says_that_it_can_be_written(store: Store) -> None:
    await store.check_writable()
