"""Tests of the store protocol (proxy/stores/protocols.py) with memory, SQLite and a real Redis."""

import asyncio
from typing import Any

from proxy.kit import clock, windows
from proxy.stores.protocols import (
    USAGE_SET,
    EntryUsage,
    ExhaustedQuota,
    LedgerEntry,
    QuotaLimit,
    ReservationRecord,
    Settlement,
    Store,
    UsageIncrement,
)

NOVEMBER = LedgerEntry("demo", "2023-11")
ERP = LedgerEntry("demo/erp", "2023-11")
SECOND, MINUTE = windows.Window(2, 1.0), windows.Window(3, 60.0)


def claim(name: Any, parts: Any, *budgets: Any, owner: str = "worker", lines: Any = ()) -> Any:
    held = tuple(QuotaLimit(line, limit) for line, limit in budgets or ((NOVEMBER, 100),))
    return ReservationRecord(name, owner, parts, held, lines or tuple(budget.entry for budget in held))


def settlement(sequence: Any, *bookings: Any, claims: Any = (), owner: str = "worker") -> Any:
    return Settlement(owner, sequence, tuple(claims), tuple(UsageIncrement(*booking) for booking in bookings))


async def counts(store: Any, line: Any = NOVEMBER) -> Any:
    """Used, doubtful, reserved."""
    (state,) = await store.usage([line])
    assert state.entry == line
    return state[1:]


async def test_reservations_are_accepted_within_their_limits(store: Store) -> None:
    assert await store.reserve([claim("a", 60), claim("b", 40), claim("c", 1)]) == [None, None, NOVEMBER]
    assert await counts(store) == (0, 0, 100)


async def test_reservation_applies_to_all_its_limits_or_none(store: Store) -> None:
    small = claim("a", 30, (NOVEMBER, 100), (ERP, 50))
    assert await store.reserve([small, small._replace(id="b")]) == [None, ERP]
    assert await store.reserve([claim("c", 70)]) == [None]
    assert await store.reserve([claim("d", 20, (NOVEMBER, 100), (ERP, 50))]) == [NOVEMBER]
    assert (await counts(store), await counts(store, ERP)) == ((0, 0, 100), (0, 0, 30))


async def test_repeated_reservation_counts_once(store: Store) -> None:
    assert await store.reserve([claim("a", 60)]) == [None]
    assert await store.reserve([claim("a", 60)]) == [None]
    assert await counts(store) == (0, 0, 60)


async def test_usage_and_uncertain_usage_reduce_the_remaining_quota(store: Store) -> None:
    await store.settle(settlement(1, (NOVEMBER, 50, 20)))
    assert await store.reserve([claim("a", 31), claim("b", 30)]) == [NOVEMBER, None]


async def test_settlement_releases_reservations_and_books_every_entry(store: Store) -> None:
    await store.reserve([claim("a", 60), claim("b", 30), claim("c", 10)])
    await store.settle(settlement(1, (NOVEMBER, 7, 0), (ERP, 7, 0), claims="ab"))
    await store.settle(settlement(2, (NOVEMBER, 2, 5), claims=["none such"]))
    assert (await counts(store), await counts(store, ERP)) == ((9, 5, 10), (7, 0, 0))


async def test_repeated_settlement_is_booked_once(store: Store) -> None:
    await store.reserve([claim("a", 60)])
    first, second = settlement(1, (NOVEMBER, 7, 0)), settlement(2, (NOVEMBER, 1, 0), claims="a")
    for sent in (first, first, second, first, second):
        await store.settle(sent)
    await store.settle(settlement(1, (NOVEMBER, 20, 0), owner="another"))
    assert await counts(store) == (28, 0, 0)


async def test_used_parts_are_raised_to_a_number(store: Store) -> None:
    await store.settle(settlement(1, (NOVEMBER, 7, 9)))
    for used in (12, 3):
        await store.raise_used(NOVEMBER, used)
        assert await counts(store) == (12, 9, 0)
    await store.raise_used(ERP, 3)
    assert await counts(store, ERP) == (3, 0, 0)


