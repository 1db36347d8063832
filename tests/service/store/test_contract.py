"""Contract of the store: the same tests for every implementation. Reservations, usage and results."""

import asyncio
import random
from collections.abc import Sequence

import pytest
from service.store.conftest import CACHE_BYTES, Opens
from support.store_client import BODY, FEATURES, NOVEMBER, SECONDS, Client, begin, finish, result

from proxy.kit.clock import ManualClock
from proxy.store import reservations
from proxy.store.protocol import (
    DAYS_KEPT,
    EMPTY_SECONDS,
    FRESH_SECONDS,
    LIFETIME,
    STORED_SECONDS,
    Account,
    Busy,
    Found,
    Hit,
    Refused,
    Reserved,
    Want,
)

DECEMBER = Account("erp", "2023-12", 100)
DAY = 86_400.0


def kinds(outcomes: Sequence[object]) -> list[type]:
    return [type(outcome) for outcome in outcomes]


async def test_want_is_reserved_then_busy_then_found(client: Client, time: ManualClock) -> None:
    assert await client.begin("a", "k") == Reserved(None)
    assert await client.begin("b", "k") == Busy()
    assert await client.counts() == (0, 0, 1)
    sent = result("k", "u", part_ids=("7",), details=b"facets")
    await client.finish("a", sent)
    found = await client.begin("c", "k")
    assert found == Found(sent._replace(fetched=found.result.fetched))
    assert abs(found.result.fetched - time.now()) < 1
    assert await client.counts() == (1, 0, 0)


async def test_quote_returns_what_begin_would_and_changes_nothing(client: Client) -> None:
    small = Account("erp", "2023-11", 1)
    for _ in range(2):
        outcomes = await client.quote("a", "b", accounts=(small,))
        assert outcomes == [Reserved(None), Refused(small, 0, 1)]
    assert await client.store.usage() == []
    await client.begin("x", "a")
    assert await client.quote("a") == Busy()


@pytest.mark.parametrize("end", [1, 3])
async def test_begins_that_do_not_fit_are_refused_in_their_order(client: Client, end: int) -> None:
    limited = Account("erp", "2023-11", 4)
    wants = [Want("a", end), Want("b", 4), Want("c", 1), Want("free", 9, 0)]
    outcomes = await client.begin("x", *wants, accounts=(limited,))
    assert outcomes == [Reserved(None), Refused(limited, 4 - end, end), Reserved(None), Reserved(None)]
    assert await client.counts() == (0, 0, end + 1)


async def test_every_account_limits_and_is_counted(client: Client) -> None:
    key, day = Account("key", LIFETIME, 2), Account("erp", "2023-11-30")
    accounts = (NOVEMBER, key, day)
    outcomes = await client.begin("x", "a", Want("b", 2), Want("c", 1, 1), accounts=accounts)
    assert outcomes == [Reserved(None), Refused(key, 1, 1), Reserved(None)]
    await client.finish("x a", accounts=accounts)
    await client.finish("x c", used=0, uncertain=1, accounts=accounts)
    assert [await client.counts(account) for account in accounts] == [(1, 1, 0)] * 3
    # Used and uncertain parts count as well as reserved ones; what is another account's does not.
    assert await client.begin("y", "a", accounts=(key,)) == Refused(key, 0, 0)
    assert await client.begin("z", "a", accounts=(Account("other", LIFETIME, 2),)) == Reserved(None)


async def test_begins_of_one_call_see_each_other(client: Client) -> None:
    one = Account("erp", "2023-11", 1)
    begins = [begin(id, key, time=client.time, accounts=(one,)) for id, key in (("x", "a"), ("y", "a"), ("z", "b"))]
    assert await client.store.begin(begins) == [Reserved(None), Busy(), Refused(one, 0, 1)]


