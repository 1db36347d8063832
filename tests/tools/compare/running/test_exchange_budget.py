"""Tests of the parts budget of a run: the maximum cost is reserved, the real cost is booked."""

import asyncio

from proxy.tools.compare.running.exchange import ComparisonBudget


async def test_unlimited_budget_covers_everything() -> None:
    budget = ComparisonBudget(None)
    assert await budget.hold(10**9)
    await budget.settle(10**9, 5)
    assert budget.spent == 5


async def test_request_that_may_exceed_the_limit_is_not_covered() -> None:
    budget = ComparisonBudget(10, spent=4)
    assert not await budget.hold(7)
    assert await budget.hold(6)


async def test_free_request_is_always_covered() -> None:
    assert await ComparisonBudget(10, spent=12).hold(0)


async def test_request_waits_for_reservations_that_may_be_released() -> None:
    budget = ComparisonBudget(10)
    assert await budget.hold(8)
    waiting = asyncio.create_task(budget.hold(5))
    await asyncio.sleep(0)
    assert not waiting.done()
    await budget.settle(8, 3)
    assert await waiting
    assert budget.spent == 3


async def test_request_does_not_wait_without_prospect() -> None:
    budget = ComparisonBudget(10)
    assert await budget.hold(8)
    assert not await budget.hold(11)


async def test_waiting_request_is_refused_at_the_end() -> None:
    budget = ComparisonBudget(10)
    assert await budget.hold(8)
    waiting = asyncio.create_task(budget.hold(5))
    await asyncio.sleep(0)
    await budget.settle(8, 8)
    assert not await waiting
