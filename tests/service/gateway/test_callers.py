"""Recording of callers: written at intervals and at the end, kept while the store is unavailable."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from support import log_lines

from proxy import errors
from proxy.gateway import callers
from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.telemetry.callers import (
    DAY_SECONDS,
    Caller,
    CallerCount,
    CallerCounts,
    CallerSeen,
)

ERP = Caller("demo", "erp", "parts/match", "curl/8")


class UnreliableStore(MemoryStore):
    """A store that fails while `fails`, before or after the work is done."""

    fails = ""

    async def add_callers(
        self,
        batch: str,
        seen: Sequence[CallerSeen],
        counts: Sequence[CallerCount],
        **others: Any,
    ) -> None:
        if self.fails == "before":
            raise errors.StoreUnavailable("not there")
        await super().add_callers(batch, seen, counts, **others)
        if self.fails == "after":
            raise errors.StoreUnavailable("the confirmation was lost")


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture
def store(time: clock.ManualClock) -> UnreliableStore:
    return UnreliableStore(time)


class Counting:
    """Counts, and the recorder that writes them."""

    def __init__(self, store: MemoryStore, time: clock.ManualClock, days: int = 396, interval: float = 3600.0) -> None:
        self._time = time
        self._counts = CallerCounts()
        self.recorder = callers.CallerRecorder(self._counts, store, days, time, interval=interval)

    def request(self, number: int = 1) -> None:
        """Count some requests, now."""
        route = "/v3/parts/match"
        for _ in range(number):
            self._counts.add(
                (
                    self._time.now(),
                    "id",
                    "GET",
                    route,
                    route,
                    200,
                    1.0,
                    "::1",
                    "curl/8",
                    "demo",
                    "erp",
                    2,
                    "hit",
                    None,
                    3,
                    1,
                    ("include[]=x (no source)",),
                )
            )


async def requests(store: MemoryStore) -> dict[int, int]:
    """Requests of each day in the store."""
    return {count.day: count.requests for count in (await store.caller_usage(0, 99_999))[1]}


async def test_counts_are_written_in_the_background(store: UnreliableStore, time: clock.ManualClock) -> None:
    counting = Counting(store, time, interval=0.01)
    counting.recorder.start()
    counting.request(3)
    async with asyncio.timeout(20):
        while not await store.callers():
            await asyncio.sleep(0.01)
    counting.request(2)
    await counting.recorder.close()
    day = int(time.now() // DAY_SECONDS)
    assert (await store.caller_usage(0, day))[1] == [CallerCount(day, ERP, 5, 0, 10, 5, 5)]
    assert await store.callers() == [CallerSeen(ERP, int(time.now()), int(time.now()))]


@pytest.mark.parametrize("failure", ["before", "after"])
async def test_counts_wait_for_a_store_that_is_unavailable_and_are_added_once(
    store: UnreliableStore, time: clock.ManualClock, failure: str
) -> None:
    counting = Counting(store, time)
    store.fails = failure
    counting.request(3)
    for _ in range(3):
        counting.request(1)
        with pytest.raises(errors.StoreUnavailable):
            await counting.recorder.write()
    store.fails = ""
    await counting.recorder.write()
    assert list((await requests(store)).values()) == [6]


async def test_many_counts_are_written_in_parts_each_once(store: UnreliableStore, time: clock.ManualClock) -> None:
    counts, route = CallerCounts(), "/v3/parts/match"
    total = 2 * callers.BATCH_MAX + 1
    for number in range(total):
        key = str(number // 50)
        counts.add(
            (
                time.now(),
                "id",
                "GET",
                route,
                route,
                200,
                1.0,
                "::1",
                f"bom/{number}",
                "demo",
                key,
                2,
                None,
                None,
                0,
                0,
                (),
            )
        )
    recorder = callers.CallerRecorder(counts, store, 396, time)
    store.fails = "after"
    for _ in range(2):  # the first part is stored, its confirmation is lost
        with pytest.raises(errors.StoreUnavailable):
            await recorder.write()
    assert len((await store.caller_usage(0, 99_999))[1]) == callers.BATCH_MAX
    store.fails = ""
    await recorder.write()
    stored = (await store.caller_usage(0, 99_999))[1]
    assert (len(stored), {count.requests for count in stored}) == (total, {1})
    assert len(await store.callers()) == total


async def test_counts_that_cannot_be_written_at_the_end_are_logged(
    store: UnreliableStore, time: clock.ManualClock
) -> None:
    counting = Counting(store, time)
    counting.recorder.start()
    counting.request(4)
    store.fails = "before"
    with log_lines.collected() as stream:
        await counting.recorder.close()
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert (line["event"], line["level"], line["requests"]) == ("caller counts lost", "warning", 4)


async def test_failure_of_a_write_is_not_the_end_of_writing(
    store: UnreliableStore, time: clock.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise ZeroDivisionError

    monkeypatch.setattr(store, "add_callers", broken)
    counting = Counting(store, time, interval=0.01)
    counting.recorder.start()
    counting.request()
    with log_lines.collected() as stream:
        async with asyncio.timeout(20):
            while not await store.callers():
                await asyncio.sleep(0.01)
        await counting.recorder.close()
    assert json.loads(stream.getvalue().splitlines()[0])["event"] == "background task failed"


async def test_counts_are_kept_for_so_many_days(store: UnreliableStore, time: clock.ManualClock) -> None:
    counting = Counting(store, time, days=396)
    first = int(time.now() // DAY_SECONDS)
    for _ in range(400):  # beyond the end of every month, and of a year
        counting.request()
        await counting.recorder.write()
        time.advance(DAY_SECONDS)
    assert sorted(await requests(store)) == list(range(first + 400 - 396, first + 400))
    (seen,) = await store.callers()
    assert (seen.first, seen.last) == (int(time.now()) - 400 * DAY_SECONDS, int(time.now()) - DAY_SECONDS)
    # Nobody calls any more: the caller goes with its last day.
    time.advance(394 * DAY_SECONDS)
    await counting.recorder.write()
    assert (len(await requests(store)), len(await store.callers())) == (1, 1)
    time.advance(DAY_SECONDS)
    await counting.recorder.write()
    assert (await requests(store), await store.callers()) == ({}, [])


async def test_zero_days_delete_what_is_stored(store: UnreliableStore, time: clock.ManualClock) -> None:
    counting = Counting(store, time)
    counting.request()
    await counting.recorder.write()
    assert await store.monthly_requests("2023-11") != []
    await Counting(store, time, days=0).recorder.write()
    assert (await requests(store), await store.callers()) == ({}, [])
    assert await store.monthly_requests("2023-11") == []


def seen(first: int, key: str = "erp", endpoint: str = "parts/match", user_agent: str = "curl/8") -> CallerSeen:
    return CallerSeen(Caller("demo" if key else "", key, endpoint, user_agent), first, first)
