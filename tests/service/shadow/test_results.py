"""Tests of result slots in the store: one per worker, taken over with their content, never shared."""

from typing import Any

import msgspec
import pytest

from proxy.shadow import results
from proxy.shadow.results import LEASE_SECONDS, ResultSlot
from proxy.tools.compare.judging.findings import Comparison
from proxy.tools.compare.judging.tally import Tally
from proxy.tools.compare.shadow import report
from proxy.traffic.v3_request import V3Request


def counted(*clients: Any) -> Any:
    tally = Tally()
    for client in clients:
        tally.add(Comparison(V3Request("/parts/match", client=client), 1.0))
    return msgspec.json.encode(tally).decode()


async def clients(store: Any) -> Any:
    tally = await report.read_tally(store)
    return None if tally is None else sorted((row.client, row.compared) for row in tally.rows.values())


async def worker(store: Any, name: Any) -> Any:
    """A worker with a place; and what was noted there."""
    made = ResultSlot(store, name)
    await made.refresh()
    return made, await made.resume()


async def test_concurrent_workers_have_their_own_slots_that_add_up(store: Any) -> None:
    one, nothing = await worker(store, "one")
    two, _ = await worker(store, "two")
    assert nothing == ""
    assert await report.read_tally(store) is None
    await one.put(counted("a"))
    await two.put(counted("a", "b"))
    assert await clients(store) == [("a", 2), ("b", 1)]
    await one.put(counted("a", "a"))
    assert await clients(store) == [("a", 3), ("b", 1)]


@pytest.mark.parametrize("dies", [True, False])
async def test_worker_continues_from_the_note_of_its_slot(store: Any, clock: Any, dies: bool) -> None:
    one, _ = await worker(store, "one")
    await one.put(counted("a"))
    if dies:
        clock.advance(LEASE_SECONDS + 1)
    else:
        await one.close()
    two, found = await worker(store, "two")
    assert found == counted("a")
    await two.put(counted("a", "b"))
    assert await clients(store) == [("a", 1), ("b", 1)]
    assert len(await store.notes(results.TALLIES)) == 1


async def test_slot_with_a_live_owner_is_not_taken(store: Any, clock: Any) -> None:
    one, _ = await worker(store, "one")
    for _ in range(3):
        clock.advance(LEASE_SECONDS - 1)
        await one.refresh()
    await worker(store, "two")
    await one.put(counted("a"))
    assert (one.placed, set(await store.notes(results.TALLIES))) == (True, {"1"})


async def test_worker_that_lost_its_slot_writes_nothing(store: Any, clock: Any) -> None:
    one, _ = await worker(store, "one")
    await one.put(counted("a"))
    clock.advance(LEASE_SECONDS + 1)
    two, _ = await worker(store, "two")
    await two.put(counted("a", "b"))
    await one.refresh()
    assert not one.placed
    await one.put(counted("a", "lost"))
    assert await clients(store) == [("a", 1), ("b", 1)]
    assert await one.resume() == ""
    await one.put(counted("c"))
    assert await clients(store) == [("a", 1), ("b", 1), ("c", 1)]


async def test_notes_of_a_past_epoch_are_ignored(store: Any) -> None:
    one, _ = await worker(store, "one")
    await one.put(counted("a"))
    await results.reset(store)
    await one.put(counted("a"))  # it has not looked yet
    assert await clients(store) is None
    await one.refresh()
    assert await one.resume() == ""
    await one.put(counted("b"))
    assert await clients(store) == [("b", 1)]


async def test_every_worker_sees_the_switch(store: Any) -> None:
    one = ResultSlot(store, "one")
    told = [(await one.refresh()).on]
    for on in (False, True):
        await results.switch(store, on)
        told.append((await one.refresh()).on)
    assert told == [True, False, True]
