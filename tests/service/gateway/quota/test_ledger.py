"""Tests of the usage ledger with a store that is slow, unavailable, or does not confirm."""

import asyncio
import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from service.gateway.conftest import accounts

from proxy import errors
from proxy.gateway.quota import ledger, reservations
from proxy.kit import clock
from proxy.stores.protocols import EntryGroup, LedgerEntry, QuotaLimit, ReservationRecord
from proxy.stores.sqlite import SqliteStore

Quotas = Callable[..., reservations.Quota]

NOVEMBER = LedgerEntry("demo", "2023-11")
LINES = (NOVEMBER,)
GROUP = EntryGroup(LINES)


def cost(used: Any, doubtful: int = 0, claim: str = "") -> Any:
    return ledger.RequestUsage(GROUP, used, doubtful, claim)


def claim(name: Any, parts: int = 10, limit: int = 100) -> Any:
    return ReservationRecord(name, "worker", parts, (QuotaLimit(NOVEMBER, limit),), (NOVEMBER,))


async def state(store: Any) -> Any:
    away, deaf, store.away, store.deaf = store.away, store.deaf, False, False
    (found,) = await store.usage(LINES)
    store.away, store.deaf = away, deaf
    return found[1:]


def said(log_output: Any, event: Any) -> Any:
    return [line for line in map(json.loads, log_output.getvalue().splitlines()) if line["event"].startswith(event)]


@pytest.fixture
def book(store: Any) -> Any:
    return ledger.Ledger(store, "worker")


