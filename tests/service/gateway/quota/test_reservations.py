"""Tests of reservations: reserve, settle, release; limits over workers, months and lifetimes (graphql.md §6)."""

import asyncio
import io
from typing import Any

import pytest
from service.gateway.conftest import accounts
from service.gateway.quota.conftest import DECEMBER, TO_DECEMBER, Quotas, refused, state

from proxy import config, errors
from proxy.gateway.quota import reservations, usage
from proxy.kit import clock
from proxy.model import QuotaStatus
from proxy.stores.protocols import LedgerEntry
from proxy.telemetry import metrics


async def test_request_reserves_its_maximum_and_settles_actual_usage(worker: Any, small_plan: Any, store: Any) -> None:
    one, other = await worker.reserve(small_plan, 60), await worker.reserve(small_plan, 40)
    assert await state(store) == (0, 0, 100)
    await one.settle(7)
    await other.settle(0)
    assert await state(store) == (7, 0, 0)


async def test_parts_are_booked_per_day_month_and_lifetime_of_application_and_key(
    worker: Any, small_plan: Any, store: Any
) -> None:
    await (await worker.reserve(small_plan, 60)).settle(7)
    periods = ("2023-11", "2023-11-14", "lifetime")
    assert [(each.entry, each.used) for each in await store.all_usage()] == [
        (LedgerEntry(account, period), 7) for account in ("demo", "demo/erp") for period in periods
    ]


async def test_quota_reserved_by_requests_in_flight_is_retried_soon(worker: Any, small_plan: Any) -> None:
    held = await worker.reserve(small_plan, 60)
    error = await refused(worker, small_plan, 41)
    assert (error.retry_after, "held by requests under way" in error.message) == (1, True)
    await held.settle(3)
    await worker.reserve(small_plan, 97)


async def test_exhausted_quota_is_refused_without_the_store(worker: Any, small_plan: Any, store: Any) -> None:
    await (await worker.reserve(small_plan, 100)).settle(100)
    store.operations.clear()
    for _ in range(3):
        await refused(worker, small_plan)
    assert store.operations == []


async def test_request_across_months_is_booked_in_the_month_of_its_end(
    worker: Any, small_plan: Any, store: Any, time: clock.ManualClock
) -> None:
    held = await worker.reserve(small_plan, 60)
    time.advance(TO_DECEMBER)
    await held.settle(5)
    assert (await state(store), await state(store, DECEMBER)) == ((0, 0, 0), (5, 0, 0))


async def test_lifetime_quota_is_never_reset(quotas: Quotas, store: Any, time: clock.ManualClock) -> None:
    plan = accounts(parts=100, period="lifetime")
    worker = quotas(plan)
    await (await worker.reserve(plan, 100)).settle(100)
    time.advance(TO_DECEMBER)
    await worker.refresh()
    error = await refused(worker, plan)
    assert error.retry_after == 86_400
    assert "(lifetime)" in error.message
    assert worker.status(plan) == QuotaStatus(100, 100, None)


async def test_limits_during_a_reload_are_those_of_each_configuration(quotas: Quotas) -> None:
    """Requests that began before it have the old limit; gauges show the new one."""
    old, new = accounts(parts=100), accounts(parts=50)
    worker = quotas(old)
    await worker.track([new])
    await (await worker.reserve(old, 60)).settle(30)
    assert (worker.status(old).limit, worker.status(new).limit) == (100, 50)
    assert (await refused(worker, new, 60)).message.startswith("demo has 20 of 50 parts left")
    await (await worker.reserve(old, 60)).settle(0)
    await worker.refresh()
    assert gauges(worker)["remaining"] == {"demo": 20}
    assert {account.limit for account, _ in worker.usages()} == {50, None}


async def test_api_key_may_be_limited_in_an_unlimited_application(quotas: Quotas, store: Any) -> None:
    plan = accounts(own=5)
    worker = quotas(plan)
    await (await worker.reserve(plan, 5)).settle(5)
    assert (await refused(worker, plan)).message.startswith("demo/erp has 0 of 5")


async def test_unlimited_quota_account_is_booked_without_reservation(quotas: Quotas, store: Any) -> None:
    plan = accounts()
    worker = quotas(plan)
    held = await worker.reserve(plan, 10**9)
    assert store.operations == ["reserve"]
    await held.settle(7)
    assert store.operations == ["reserve", "settle"]
    assert await state(store) == (7, 0, 0)