async def test_begins_are_as_many_as_a_request_may_have(client: Client) -> None:
    *keys, last = [f"key {number}" for number in range(1_500)]
    limited = Account("erp", "2023-11", len(keys))
    outcomes = await client.begin("x", *keys, last, accounts=(limited,))
    assert outcomes == [Reserved(None)] * len(keys) + [Refused(limited, 0, len(keys))]
    await client.store.finish([finish(f"x {key}", result(key, key)) for key in keys])
    assert kinds(await client.quote(*keys)) == [Found] * len(keys)
    assert await client.counts() == (len(keys), 0, 0)


async def test_begin_that_is_sent_again_has_the_same_outcomes_and_reserves_nothing_more(client: Client) -> None:
    small = Account("erp", "2023-11", 5)
    await client.fetch(result("found", "u"))
    await client.begin("other", "busy")
    wants: list[Want | str] = ["found", "busy", Want("a", 2), Want("large", 9)]
    first = await client.begin("x", *wants, accounts=(small,))
    assert kinds(first) == [Found, Busy, Reserved, Refused]
    assert await client.begin("x", *wants, accounts=(small,)) == first
    assert await client.counts() == (1, 0, 3)
    await client.finish("other", result("a", "v", hits=2), used=0)
    assert await client.begin("x a", "a") == Reserved(await client.stored("a"))
    await client.finish("x a", used=2)
    assert await client.begin("x a", Want("a", 2)) == Busy()  # it has ended
    assert await client.counts() == (3, 0, 0)


async def test_begin_that_is_sent_again_has_nothing_fetched_beyond_what_it_reserves(client: Client) -> None:
    await client.fetch(result("a", "u", asked=1, hits=9))
    assert isinstance(await client.begin("x", Want("a", 4)), Reserved)
    await client.store.forget()
    assert await client.begin("x", Want("a", 4)) == Busy()  # all of 4 are missing now
    assert await client.counts() == (1, 0, 3)


async def test_finish_that_is_sent_again_changes_nothing(client: Client, time: ManualClock) -> None:
    await client.begin("x", Want("a", 3))
    for _ in range(2):
        await client.finish("x", result("a", "u"), used=2, uncertain=1)
    assert await client.counts() == (2, 1, 0)
    time.advance(DAY)
    await client.store.sweep()
    await client.finish("x", result("a", "u"), used=2, uncertain=1, is_repeated=True)
    assert await client.counts() == (2, 1, 0)


@pytest.mark.parametrize("seconds, known", [(SECONDS, 60.0), (600.0, 600.0)])
async def test_end_of_a_reservation_is_known_for_a_while(
    client: Client, time: ManualClock, seconds: float, known: float
) -> None:
    await client.begin("x", "a", seconds=seconds)
    await client.finish("x")
    for later, outcome in ((known - 1, Busy()), (1.0, Reserved(None))):
        time.advance(later)
        await client.store.sweep()
        assert await client.begin("x", "a") == outcome


async def test_finish_without_its_begin_books_once_and_stores_nothing(client: Client) -> None:
    for _ in range(2):
        await client.finish("lost", result("a", "u"), used=2, uncertain=1)
    assert await client.counts() == (2, 1, 0)
    assert await client.stored("a") is None


async def test_begin_whose_confirmation_was_lost_is_ended_without_usage(client: Client) -> None:
    await client.begin("x", "a")
    await client.finish("x", used=0)
    assert await client.store.usage() == []
    assert await client.begin("y", "a") == Reserved(None)


async def test_reservation_past_its_deadline_is_uncertain_until_its_late_finish(
    client: Client, time: ManualClock
) -> None:
    await client.begin("x", Want("a", 3), "b")
    time.advance(SECONDS - 1)
    await client.store.sweep()
    assert await client.counts() == (0, 0, 4)
    time.advance(1)
    await client.store.sweep()
    assert await client.counts() == (0, 4, 0)
    assert await client.begin("y", "a") == Reserved(None)
    await client.begin("z", "c")
    for _ in range(2):
        await client.finish("x a", result("a", "u"), result("c", "w"), used=2)
        await client.finish("x b", result("b", "v"), result("d", "v"), used=0)
        await client.store.sweep()
    assert await client.counts() == (2, 0, 2)
    # Only the keys that nobody has reserved since are stored.
    assert await client.quote("a") == await client.quote("c") == Busy()
    assert await client.stored("b")
    assert await client.stored("d") is None
    await client.finish("y", result("a", "newer"))
    assert await client.counts() == (3, 0, 1)