class Gate:
    """Holds an operation of a store until it is opened."""

    def __init__(self, store: Any, name: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.entered = asyncio.Event(), asyncio.Event()
        self.calls: list[tuple[Any, ...]] = []
        plain = getattr(type(store), name)

        async def gated(own: Any, *values: Any) -> Any:
            self.calls.append(values)
            self.entered.set()
            await self.open.wait()
            return await plain(own, *values)

        monkeypatch.setattr(type(store), name, gated)


async def test_bookings_during_a_write_are_batched(book: Any, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(store, "settle", monkeypatch)
    first = asyncio.create_task(book.book(cost(1)))
    await gate.entered.wait()
    others = [asyncio.create_task(book.book(cost(2, claim=f"c{number}"))) for number in range(5)]
    await asyncio.sleep(0)
    gate.open.set()
    await asyncio.gather(first, *others)
    settlements = [settlement for (settlement,) in gate.calls]
    assert [settlement.sequence for settlement in settlements] == [1, 2]
    assert settlements[1].reservations == ("c0", "c1", "c2", "c3", "c4")
    assert [booking.used for booking in settlements[1].increments] == [10]
    assert await state(store) == (11, 0, 0)


async def test_journal_entries_during_a_write_wait_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "SETTLE_SECONDS", 60)
    async with contextlib.aclosing(await SqliteStore.open(tmp_path / "state.sqlite", clock.ManualClock())) as store:
        book, gate = ledger.Ledger(store, "worker"), Gate(store, "settle", monkeypatch)
        await book.book(cost(1))
        looking = asyncio.create_task(book.refresh(LINES))
        await gate.entered.wait()
        await book.book(cost(2))
        gate.open.set()
        await looking
        assert [settlement.sequence for (settlement,) in gate.calls] == [1]
        assert book.counted(NOVEMBER) == 3
        await book.close()
        assert [settlement.sequence for (settlement,) in gate.calls] == [1, 2]
        assert (await store.usage(LINES))[0].used == 3


async def test_unavailable_store_loses_no_usage_and_is_logged_once(
    book: Any, store: Any, log_output: io.StringIO
) -> None:
    await book.book(cost(1))
    store.away = True
    for _ in range(5):
        await book.book(cost(2, 1))
    assert await state(store) == (1, 0, 0)
    await book.refresh(LINES)
    store.away = False
    await book.refresh(LINES)
    assert await state(store) == (11, 5, 0)
    await book.book(cost(3))
    assert await state(store) == (14, 5, 0)
    assert len(said(log_output, "store became unavailable")) == 1
    assert len(said(log_output, "store became available")) == 1


async def test_end_without_anything_to_write_says_nothing_about_the_store(
    book: Any, store: Any, log_output: io.StringIO
) -> None:
    store.away = True
    await book.refresh(LINES)
    store.away = False  # as Redis, which is not asked for the usage of no entries
    await book.close()
    assert len(said(log_output, "store became unavailable")) == 1
    assert said(log_output, "store became available") == []


async def test_unavailable_store_delays_no_request(book: Any, store: Any) -> None:
    store.away = True
    await book.book(cost(1))
    store.operations.clear()
    await book.book(cost(1))
    assert store.operations == []


async def test_lost_store_response_is_not_booked_twice(book: Any, store: Any) -> None:
    await store.reserve([claim("a")])
    store.deaf = True
    await book.book(cost(5, claim="a"))
    await book.book(cost(2))
    assert await state(store) == (5, 0, 0)
    await book.refresh(LINES)
    store.deaf = False
    await book.refresh(LINES)
    assert await state(store) == (7, 0, 0)


async def test_pending_bookings_are_merged_per_ledger_entry(book: Any, store: Any) -> None:
    store.away = True
    for _ in range(1_000):
        await book.book(cost(1))
    # Private: memory shows nowhere else.
    assert len(book._unwritten) == 1
    assert len(book._unconfirmed.increments) == 1


async def test_cancelled_caller_is_booked(book: Any, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(store, "settle", monkeypatch)
    tasks = [asyncio.create_task(book.book(cost(1)))]
    await gate.entered.wait()
    tasks += [asyncio.create_task(book.book(cost(2)))]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    gate.open.set()
    await asyncio.wait(tasks)
    await book.refresh(LINES)
    assert await state(store) == (3, 0, 0)


@pytest.mark.parametrize("moment", ["before its turn", "while it is written", "after"])
async def test_cancelled_caller_leaves_no_reservation(
    book: Any, store: Any, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    gate = Gate(store, "reserve", monkeypatch)
    leader = asyncio.create_task(book.reserve(claim("leader")))
    await gate.entered.wait()
    follower = asyncio.create_task(book.reserve(claim("follower")))
    await asyncio.sleep(0)
    gone = leader if moment == "while it is written" else follower
    if moment == "after":
        gate.open.set()
        while len(gate.calls) < 2:
            await asyncio.sleep(0)
    gone.cancel()
    gate.open.set()
    await asyncio.wait((leader, follower))
    await book.refresh(LINES)
    held = [task for task in (leader, follower) if not task.cancelled()]
    assert await state(store) == (0, 0, 10 * len(held))
    assert book._awaited == set()  # private: memory shows nowhere else


async def test_reservation_with_lost_response_is_released(book: Any, store: Any) -> None:
    store.deaf = True
    with pytest.raises(errors.StoreUnavailable):
        await book.reserve(claim("a"))
    assert await state(store) == (0, 0, 10)
    store.deaf = False
    await book.refresh(LINES)
    assert await state(store) == (0, 0, 0)


async def test_quota_status_has_local_bookings_and_store_usage(book: Any, store: Any) -> None:
    await book.refresh(LINES)
    await book.book(cost(5, 2))
    assert book.usage(NOVEMBER)[1:] == (5, 2, 0)
    store.away = True
    await book.book(cost(1))
    assert book.usage(NOVEMBER)[1:] == (6, 2, 0)
    await book.refresh(LINES)
    assert book.usage(NOVEMBER)[1:] == (6, 2, 0)


async def test_pending_bookings_are_written_on_close(book: Any, store: Any) -> None:
    store.away = True
    await book.book(cost(4))
    store.away = False
    await book.close()
    assert await state(store) == (4, 0, 0)


async def test_unwritten_usage_is_logged_on_close(book: Any, store: Any, log_output: io.StringIO) -> None:
    store.away = True
    await book.book(cost(4))
    await book.book(cost(2, 1))
    await book.close()
    (line,) = said(log_output, "usage booking failed")
    assert line["parts"] == {"demo 2023-11": 7}


async def test_limited_quota_account_is_refused_without_store(quotas: Quotas, store: Any) -> None:
    limited, free = accounts(parts=100), accounts(name="free")
    worker = quotas(limited, free)
    await worker.refresh()
    store.away = True
    with pytest.raises(errors.StoreUnavailable):
        await worker.reserve(limited, 3)
    await (await worker.reserve(free, 3)).settle(3)
    await worker.refresh()
    store.away = False
    await worker.refresh()
    assert await state(store) == (0, 0, 0)
    assert (await store.usage([LedgerEntry("free", "2023-11")]))[0].used == 3
    await worker.reserve(limited, 100)


async def test_unstored_exhausted_quota_applies_locally_and_is_stored_later(quotas: Quotas, store: Any) -> None:
    plan = accounts()
    worker = quotas(plan)
    held = await worker.reserve(plan, 3)
    store.away = True
    await held.release(errors.QuotaExhausted("used up"))
    with pytest.raises(errors.QuotaExhausted):
        await worker.reserve(plan, 3)
    store.away = False
    await worker.refresh()
    assert [closure.account for closure in await store.exhausted_quotas()] == ["demo"]
    with pytest.raises(errors.QuotaExhausted):
        await worker.reserve(plan, 3)


async def test_worker_can_start_before_its_store(quotas: Quotas, store: Any, log_output: io.StringIO) -> None:
    plan = accounts(parts=10)
    worker = quotas(plan)
    store.away = True
    await worker.start()
    with pytest.raises(errors.StoreUnavailable):
        await worker.reserve(plan, 3)
    store.away = False
    await worker.refresh()
    await (await worker.reserve(plan, 3)).settle(3)
    await worker.close()
    assert await state(store) == (3, 0, 0)


async def test_usage_that_is_lost_is_restored_and_usage_that_was_set_is_not(book: Any, store: Any) -> None:
    await book.book(cost(40))
    await book.refresh(LINES)
    for used in (25, 10):
        await store.set_usage(NOVEMBER, used)
        await book.refresh(LINES)
        assert (book.usage(NOVEMBER).used, await state(store)) == (used, (used, 0, 0))
    await store._change("DELETE FROM ledger")
    await store._change("DELETE FROM notes")
    await book.refresh(LINES)
    assert await state(store) == (10, 0, 0)