async def test_set_usage_replaces_it_and_ends_what_is_uncertain_or_exhausted(
    store: Store, manual_clock: clock.ManualClock
) -> None:
    await store.settle(settlement(1, (NOVEMBER, 7, 9), (ERP, 7, 9)))
    await store.mark_exhausted(ExhaustedQuota(NOVEMBER.account, manual_clock.now() + 99, "no more"))
    marks = []
    for used in (12, 3):
        await store.set_usage(NOVEMBER, used)
        assert (await counts(store), await counts(store, ERP)) == ((used, 0, 0), (7, 9, 0))
        assert await store.exhausted_quotas() == []
        marks.append((await store.notes(USAGE_SET))[f"{NOVEMBER.account} {NOVEMBER.period}"])
    assert marks[0] != marks[1]


async def test_reservations_of_an_expired_lease_become_uncertain_usage(
    store: Store, manual_clock: clock.ManualClock
) -> None:
    await store.heartbeat("dead", 10)
    await store.heartbeat("worker", 10)
    await store.reserve([claim("a", 60, owner="dead", lines=(NOVEMBER, ERP)), claim("b", 30)])
    manual_clock.advance(9)
    await store.heartbeat("worker", 10)
    assert await counts(store) == (0, 0, 90)
    manual_clock.advance(1)
    for _ in range(2):
        await store.heartbeat("worker", 10)
        assert (await counts(store), await counts(store, ERP)) == ((0, 60, 30), (0, 60, 0))
    assert await store.reserve([claim("c", 11), claim("d", 10)]) == [NOVEMBER, None]


async def test_uncertain_usage_counts_until_it_is_set(store: Store, manual_clock: clock.ManualClock) -> None:
    await store.heartbeat("dead", 10)
    await store.reserve([claim("a", 60, owner="dead"), claim("b", 7, owner="dead")])
    manual_clock.advance(8 * 86_400)
    for _ in range(2):
        await store.heartbeat("worker", 10)
        manual_clock.advance(8 * 86_400)
    assert await counts(store) == (0, 67, 0)
    await store.set_usage(NOVEMBER, 5)
    assert await counts(store) == (5, 0, 0)


async def test_unlimited_reservation_becomes_uncertain_usage_of_a_dead_owner(
    store: Store, manual_clock: clock.ManualClock
) -> None:
    record = claim("a", 200, owner="dead", lines=(NOVEMBER,))._replace(limits=())
    await store.heartbeat("dead", 10)
    assert await store.reserve([record, record, record._replace(id="b", parts=3)]) == [None, None, None]
    assert await counts(store) == (0, 0, 0)
    await store.settle(settlement(1, (NOVEMBER, 2, 0), claims="b", owner="dead"))
    manual_clock.advance(10)
    await store.heartbeat("worker", 10)
    assert await counts(store) == (2, 200, 0)


async def test_store_reports_whether_it_is_writable(store: Store) -> None:
    await store.check_writable()
    assert await store.all_usage() == []


async def test_owner_with_an_expired_lease_books_once(store: Store, manual_clock: clock.ManualClock) -> None:
    await store.heartbeat("slow", 10)
    await store.reserve([claim("a", 60, owner="slow")])
    await store.settle(settlement(1, (NOVEMBER, 1, 0), owner="slow"))
    await store.settle(settlement(1, (NOVEMBER, 0, 8), (ERP, 0, 9)))
    manual_clock.advance(60)
    await store.heartbeat("worker", 10)
    assert await counts(store) == (1, 68, 0)
    for _ in range(2):
        await store.settle(settlement(1, (NOVEMBER, 1, 0), owner="slow"))
        await store.settle(settlement(2, (NOVEMBER, 5, 0), claims="a", owner="slow"))
    assert (await counts(store), await counts(store, ERP)) == ((6, 8, 0), (0, 9, 0))


async def test_states_are_returned_in_requested_order(store: Store) -> None:
    await store.settle(settlement(1, (ERP, 3, 1)))
    assert await store.usage([NOVEMBER, ERP]) == [EntryUsage(NOVEMBER, 0, 0, 0), EntryUsage(ERP, 3, 1, 0)]
    assert await store.usage([]) == []


async def test_usage_has_every_booked_entry(store: Store) -> None:
    assert await store.all_usage() == []
    day = LedgerEntry("demo", "2023-11-14")
    await store.settle(settlement(1, (ERP, 3, 0), (NOVEMBER, 3, 1), (day, 3, 1)))
    await store.reserve([claim("a", 5)])
    assert await store.all_usage() == [
        EntryUsage(NOVEMBER, 3, 1, 5),
        EntryUsage(day, 3, 1, 0),
        EntryUsage(ERP, 3, 0, 0),
    ]


