"""Tests of exhausted quotas: stored until their reset."""

from typing import Any

from service.gateway.conftest import accounts
from service.gateway.quota.conftest import DECEMBER, TO_DECEMBER, USED_UP, Quotas, refused, state

from proxy import errors
from proxy.kit import clock


async def test_exhausted_quota_is_shared_with_other_and_later_workers(quotas: Quotas, store: Any) -> None:
    plan, other = accounts(), accounts(name="other")
    first = quotas(plan, other)
    await (await first.reserve(plan, 3)).release(errors.QuotaExhausted(USED_UP))
    second = quotas(plan, other, owner="second")
    await second.refresh()
    await refused(second, plan)
    await second.reserve(other, 3)


async def test_exhausted_quota_can_be_reopened_and_exhausted_again(quotas: Quotas, store: Any) -> None:
    plan = accounts()
    worker = quotas(plan)
    for _ in range(2):
        await (await worker.reserve(plan, 3)).release(errors.QuotaExhausted(USED_UP))
        await worker.refresh()
        await refused(worker, plan)
        await store.clear_exhausted("demo")
        await worker.refresh()
        await worker.reserve(plan, 3)


async def test_lifetime_quota_is_exhausted_for_ever(quotas: Quotas, store: Any, time: clock.ManualClock) -> None:
    plan = accounts(period="lifetime")
    worker = quotas(plan)
    error = errors.QuotaExhausted(USED_UP, retry_after=1)
    await (await worker.reserve(plan, 3)).release(error)
    time.advance(400 * 86_400)
    await worker.refresh()
    assert error.retry_after == (await refused(worker, plan)).retry_after == 86_400


async def test_plan_without_parts_promises_no_date_and_is_tried_again_soon(
    quotas: Quotas, store: Any, time: clock.ManualClock
) -> None:
    plan = accounts()
    worker = quotas(plan)
    error = errors.QuotaExhausted("this plan has no parts: You have exceeded your part limit of 0.", retry_after=1)
    await (await worker.reserve(plan, 3)).release(error)
    assert error.retry_after is None
    await worker.refresh()
    again = await refused(worker, plan)
    assert (again.message, again.retry_after) == (error.message, None)
    time.advance(900)
    await worker.reserve(plan, 3)


async def test_next_month_can_be_exhausted_again(quotas: Quotas, store: Any, time: clock.ManualClock) -> None:
    plan = accounts()
    worker = quotas(plan)
    await (await worker.reserve(plan, 3)).release(errors.QuotaExhausted(USED_UP))
    time.advance(TO_DECEMBER + 86_400)
    await (await worker.reserve(plan, 3)).release(errors.QuotaExhausted(USED_UP))
    assert (await refused(worker, plan)).retry_after == 30 * 86_400


async def test_refusal_on_the_first_may_belong_to_the_previous_month(
    quotas: Quotas, store: Any, time: clock.ManualClock
) -> None:
    plan = accounts()
    worker = quotas(plan)
    under_way = await worker.reserve(plan, 3), await worker.reserve(plan, 3)
    time.advance(TO_DECEMBER)  # here; the service's month may turn a moment later, or in another time zone
    for each in under_way:
        error = errors.QuotaExhausted(USED_UP)
        await each.release(error)
        assert error.retry_after == (await refused(worker, plan)).retry_after <= 900
        time.advance(60)
    time.advance(840)
    await (await worker.reserve(plan, 3)).settle(3)
    assert await state(store, DECEMBER) == (3, 0, 0)
