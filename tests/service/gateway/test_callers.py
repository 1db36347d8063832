"""Recording of callers: written at intervals and at the end, kept while the store is unavailable."""

import json
from collections.abc import Sequence

import pytest
from support import log_lines

from proxy import errors
from proxy.gateway import callers
from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.telemetry.callers import DAY_SECONDS, CallerCount, CallerCounts, UnknownKey


class UnreliableStore(MemoryStore):
    """A store that fails while `fails`, before or after the work is done."""

    fails = ""

    async def add_callers(self, batch: str, counts: Sequence[CallerCount], unknown: Sequence[UnknownKey] = ()) -> None:
        if self.fails == "before":
            raise errors.StoreUnavailable("not there")
        await super().add_callers(batch, counts, unknown)
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
        self.counts = CallerCounts()
        self.recorder = callers.CallerRecorder(self.counts, store, days, time, interval=interval)

    def request(self, number: int = 1) -> None:
        """Count some requests, now."""
        for _ in range(number):
            self.counts.add(self._time.now(), "/v3/parts/match", "curl/8", application="demo", key="erp")


async def requests(store: MemoryStore) -> dict[int, int]:
    """Requests of each day in the store."""
    return {count.day: count.requests for count in await store.callers(0)}


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
    counting, total = Counting(store, time), 2 * callers.BATCH_MAX + 1
    for number in range(total):
        counting.counts.add(time.now(), "/v3/parts/match", f"bom/{number}", application="demo", key=str(number // 50))
    store.fails = "after"
    for _ in range(2):  # the first part is stored, its confirmation is lost
        with pytest.raises(errors.StoreUnavailable):
            await counting.recorder.write()
    assert len(await store.callers(0)) == callers.BATCH_MAX
    store.fails = ""
    await counting.recorder.write()
    stored = await store.callers(0)
    assert (len(stored), {count.requests for count in stored}) == (total, {1})


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


async def test_counts_are_kept_for_so_many_days(store: UnreliableStore, time: clock.ManualClock) -> None:
    counting = Counting(store, time, days=30)
    first = int(time.now() // DAY_SECONDS)
    for _ in range(40):
        counting.request()
        await counting.recorder.write()
        time.advance(DAY_SECONDS)
    assert sorted(await requests(store)) == list(range(first + 10, first + 40))


async def test_zero_days_delete_what_is_stored(store: UnreliableStore, time: clock.ManualClock) -> None:
    counting = Counting(store, time)
    counting.request()
    await counting.recorder.write()
    await Counting(store, time, days=0).recorder.write()
    assert await requests(store) == {}