async def test_only_old_days_and_months_are_pruned(store: Store) -> None:
    lines = [
        LedgerEntry(account, period)
        for account in ("demo", "demo/erp of the shop", "other")
        for period in ("2021-07", "2023-09", "2023-10", "2023-11", "2023-10-31", "2023-11-02", "2023-11-14", "lifetime")
    ]
    await store.settle(settlement(1, *((line, 7, 1) for line in lines if line.account != "other")))
    await store.settle(
        settlement(2, (LedgerEntry("other", "2019-02"), 7, 1), (LedgerEntry("other", "2019-02-01"), 7, 1))
    )
    await store.prune(days=2, months=3)
    kept = [line for line in lines if line.account != "other" and line.period not in ("2021-07", "2023-10-31")]
    kept += [LedgerEntry("other", "2019-02"), LedgerEntry("other", "2019-02-01")]
    assert await store.all_usage() == [EntryUsage(line, 7, 1, 0) for line in sorted(kept)]
    assert await store.usage([LedgerEntry("demo", "2021-07")]) == [EntryUsage(LedgerEntry("demo", "2021-07"), 0, 0, 0)]
    await store.prune(days=2, months=3)
    assert len(await store.all_usage()) == len(kept)


async def test_entry_with_reservations_is_not_pruned(store: Store) -> None:
    await store.settle(settlement(1, (NOVEMBER, 7, 0), (LedgerEntry("demo", "2023-12"), 1, 0)))
    await store.reserve([claim("a", 5)])
    await store.prune(days=1, months=1)
    assert await counts(store) == (7, 0, 5)
    await store.settle(settlement(2, (NOVEMBER, 2, 0), claims="a"))
    assert await counts(store) == (9, 0, 0)
    await store.prune(days=1, months=1)
    assert await counts(store) == (0, 0, 0)


async def test_exhausted_quota_lasts_until_its_end_or_reopening(store: Store, manual_clock: clock.ManualClock) -> None:
    first = ExhaustedQuota("demo", manual_clock.now() + 10, "You have exceeded your part limit of 3.")
    later = first._replace(until=manual_clock.now() + 20)
    other = ExhaustedQuota("other", manual_clock.now() + 90, "spent")
    for closure in (first, later, other):
        await store.mark_exhausted(closure)
    assert sorted(await store.exhausted_quotas()) == [later, other]
    await store.clear_exhausted("other")
    await store.clear_exhausted("none such")
    assert await store.exhausted_quotas() == [later]
    manual_clock.advance(20)
    assert await store.exhausted_quotas() == []


async def test_numbers_beyond_32_bits_are_exact(store: Store) -> None:
    big = 10**12
    await store.settle(settlement(1, (NOVEMBER, big, 0)))
    await store.settle(settlement(2, (NOVEMBER, 1, 0)))
    await store.raise_used(ERP, big + 1)
    assert await counts(store) == (big + 1, 0, 0)
    assert await counts(store, ERP) == (big + 1, 0, 0)
    assert await store.reserve([claim("a", 9, (NOVEMBER, big + 10)), claim("b", 1, (NOVEMBER, big + 10))]) == [
        None,
        NOVEMBER,
    ]


async def test_concurrent_callers_never_exceed_a_limit(store: Store) -> None:
    answers = await asyncio.gather(*(store.reserve([claim(str(number), 7)]) for number in range(40)))
    assert [answer for (answer,) in answers].count(None) == 14
    assert await counts(store) == (0, 0, 98)


async def test_last_note_of_an_owner_is_stored_per_kind(store: Store) -> None:
    assert await store.notes("features") == {}
    for owner, text in (("one", "first"), ("two", "Ω \x00 é"), ("one", "second")):
        await store.put_note("features", owner, text)
    await store.put_note("other", "one", "apart")
    assert await store.notes("features") == {"one": "second", "two": "Ω \x00 é"}
    await store.drop_note("features", "two")
    await store.drop_note("features", "nobody")
    assert await store.notes("features") == {"one": "second"}
    assert await store.notes("other") == {"one": "apart"}
    await store.put_note("features", "one", "")
    assert await store.notes("features") == {"one": ""}