async def test_late_finish_stores_no_key_that_another_has_fetched_since(client: Client, time: ManualClock) -> None:
    await client.begin("x", "a")
    time.advance(SECONDS)
    await client.store.sweep()
    await client.fetch(result("a", "newer"))
    await client.finish("x", result("a", "older"))
    stored = await client.found("a")
    assert stored.items[0].uid == "newer"


async def test_uncertain_parts_fall_to_what_comes_when_their_key_is_fetched_again(client: Client) -> None:
    for id in ("killed", "killed again"):
        await client.begin(id, Want("a", 5))
        await client.store.end_worker(None)
    assert await client.counts() == (0, 10, 0)
    await client.begin("failed", Want("a", 5))
    await client.finish("failed", used=0)
    await client.begin("other", "b")
    await client.finish("other", result("b", "u"))
    assert await client.counts() == (1, 10, 0)
    await client.begin("fetched", Want("a", 5))
    await client.finish("fetched", result("a", "u", "v", asked=5), used=2)
    assert await client.counts() == (3, 4, 0)
    # Those that come late after all are booked as they are.
    await client.finish("killed", used=2)
    await client.finish("killed again", used=0)
    assert await client.counts() == (5, 0, 0)


@pytest.mark.parametrize(
    "end, hits, seconds, used, uncertain",
    [(5, 9, 0, 2, 2), (6, 9, 0, 2, 2), (4, 9, 0, 2, 5), (4, 3, 0, 2, 2), (9, 9, 0, 7, 5), (5, 9, DAY, 2, 5)],
)
async def test_uncertain_parts_fall_only_if_no_less_is_fetched_in_a_day(
    client: Client, time: ManualClock, end: int, hits: int, seconds: float, used: int, uncertain: int
) -> None:
    """Less is enough if it has the end of the list."""
    await client.begin("killed", Want("a", 5))
    await client.store.end_worker(None)
    time.advance(SECONDS + seconds)
    await client.begin("fetched", Want("a", end))
    await client.finish("fetched", result("a", "u", "v", asked=end, hits=hits), used=used)
    assert await client.counts() == (used, uncertain, 0)


async def test_uncertain_parts_stay_where_only_the_rest_of_their_list_is_fetched(client: Client) -> None:
    await client.fetch(result("a", "u", asked=1, hits=3))
    await client.begin("killed", Want("a", 3), features=0b111)
    await client.store.end_worker(None)
    assert isinstance(await client.begin("fetched", Want("a", 5)), Reserved)
    await client.finish("fetched", result("a", "u", "v", "w", asked=5), used=2)
    assert await client.counts() == (3, 3, 0)


@pytest.mark.parametrize("used", [0, 1])
async def test_uncertain_parts_stay_where_their_list_has_moved(client: Client, time: ManualClock, used: int) -> None:
    await client.fetch(result("a", "u", asked=1, hits=9))
    await client.begin("killed", Want("a", 4))
    await client.store.end_worker(None)
    await client.begin("moved", Want("a", 4))
    await client.finish("moved", used=used)
    assert await client.counts() == (1 + used, 3, 0)
    await client.begin("anew", Want("a", 4), fresh_from=time.now() + 1)
    await client.finish("anew", result("a", "v", "w", asked=4), used=2)
    assert await client.counts() == (3 + used, 3, 0)


async def test_result_may_answer_another_key_than_was_reserved(client: Client) -> None:
    await client.begin("x", "a")
    await client.finish("x", result("a", "u"), result("b", "u"))
    assert isinstance(await client.begin("y", "b"), Found)


@pytest.mark.parametrize("days", [1, 20])
async def test_row_of_an_expired_reservation_stays_until_its_period_ends(
    client: Client, time: ManualClock, days: int
) -> None:
    time.advance(-28 * DAY)
    await client.begin("x", "a")
    for seconds in (SECONDS, days * DAY):
        time.advance(seconds)
        await client.store.sweep()
    await client.finish("x")
    assert await client.counts() == (1, 0, 0)


