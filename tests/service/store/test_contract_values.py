"""Contract of the store: the same tests for every implementation. Small values, windows, and who called."""

from typing import Any

import pytest

from proxy.kit.clock import ManualClock, Window
from proxy.model import Seen
from proxy.store.protocol import CLIENT, FAILURE, SEEN_MAX, UNKNOWN_KEY
from proxy.store.store import Store

SECOND, MINUTE = Window(2, 1.0), Window(3, 60.0)
DAY = 20_000


async def test_value_is_there_until_it_ends_or_is_dropped(store: Store, time: ManualClock) -> None:
    assert await store.value("a") is None
    assert await store.put_value("a", "1", 10)
    assert await store.put_value("a", "2", 20)
    assert await store.put_value("a b%", "3", 40)
    await store.drop_value("a", "1")
    time.advance(19)
    assert await store.value("a") == "2"
    time.advance(2)
    assert await store.value("a") is None
    assert await store.value("a b%") == "3"
    await store.drop_value("a b%", "3")
    assert await store.value("a b%") is None
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


async def test_newest_request_counts_from_when_it_is_taken_again(store: Store, time: ManualClock) -> None:
    assert [await store.take("a", (SECOND,)) for _ in range(2)] == [0.0, 0.0]
    time.advance(0.75)
    await store.take_again("a", (SECOND,))
    time.advance(0.25)
    assert await store.take("a", (SECOND,)) == 0.0
    assert await store.take("a", (SECOND,)) == pytest.approx(0.75, abs=0.2)


async def test_clock_set_back_blocks_nothing_for_longer(store: Store, time: ManualClock) -> None:
    time.advance(86_400)
    await store.take("a", (Window(1, 60.0),))
    await store.put_value("lease", "one", 10)
    time.advance(-86_400)
    assert 0.0 < await store.take("a", (Window(1, 60.0),)) <= 60.0
    assert await store.put_value("lease", "two", 10, absent=True)


def seen(**changes: Any) -> Seen:
    return Seen(CLIENT, DAY, "erp", "key", "parts/match", "curl/8", "", 2, DAY * 86_400.0)._replace(**changes)


async def test_requests_are_added_once_for_each_id(store: Store) -> None:
    for id in ("1", "1", "2"):
        await store.add_seen(id, [seen(), seen(user_agent="wget"), seen(kind=FAILURE)], DAY)
    last = DAY * 86_400.0 + 9
    await store.add_seen("3", [seen(last=last, requests=1), seen(last=last - 5, requests=1)], DAY)
    assert await store.seen(CLIENT, DAY) == [seen(requests=6, last=last), seen(user_agent="wget", requests=4)]
    assert await store.seen(FAILURE, DAY) == [seen(kind=FAILURE, requests=4)]
    assert await store.seen(CLIENT, DAY + 1) == []


async def test_days_before_the_first_one_are_deleted(store: Store) -> None:
    before = seen(day=DAY - 1, last=DAY * 86_400.0 - 1)
    await store.add_seen("1", [before, seen()], DAY - 1)
    assert await store.seen(CLIENT, 0) == [seen(), before]
    await store.add_seen("2", [], DAY)
    assert await store.seen(CLIENT, 0) == [seen()]


@pytest.mark.parametrize("kind", [UNKNOWN_KEY, FAILURE])
async def test_last_rows_of_a_kind_are_kept(store: Store, kind: str) -> None:
    rows = [seen(kind=kind, key=str(number), last=DAY * 86_400.0 + number) for number in range(SEEN_MAX[kind] + 9)]
    await store.add_seen("1", rows, DAY)
    await store.add_seen("2", [last := rows[9]._replace(last=DAY * 86_400.0 + 999)], DAY)
    assert await store.seen(kind, DAY) == [last._replace(requests=4), *reversed(rows[10:])]