async def test_free_request_is_neither_reserved_nor_booked(worker: Any, small_plan: Any, store: Any) -> None:
    await (await worker.reserve(small_plan, 100)).settle(100)
    store.operations.clear()
    await (await worker.reserve(small_plan, 0)).settle(0)
    assert store.operations == []


@pytest.mark.parametrize(
    "error,doubtful",
    [
        (errors.UpstreamUnreachable("no connection"), 0),
        (errors.UpstreamUnreachable("no answer in time", may_be_billed=True), 60),
        (errors.UpstreamUnreadable("a cut answer", may_be_billed=True), 60),
        (errors.QueryRefused("no such seller"), 0),
        (errors.TooManyRequests("slow down"), 0),
        (errors.TokenLimit("no token"), 0),
        (asyncio.CancelledError(), 60),
        (TimeoutError(), 60),
        (ValueError("a mistake of ours"), 60),
    ],
)
async def test_failed_request_is_released_or_becomes_uncertain_usage(
    worker: Any, small_plan: Any, store: Any, error: Any, doubtful: int
) -> None:
    await (await worker.reserve(small_plan, 60)).release(error)
    assert await state(store) == (0, doubtful, 0)


async def test_uncertain_usage_counts_against_the_limit(worker: Any, small_plan: Any) -> None:
    await (await worker.reserve(small_plan, 60)).release(TimeoutError())
    assert (await refused(worker, small_plan, 41)).message.startswith("demo has 40 of 100 parts left")
    assert worker.status(small_plan).used == 60


async def test_reservation_is_settled_once(worker: Any, small_plan: Any, store: Any) -> None:
    held = await worker.reserve(small_plan, 60)
    await held.settle(7)
    await held.release(TimeoutError())
    await held.settle(7)
    assert await state(store) == (7, 0, 0)


async def test_workers_together_stay_within_the_limit(quotas: Quotas, small_plan: Any, store: Any) -> None:
    workers = [quotas(small_plan, owner=name) for name in ("one", "other")]
    for each in workers:
        await each.refresh()

    async def spend(each: Any) -> Any:
        try:
            held = await each.reserve(small_plan, 7)
        except errors.QuotaExhausted:
            return 0
        await asyncio.sleep(0)
        await held.settle(5)
        return 5

    spent = await asyncio.gather(*(spend(workers[number % 2]) for number in range(60)))
    used, doubtful, reserved = await state(store)
    assert (used, doubtful, reserved) == (sum(spent), 0, 0)
    assert 0 < used <= 100


async def test_reservations_of_a_dead_worker_become_uncertain_usage(
    quotas: Quotas, small_plan: Any, store: Any, time: clock.ManualClock
) -> None:
    dead, other = quotas(small_plan, owner="dead"), quotas(small_plan, owner="other")
    await dead.refresh()
    await dead.reserve(small_plan, 60)
    time.advance(reservations.LEASE_SECONDS - 1)
    await other.refresh()
    assert await state(store) == (0, 0, 60)
    time.advance(1)
    await other.refresh()
    assert await state(store) == (0, 60, 0)
    assert {(each.entry.account, each.uncertain) for each in await store.all_usage()} == {
        ("demo", 60),
        ("demo/erp", 60),
    }
    assert (await refused(other, small_plan, 41)).message.startswith("demo has 40 of 100 parts left")


async def test_unlimited_requests_of_a_dead_worker_become_uncertain_usage(
    quotas: Quotas, store: Any, time: clock.ManualClock
) -> None:
    plan = accounts()
    dead, other = quotas(plan, owner="dead"), quotas(plan, owner="other")
    await dead.refresh()
    await dead.reserve(plan, 60)
    await (await dead.reserve(plan, 60)).settle(7)
    time.advance(reservations.LEASE_SECONDS)
    await other.refresh()
    assert await state(store) == (7, 60, 0)


async def test_unavailable_store_delays_no_unlimited_request(quotas: Quotas, store: Any) -> None:
    plan = accounts()
    worker = quotas(plan)
    store.away = True
    one, other = await worker.reserve(plan, 60), await worker.reserve(plan, 60)
    assert store.operations == ["reserve"]
    await one.settle(7)
    await other.settle(5)
    store.away = False
    await worker.refresh()
    assert await state(store) == (12, 0, 0)