async def test_finish_in_another_month_counts_in_both(client: Client, time: ManualClock) -> None:
    always, today, tomorrow = (Account("erp", period) for period in (LIFETIME, "2023-11-30", "2023-12-01"))
    await client.begin("x", Want("a", 5), accounts=(NOVEMBER, always, today))
    await client.finish("x", used=3, uncertain=1, accounts=(DECEMBER, always, tomorrow))
    assert [await client.counts(account) for account in (NOVEMBER, DECEMBER)] == [(0, 4, 0), (3, 1, 0)]
    assert [await client.counts(account) for account in (today, tomorrow)] == [(0, 4, 0), (3, 1, 0)]
    assert await client.counts(always) == (3, 1, 0)


async def test_set_usage_replaces_used_and_ends_uncertain_parts(client: Client, time: ManualClock) -> None:
    both = NOVEMBER, Account("key", "2023-11")
    await client.begin("late", Want("a", 4), accounts=both)
    time.advance(SECONDS)
    await client.store.sweep()
    await client.begin("open", Want("b", 2))
    await client.store.set_usage(NOVEMBER, 50)
    assert await client.counts() == (50, 0, 2)
    await client.begin("next", Want("c", 6))
    await client.store.end_worker("worker 1")
    assert await client.counts() == (50, 8, 0)
    # What the portal has replaced is not taken off again.
    await client.finish("late", used=3, accounts=both)
    assert await client.counts() == (53, 8, 0)
    assert await client.counts(both[1]) == (3, 0, 0)


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_what_processes_do_at_once_is_done_once(open_client: Opens) -> None:
    clients = [await open_client() for _ in range(4)]
    small = Account("erp", "2023-11", 3)
    begins = (client.begin(str(number), "a", str(number), accounts=(small,)) for number, client in enumerate(clients))
    common, own = zip(*await asyncio.gather(*begins), strict=True)
    assert sorted(map(str, kinds(common))) == sorted(map(str, [Reserved, Busy, Busy, Busy]))
    assert kinds(own).count(Reserved) == 2
    assert await clients[0].counts() == (0, 0, 3)
    ids = [f"{number} {key}" for number in range(4) for key in ("a", number)]
    await asyncio.gather(*(client.finish(id) for client in clients for id in ids))
    assert await clients[0].counts() == (8, 0, 0)
    leases = (client.store.put_value("lease", str(client), 9, instead=[None]) for client in clients)
    kept = await asyncio.gather(*leases)
    assert kept.count(True) == 1


async def test_results_are_those_of_a_scope(client: Client) -> None:
    await client.fetch(result("a", "u"))
    assert await client.begin("x", "a", scope="other") == Reserved(None)
    await client.finish("x", result("a", "v"), scope="other")
    stored = [await client.found("a", scope=scope) for scope in ("scope", "other")]
    assert [found.items[0].uid for found in stored] == ["u", "v"]


@pytest.mark.parametrize("features, is_found", [(0b01, True), (FEATURES, True), (0b111, False), (0b100, False)])
async def test_part_serves_features_within_its_own(client: Client, features: int, is_found: bool) -> None:
    await client.fetch(result("a", "u"))
    assert bool(await client.stored("a", features=features)) == is_found
    assert bool(await client.stored(Want("b", 1, part="u"), features=features)) == is_found


@pytest.mark.parametrize(
    "features, seconds, is_replaced",
    [
        (FEATURES, 1, True),
        (FEATURES, -1, False),
        (0b111, 1, True),
        (0b01, 1, False),
        (0b111, -100, True),
        (0b101, 1, True),
        (0b01, FRESH_SECONDS + 1, True),
    ],
)
async def test_part_is_replaced_only_by_one_with_no_fewer_fields(
    client: Client, time: ManualClock, features: int, seconds: float, is_replaced: bool
) -> None:
    await client.fetch(result("a", "u", body=b"old"))
    fetched = time.now() + seconds
    time.advance(max(seconds, 0))
    await client.fetch(result("b", "u", body=b"new", fetched=fetched), features=features)
    stored = await client.found("b", features=features)
    assert stored.bodies == ((b"new",) if is_replaced else (b"old",))


