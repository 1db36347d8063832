"""Contract of the store: the same tests for every implementation. Small values, windows, and who called."""

from typing import Any

import pytest

from proxy.kit.clock import ManualClock, Window
from proxy.model import Seen
from proxy.store.protocol import CLIENT, CLIENT_DAYS, DAY_SECONDS, FAILURE, SEEN_MAX, UNKNOWN_KEY
from proxy.store.store import Store

SECOND, MINUTE = Window(2, 1.0), Window(3, 60.0)
DAY = 20_000


async def test_value_is_there_until_it_ends_or_is_dropped(store: Store, time: ManualClock) -> None:
    assert await store.values(["a", "b%"]) == [None, None]
    assert await store.put_value("a", "1", 10)
    assert await store.put_value("a", "2", 20)
    assert await store.put_value("a b%", "3", 40)
    assert not await store.put_value("a", "", 0, instead=["1"])
    time.advance(19)
    assert await store.values(["a"]) == ["2"]
    time.advance(2)
    assert await store.values(["a", "a b%"]) == [None, "3"]
    assert await store.put_value("a b%", "", 0, instead=["3"])
    assert await store.values(["a b%"]) == [None]
    await store.put_value("a", "4", 10)
    await store.put_value("a", "", 0)
    assert await store.values(["a"]) == [None]


async def test_lease_has_one_owner_who_extends_it(store: Store, time: ManualClock) -> None:
    async def lease(owner: str) -> bool:
        return await store.put_value("lease", owner, 10, instead=[None, owner])

    assert [await lease(owner) for owner in ("one", "two")] == [True, False]
    time.advance(9)
    assert [await lease(owner) for owner in ("one", "two")] == [True, False]
    time.advance(9)
    assert await store.values(["lease"]) == ["one"]
    time.advance(2)
    assert await lease("two")
    assert await store.values(["lease"]) == ["two"]


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
    await store.take("a", (SECOND,), again=True)
    time.advance(0.25)
    assert await store.take("a", (SECOND,)) == 0.0
    assert await store.take("a", (SECOND,)) == pytest.approx(0.75, abs=0.2)


async def test_clock_set_back_blocks_nothing_for_longer(store: Store, time: ManualClock) -> None:
    time.advance(86_400)
    await store.take("a", (Window(1, 60.0),))
    await store.put_value("lease", "one", 10)
    time.advance(-86_400)
    assert 0.0 < await store.take("a", (Window(1, 60.0),)) <= 60.0
    assert await store.put_value("lease", "two", 10, instead=[None])


def seen(**changes: Any) -> Seen:
    return Seen(CLIENT, DAY, "erp", "key", "parts/match", "curl/8", "", 2, DAY * 86_400.0)._replace(**changes)


async def test_requests_are_added_once_for_each_id(store: Store) -> None:
    for id in ("1", "1", "2"):
        await store.add_seen(id, [seen(), seen(user_agent="wget"), seen(kind=FAILURE)])
    last = DAY * 86_400.0 + 9
    await store.add_seen("3", [seen(last=last, requests=1), seen(last=last - 5, requests=1)])
    assert await store.seen(CLIENT, DAY) == [seen(requests=6, last=last), seen(user_agent="wget", requests=4)]
    assert await store.seen(FAILURE, DAY) == [seen(kind=FAILURE, requests=4)]
    assert await store.seen(CLIENT, DAY + 1) == []


@pytest.mark.parametrize("sort", [CLIENT, UNKNOWN_KEY, FAILURE])
async def test_what_was_seen_is_deleted_after_30_days(store: Store, time: ManualClock, sort: str) -> None:
    old, late = seen(kind=sort, last=time.now()), seen(kind=sort, key="other", last=time.now() + DAY_SECONDS)
    await store.add_seen("1", [old, late])
    for days, left in ((CLIENT_DAYS - 1, [late, old]), (1, [late]), (1, [])):
        time.advance(days * DAY_SECONDS)
        await store.sweep()
        assert await store.seen(sort, 0) == left


@pytest.mark.parametrize("sort", [UNKNOWN_KEY, FAILURE])
async def test_last_rows_of_a_kind_are_kept(store: Store, sort: str) -> None:
    rows = [seen(kind=sort, key=str(number), last=DAY * 86_400.0 + number) for number in range(SEEN_MAX[sort] + 9)]
    await store.add_seen("1", rows)
    assert await store.seen(sort, DAY) == [*reversed(rows[9:])]
    await store.add_seen("2", [last := rows[9]._replace(last=DAY * 86_400.0 + 999)])
    assert await store.seen(sort, DAY) == [last._replace(requests=4), *reversed(rows[10:])]
