"""Recording of requests: written at intervals and at the end, kept while the store is unavailable."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support import log_lines

from proxy import errors
from proxy.gateway.recording import SeenRequests
from proxy.kit import clock
from proxy.store.protocol import CLIENT, DAY_SECONDS
from proxy.store.sqlite import SqliteStore


class UnreliableStore:
    """A store that fails while `fails`, before or after the work is done."""

    fails = ""

    def __init__(self, store: SqliteStore) -> None:
        self.seen, self.sweep = store.seen, store.sweep
        self._add_seen = store.add_seen

    async def add_seen(self, *arguments: Any) -> None:
        if self.fails == "before":
            raise errors.StoreUnavailable("not there")
        await self._add_seen(*arguments)
        if self.fails == "after":
            raise errors.StoreUnavailable("the confirmation was lost")


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture
async def store(time: clock.ManualClock) -> AsyncIterator[UnreliableStore]:
    opened = await SqliteStore.open(None, time, "worker", 2**20)
    yield UnreliableStore(opened)
    await opened.aclose()


@pytest.fixture
def counting(store: Any) -> SeenRequests:
    return SeenRequests(store)


def add(counting: SeenRequests, time: clock.ManualClock, number: int = 1) -> None:
    """Count some requests, now."""
    for _ in range(number):
        counting.add_client(time.now(), "/v3/parts/match", "curl/8", application="demo", key="erp")


async def requests(store: UnreliableStore) -> dict[int, int]:
    """Requests of each day in the store."""
    return {count.day: count.requests for count in await store.seen(CLIENT, 0)}


@pytest.mark.parametrize("failure", ["before", "after"])
async def test_counts_wait_for_a_store_that_is_unavailable_and_are_added_once(
    counting: SeenRequests, store: UnreliableStore, time: clock.ManualClock, failure: str
) -> None:
    store.fails = failure
    add(counting, time, 3)
    for _ in range(3):
        add(counting, time)
        with pytest.raises(errors.StoreUnavailable):
            await counting.write()
    store.fails = ""
    await counting.write()
    assert list((await requests(store)).values()) == [6]


async def test_counts_that_cannot_be_written_at_the_end_are_logged(
    counting: SeenRequests, store: UnreliableStore, time: clock.ManualClock
) -> None:
    add(counting, time, 4)
    store.fails = "before"
    with log_lines.collected() as stream:
        await counting.close()
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert (line["event"], line["level"], line["requests"]) == ("caller counts lost", "warning", 4)


async def test_counts_are_kept_for_30_days(
    counting: SeenRequests, store: UnreliableStore, time: clock.ManualClock
) -> None:
    first = int(time.now() // DAY_SECONDS)
    for _ in range(40):
        add(counting, time)
        await counting.write()
        await store.sweep()
        time.advance(DAY_SECONDS)
    assert sorted(await requests(store)) == list(range(first + 10, first + 40))