async def test_result_is_found_only_with_all_its_parts(client: Client, time: ManualClock) -> None:
    await client.fetch(result("list", "u", "v", asked=2))
    await client.fetch(result("other", "v"), features=0b101)
    assert await client.stored(Want("list", 2)) is None
    await client.fetch(result("again", "v"))
    stored = await client.found(Want("list", 2))
    assert [hit.uid for hit in stored.items] == ["u", "v"]


async def test_results_are_found_while_fresh(client: Client, time: ManualClock) -> None:
    await client.fetch(result("part", "u"), result("empty"), result("document", details=b"{}"))
    time.advance(-1)
    assert await client.stored("part") is None
    time.advance(EMPTY_SECONDS + 2)
    assert await client.stored("part")
    assert await client.stored("document")
    assert await client.stored("empty") is None
    assert await client.stored("part", fresh_from=time.now()) is None
    time.advance(FRESH_SECONDS)
    assert await client.stored("part") is None
    # As long as the upstream fails, it may be served stale.
    assert await client.stored("part", fresh_from=time.now() - STORED_SECONDS)
    time.advance(STORED_SECONDS - FRESH_SECONDS)
    await client.store.sweep()
    assert await client.stored("part", fresh_from=0.0) is None


async def test_result_is_as_old_as_its_oldest_part(client: Client, time: ManualClock) -> None:
    now = time.now()
    await client.fetch(result("a", "u", fetched=now - 100), result("b", "v", fetched=now + 100))
    stored = [await client.found(key) for key in ("a", "b")]
    assert [found.fetched for found in stored] == pytest.approx([now - 100, now], abs=1)


async def test_result_is_deleted_a_day_after_its_oldest_part(client: Client, time: ManualClock) -> None:
    await client.fetch(result("a", details=b"{}", fetched=time.now() - 100))
    time.advance(STORED_SECONDS - 100)
    await client.store.sweep()
    assert await client.stored("a", fresh_from=0.0) is None


@pytest.mark.parametrize("want", [Want("by uid", 1, part="u"), Want("by id", 1, part="7")])
async def test_part_is_found_by_uid_and_id_whatever_it_came_with(client: Client, time: ManualClock, want: Want) -> None:
    await client.fetch(result("list", "t", "u", asked=2, part_ids=("6", "7")))
    stored = await client.found(want)
    assert (stored.key, stored.hits, stored.items, stored.bodies) == (want.key, 1, (Hit("u"),), (BODY,))
    assert await client.stored(want, scope="other") is None
    assert await client.stored(want, fresh_from=time.now() + 1) is None


async def test_beginning_of_a_list_is_served_and_its_rest_reserved(client: Client) -> None:
    await client.fetch(result("list", "t", "u", asked=2, hits=9))
    stored = await client.found(Want("list", 1))
    assert stored == await client.stored(Want("list", 2))
    assert await client.begin("x", Want("list", 5, 2)) == Reserved(stored)
    assert await client.counts() == (1, 0, 6)
    await client.finish("x", result("list", "t", "u", "v", asked=5, hits=3, fetched=stored.fetched))
    found = await client.found(Want("list", 50))  # there are no more than 3
    assert [hit.uid for hit in found.items] == ["t", "u", "v"]