async def test_quota_status_is_that_of_the_smallest_remaining(quotas: Quotas) -> None:
    plan, free = accounts(parts=100, own=20), accounts(key="free")
    worker = quotas(plan, free)
    await worker.refresh()
    assert worker.status(plan) == QuotaStatus(0, 20, TO_DECEMBER)
    await (await worker.reserve(plan, 9)).settle(5)
    assert worker.status(plan) == QuotaStatus(5, 20, TO_DECEMBER)
    assert worker.status(free) == QuotaStatus(5, None, TO_DECEMBER)
    await (await worker.reserve(free, 9)).settle(85)
    assert worker.status(plan) == QuotaStatus(90, 100, TO_DECEMBER)


async def test_quota_status_includes_usage_of_other_workers(quotas: Quotas, small_plan: Any) -> None:
    one, other = quotas(small_plan, owner="one"), quotas(small_plan, owner="other")
    await one.refresh()
    await (await other.reserve(small_plan, 9)).settle(5)
    assert one.status(small_plan).used == 0
    await one.refresh()
    assert one.status(small_plan).used == 5


def gauges(worker: reservations.Quota) -> dict[str, dict[str, float]]:
    """Values by quota account."""
    return {
        family.name.removeprefix("v3bridge_parts_"): {
            sample.labels["quota_account"]: sample.value for sample in family.samples
        }
        for family in usage.gauges(worker.usages())
    }


async def test_gauges_show_every_quota_account_by_name(quotas: Quotas) -> None:
    plan = accounts(parts=100, own=20)
    worker = quotas(plan)
    await (await worker.reserve(plan, 9)).settle(5)
    await (await worker.reserve(plan, 3)).release(TimeoutError())
    await worker.reserve(plan, 2)
    await worker.refresh()
    same = {name: dict.fromkeys(("demo", "demo/erp"), parts) for name, parts in (("used", 5), ("uncertain", 3))}
    assert gauges(worker) == same | {
        "reserved": {"demo": 2, "demo/erp": 2},
        "remaining": {"demo": 92, "demo/erp": 12},
    }


async def test_unlimited_quota_account_has_no_remaining_gauge(quotas: Quotas) -> None:
    worker = quotas(accounts())
    await worker.refresh()
    assert "demo" in gauges(worker)["used"]
    assert gauges(worker)["remaining"] == {}


async def test_daily_pruning_does_not_change_usage(quotas: Quotas, store: Any, time: clock.ManualClock) -> None:
    plan = accounts(parts=93)
    worker = quotas(plan)
    applications = {
        "demo": config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest("a"), name="erp"),), parts=93)
    }

    async def shown() -> Any:
        return usage.rows(applications, await store.all_usage(), await store.exhausted_quotas(), time.now())

    for _ in range(reservations.DAYS_KEPT + 10):
        await (await worker.reserve(plan, 3)).settle(3)
        time.advance(86_400)
    await (await worker.reserve(plan, 3)).settle(3)
    before = await shown()
    await worker.refresh()
    assert await shown() == before
    assert before[0].used == 75
    assert len(await store.all_usage()) == 2 * (reservations.DAYS_KEPT + 3 + 1)
    store.operations.clear()
    await worker.refresh()
    assert "prune" not in store.operations
    time.advance(86_400)
    store.away = True
    await worker.refresh()
    store.away = False
    await worker.refresh()
    assert store.operations.count("prune") == 1


async def test_store_is_polled_until_close(
    store: Any, time: clock.ManualClock, counted: metrics.Metrics, small_plan: Any
) -> None:
    worker = reservations.Quota(store, [small_plan], "worker", time, counted, interval=0.0)
    await worker.start()
    while store.operations.count("usage") < 3:
        await asyncio.sleep(0)
    await (await worker.reserve(small_plan, 9)).settle(5)
    await worker.close()
    assert await state(store) == (5, 0, 0)
    assert [task for task in asyncio.all_tasks() if task.get_name() == "quota"] == []


async def test_failed_poll_is_repeated(
    store: Any,
    time: clock.ManualClock,
    counted: metrics.Metrics,
    small_plan: Any,
    log_output: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = reservations.Quota(store, [small_plan], "worker", time, counted, interval=0.0)
    await worker.start()
    monkeypatch.setattr(counted, "store_unavailable", None)
    while log_output.getvalue().count("background task failed") < 2:
        await asyncio.sleep(0)
    await worker.close()
