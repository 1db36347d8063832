"""Tests of the daily parts budget: reserved before a request, settled after it, shared by all workers."""

from typing import Any

import pytest

from proxy.shadow.daily_budget import QUOTA_ACCOUNT, DailyBudget
from proxy.stores.protocols import LedgerEntry
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

REQUEST = V3Request("/parts/match")
DAY = LedgerEntry(QUOTA_ACCOUNT, "2023-11-14")


@pytest.fixture
async def make_budget(store: Any, clock: Any) -> Any:
    """Makes a worker's budget that is looked after."""

    async def make(limit: Any, name: str = "one", worst: int = 3) -> Any:
        budget = DailyBudget(store, name, limit, lambda _: worst, clock)
        await budget.refresh()
        return budget

    return make


def response(parts: Any = None, status: int = 200, failure: Any = None) -> Any:
    return SideResponse(status, b"", 0.0, parts=parts, failure=failure)


async def state(store: Any) -> Any:
    (found,) = await store.usage([DAY])
    return found[1:]


async def test_maximum_is_reserved_and_actual_usage_booked(make_budget: Any, store: Any) -> None:
    budget = await make_budget(10)
    claim = await budget.reserve(REQUEST)
    assert await state(store) == (0, 0, 3)
    await budget.settle(claim, response(parts=2))
    assert await state(store) == (2, 0, 0)


async def test_workers_together_never_exceed_the_budget(make_budget: Any, store: Any) -> None:
    one, two = await make_budget(10), await make_budget(10, "two")
    claims = [await each.reserve(REQUEST) for each in (one, two, one, two)]
    assert [claim is None for claim in claims] == [False, False, False, True]
    await one.settle(claims[0], response(parts=0))
    assert await two.reserve(REQUEST) is not None


@pytest.mark.parametrize(
    "answer, over, booked",
    [
        (response(status=403), True, (0, 0, 0)),
        (response(status=502), True, (0, 3, 0)),
        (response(parts=1, status=502), True, (1, 0, 0)),
        (None, True, (0, 0, 0)),
        (None, False, (0, 3, 0)),
    ],
    ids=["refused", "failed", "says", "cache hit", "cut off"],
)
async def test_possibly_billed_request_is_uncertain_usage(
    make_budget: Any, store: Any, answer: Any, over: bool, booked: Any
) -> None:
    budget = await make_budget(10)
    await budget.settle(await budget.reserve(REQUEST), answer, over)
    assert await state(store) == booked


async def test_next_day_has_a_new_budget(make_budget: Any, clock: Any) -> None:
    budget = await make_budget(3)
    await budget.settle(await budget.reserve(REQUEST), response(parts=3))
    assert await budget.reserve(REQUEST) is None
    clock.advance(86_400)
    await budget.refresh()
    assert await budget.reserve(REQUEST) is not None


async def test_unlimited_budget_books_usage(make_budget: Any, store: Any) -> None:
    budget = await make_budget(None)
    for _ in range(3):
        await budget.settle(await budget.reserve(REQUEST), response(parts=100))
    assert await state(store) == (300, 0, 0)


async def test_free_request_is_allowed_beyond_the_budget(make_budget: Any) -> None:
    budget = await make_budget(0, worst=0)
    assert await budget.reserve(REQUEST) is not None


async def test_reservation_of_a_dead_worker_is_uncertain_usage_of_its_day(
    make_budget: Any, store: Any, clock: Any
) -> None:
    dead, alive = await make_budget(3), await make_budget(3, "two")
    await dead.reserve(REQUEST)
    assert await alive.reserve(REQUEST) is None
    clock.advance(11)
    await alive.refresh()
    assert await alive.reserve(REQUEST) is None
    clock.advance(86_400)
    assert await alive.reserve(REQUEST) is not None