@pytest.mark.parametrize("has_part", [True, False])
async def test_bytes_are_bounded_and_the_oldest_go(client: Client, time: ManualClock, has_part: bool) -> None:
    body = random.randbytes(CACHE_BYTES // 20)
    for number in range(60):
        time.advance(1)
        one = result(str(number), f"u{number}", body=body) if has_part else result(str(number), details=body)
        await client.fetch(one)
        assert await client.store.parts() <= 20
    found = [number for number in range(60) if await client.stored(str(number))]
    assert found == list(range(60 - len(found), 60))
    assert 5 < len(found) <= 20


async def test_result_that_is_too_large_is_booked_beside_one_that_is_stored(client: Client) -> None:
    await client.begin("x", "large")
    await client.finish("x", result("large", "u", body=random.randbytes(CACHE_BYTES * 2)), result("small", "v"), used=2)
    assert await client.counts() == (2, 0, 0)
    assert [bool(await client.stored(key)) for key in ("large", "small")] == [False, True]


async def test_forgetting_deletes_results_and_parts_and_is_counted(client: Client, time: ManualClock) -> None:
    await client.fetch(result("a", "u", "v", asked=2), result("empty"))
    await client.fetch(result("b", "w"), scope="other")
    before = await client.store.values(["forgotten"])
    assert await client.store.parts() == await client.store.forget() == 3
    wants = ("a", "scope"), ("empty", "scope"), ("b", "other"), (Want("c", 1, part="w"), "other")
    assert not any([await client.stored(key, scope=scope) for key, scope in wants])
    between = await client.store.values(["forgotten"])
    assert await client.store.forget() == 0
    assert len({*before, *between, *await client.store.values(["forgotten"])}) == 3
    assert await client.counts() == (3, 0, 0)


async def test_results_of_scopes_that_begin_alike_are_counted_and_forgotten(client: Client) -> None:
    for scope in ("a US", "a DE", "b US"):
        await client.fetch(result("k", "u"), scope=scope)
    assert [await client.store.parts(scopes) for scopes in ("a ", "b", "x", "")] == [2, 1, 0, 3]
    assert [await client.store.forget("x"), await client.store.forget("a "), await client.store.parts()] == [0, 2, 1]
    assert [bool(await client.stored("k", scope=scope)) for scope in ("a US", "a DE", "b US")] == [False, False, True]


async def test_forgetting_frees_no_key_that_is_busy(client: Client, time: ManualClock) -> None:
    await client.begin("x", "a")
    time.advance(2 * DAY)  # and no process has swept
    await client.store.forget()
    assert await client.quote("a") == Busy()


async def test_days_end_and_months_and_lifetimes_do_not(client: Client, time: ManualClock) -> None:
    accounts = [Account("erp", period) for period in ("2023-11-30", "2023-11", LIFETIME)]
    for account in accounts:
        await client.store.set_usage(account, 7)
    time.advance(DAYS_KEPT * DAY)
    await client.store.sweep()
    assert len(await client.store.usage()) == 3
    time.advance(DAY)
    await client.store.sweep()
    assert {row.period for row in await client.store.usage()} == {"2023-11", LIFETIME}


async def test_sweep_is_many_short_transactions(
    client: Client, time: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What there is to sweep grows with requests, and others wait for a transaction."""
    monkeypatch.setattr(reservations, "SWEPT", 2)
    keys = "abcdefghij"
    await client.fetch(*(result(key, key) for key in keys))
    time.advance(STORED_SECONDS)
    await client.begin("x", *keys)
    for key in keys[:5]:
        await client.finish(f"x {key}")
    time.advance(60)
    sweeping, steps = asyncio.create_task(client.store.sweep()), 0
    while not sweeping.done():
        await asyncio.sleep(0)
        steps += 1
    assert steps > len(keys) // 2
    assert await client.counts() == (15, 5, 0)
    assert await client.store.parts() == 0
    assert await client.begin("x", *keys[:5]) == [Reserved(None)] * 5  # nothing of them is known


@pytest.mark.parametrize("seconds", [-7 * DAY, 7 * DAY])
async def test_clock_that_jumps_loses_no_booking(client: Client, time: ManualClock, seconds: float) -> None:
    await client.fetch(result("a", "u"))
    await client.begin("x", "b")
    time.advance(seconds)
    await client.store.sweep()
    await client.finish("x", result("b", "v"))
    assert await client.counts() == (2, 0, 0)
    assert await client.stored("a") is None  # too old, or from the future
    assert await client.store.parts() == 1
    await client.fetch(result("a", "w"))
    assert await client.stored("a")
    await client.store.sweep()
    assert await client.stored("a")
