"""Runs with scripted sides: their plan, order, cost, interruption, abort, recording."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.comparison_server import request_from_target

from proxy import errors
from proxy.redaction import Redaction
from proxy.tools.compare import comparison, sides
from proxy.tools.compare.judging.judge import Judge
from proxy.tools.compare.judging.result import Tally
from proxy.tools.compare.run import Budget, ComparisonRun
from proxy.tools.compare.sides import Sides
from proxy.traffic.recordings import SideResponse
from proxy.traffic.v3_request import V3Request

REQUESTS = [request_from_target(f"/v3/parts/search?q={n}&limit=5") for n in range(40)]


class Side(sides.HttpSide):
    """Answers by a function of `q`, the hits by default, at two parts each."""

    def __init__(self, answer: Callable[[int], Any] = lambda q: {"hits": q}, parts: int | None = 2) -> None:
        self.answer, self.parts = answer, parts
        self.requests: list[int] = []

    async def fetch(self, request: V3Request) -> SideResponse:
        q = int(request.values("q")[0])
        self.requests.append(q)
        await asyncio.sleep(0)
        made = self.answer(q)
        return made if isinstance(made, SideResponse) else SideResponse(200, json.dumps(made).encode(), self.parts)


class Ran(Tally):
    unfinished: list[str]
    spent: int


@pytest.fixture
def run(causes: Any) -> Any:
    async def go(baseline: Any, candidate: Any, limit: int | None = None, recorder: Any = None, **more: Any) -> Ran:
        tally, budget, redaction = Ran(), Budget(1_000 if limit is None else limit), Redaction(more.get("secrets", ()))
        judge = Judge((), causes, redaction.text) if candidate else None
        running = ComparisonRun(Sides(baseline, candidate), budget, tally, redaction, judge=judge, recorder=recorder)
        stop = more.get("stop") or asyncio.Event()
        tally.unfinished = await running.run(more.get("requests", REQUESTS), stop, lambda _: None)
        tally.spent = budget.spent
        return tally

    return go


@pytest.mark.parametrize(
    "response, cost",
    [
        (SideResponse(200, b"{}"), 5),
        (SideResponse(200, b"{}", 3), 3),
        (SideResponse(404, b"{}"), 0),
        (SideResponse(500, b"{}"), 5),
        (SideResponse(0, b"", failure="gives no complete response"), 5),
        (SideResponse(0, b"", 0, failure="cannot be reached"), 0),
    ],
)
async def test_unknown_cost_is_booked_at_the_maximum(run: Any, response: SideResponse, cost: int) -> None:
    assert (await run(Side(), Side(lambda _: response), requests=REQUESTS[:1])).spent == cost


@pytest.mark.parametrize("limit, most", [(0, 0), (4, 0), (5, 1), (25, 11)])
async def test_budget_is_never_exceeded(run: Any, limit: int, most: int) -> None:
    candidate = Side()
    ran = await run(Side(), candidate, limit)
    assert ran.spent == 2 * len(candidate.requests) <= limit
    assert len(candidate.requests) == most
    assert [each.split()[0] for each in ran.unfinished] == [str(40 - most)]


async def test_request_waits_for_reservations_that_may_be_released() -> None:
    budget, sent = Budget(10), asyncio.get_running_loop().create_future()
    first = asyncio.create_task(budget.fetch(lambda: sent, 8))
    waiting = asyncio.create_task(budget.fetch(lambda: sent, 5))
    await asyncio.sleep(0)
    assert await budget.fetch(lambda: sent, 11) is None
    assert not waiting.done()
    sent.set_result(SideResponse(200, b"{}", 3))
    assert await first == await waiting == sent.result()
    assert budget.spent == 6
    assert await budget.fetch(lambda: sent, 8) is None


async def test_changed_stock_is_no_difference(run: Any) -> None:
    stocks = iter([5, 7])

    def part(stock: int) -> Any:
        return {"results": [{"item": {"mpn": "X1", "offers": [{"sku": "S", "in_stock_quantity": stock}]}}]}

    ran = await run(Side(lambda _: part(next(stocks))), Side(lambda _: part(7)), requests=REQUESTS[:1])
    assert [key[3] for key in ran.groups] == ["moved"]
    assert ran.rows["/parts/search"]["equivalent"] == 1


async def test_full_disk_stops_the_run_with_one_line(run: Any) -> None:
    class Full:
        earlier = None

        def keep(self, *_: Any) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(errors.ConfigError, match="the recording cannot be written: No space left on device"):
        await run(Side(), Side(), recorder=Full())


PLANNED = [request_from_target(f"/v3/parts/search?q={n}&limit=5", client="erp") for n in range(100)]
PLANNED += [request_from_target(f"/v3/brands/search?q={n % 3}", client="shop") for n in range(9)]


def test_each_request_is_planned_once_in_mixed_order() -> None:
    made = comparison.make_plan(PLANNED, None)
    assert len(made.requests) == made.distinct == 103
    assert {request.id for request in made.requests} == {request.id for request in PLANNED}
    assert [request.id for request in made.requests] != list(dict.fromkeys(request.id for request in PLANNED))
    assert made.in_source == {"/parts/search": 100, "/brands/search": 3}
    assert {request.times for request in made.requests if request.client == "shop"} == {3}
    assert made.parts == 500


def test_sample_has_some_of_each_kind_and_is_stable() -> None:
    made = comparison.make_plan(PLANNED, 10)
    assert (len(made.requests), made.distinct) == (10, 103)
    assert {request.client for request in made.requests} == {"erp", "shop"}
    assert comparison.make_plan(PLANNED, 10).requests == made.requests


def test_requests_beyond_the_capacity_are_counted() -> None:
    made = comparison.make_plan(PLANNED, None, held=50)
    assert (len(made.requests), made.dropped) == (50, 59)
