"""Tests of the exchange of one request with both sides: order, number of attempts and cost."""

import asyncio
from typing import Any

import pytest
from support.comparison_server import request_from_target

from proxy.redaction import Redaction
from proxy.tools.compare.judging.judge import Judge
from proxy.tools.compare.running.exchange import ComparisonBudget, Exchanger, OutOfBudgetError, Sides
from proxy.traffic.v3_response import SideResponse

REQUEST = request_from_target("/v3/brands/search?q=1")


class ScriptedSide:
    """A side that gives these bodies, the last for ever, and notes in a common book when it was asked."""

    place = "somewhere"

    def __init__(self, name: Any, book: Any, *bodies: Any, live: bool = True, parts: Any = None) -> None:
        self.name, self.book, self.bodies, self.live, self.parts = name, book, list(bodies), live, parts

    async def fetch(self, request: Any, request_id: Any) -> Any:
        self.book.append(self.name)
        body = self.bodies.pop(0) if len(self.bodies) > 1 else self.bodies[0]
        if isinstance(body, SideResponse):
            return body
        return SideResponse(200, body.encode(), 0.1, parts=self.parts)


class _Judge(Judge):
    """Where bodies are not equal, data may have moved."""

    def __init__(self) -> None:
        """It needs no settings."""

    def may_have_moved(self, request: Any, baseline: Any, candidate: Any) -> Any:
        return baseline.body != candidate.body


@pytest.fixture
def book() -> Any:
    return []


@pytest.fixture
def exchange(book: Any) -> Any:
    """Exchanges one request between two sides; `budget` and what is `paid` can be looked at afterwards."""

    class Made:
        def __init__(self) -> None:
            self.budget = ComparisonBudget(None)
            self.paid: list[Any] = []

        async def __call__(
            self,
            baseline: Any,
            candidate: Any,
            *,
            judge: Any = None,
            worst: int = 5,
            limit: Any = None,
            secrets: Any = (),
        ) -> Any:
            self.budget = ComparisonBudget(limit)
            exchanger = Exchanger(
                Sides(baseline, candidate),
                budget=self.budget,
                worst=lambda _: worst,
                paying=lambda *paying: self.paid.append(paying),
                redaction=Redaction(secrets),
                judge=judge or _Judge(),
            )
            return await exchanger.exchange(REQUEST)

    return Made()


async def test_baseline_is_requested_first_and_equal_responses_end_the_exchange(exchange: Any, book: Any) -> None:
    found = await exchange(ScriptedSide("baseline", book, "a"), ScriptedSide("candidate", book, "a", parts=2))
    assert book == ["baseline", "candidate"]
    assert (found.baseline.body, found.candidate.body, found.cost, found.failure) == (b"a", b"a", 2, None)
    assert found.baseline_again is None
    assert exchange.budget.spent == 2
    assert exchange.paid == [(REQUEST.id, 5)]


async def test_request_without_baseline_response_costs_nothing(exchange: Any, book: Any) -> None:
    failure = SideResponse(0, b"", 0.0, failure="cannot be reached")
    found = await exchange(ScriptedSide("baseline", book, failure), ScriptedSide("candidate", book, "a", parts=2))
    assert book == ["baseline"]
    assert found.failure == "the baseline cannot be reached"
    assert exchange.budget.spent == 0
    assert exchange.paid == []


@pytest.mark.parametrize("parts,cost", [(None, 5), (0, 0), (3, 3)])
async def test_candidate_failure_is_booked_as_possibly_billed(
    exchange: Any, book: Any, parts: int | None, cost: int
) -> None:
    failure = SideResponse(0, b"", 0.0, parts=parts, failure="gives no complete response within 1 s")
    found = await exchange(ScriptedSide("baseline", book, "a"), ScriptedSide("candidate", book, failure))
    assert found.failure == "the candidate gives no complete response within 1 s"
    assert found.cost == exchange.budget.spent == cost


@pytest.mark.parametrize("status,cost", [(200, 5), (404, 0), (500, 5)])
async def test_response_without_cost_is_booked_at_the_maximum(exchange: Any, book: Any, status: int, cost: int) -> None:
    found = await exchange(
        ScriptedSide("baseline", book, "a"), ScriptedSide("candidate", book, SideResponse(status, b"a", 0.1))
    )
    assert found.cost == cost


async def test_baseline_is_repeated_where_data_may_have_moved(exchange: Any, book: Any) -> None:
    found = await exchange(ScriptedSide("baseline", book, "a", "b"), ScriptedSide("candidate", book, "b", parts=1))
    assert book == ["baseline", "candidate", "baseline"]
    assert (found.baseline_again.body, found.cost) == (b"b", 1)


async def test_exhausted_budget_prevents_the_request(exchange: Any, book: Any) -> None:
    with pytest.raises(OutOfBudgetError):
        await exchange(ScriptedSide("baseline", book, "a"), ScriptedSide("candidate", book, "a", parts=2), limit=4)
    assert book == []


async def test_response_file_is_not_read_twice(exchange: Any, book: Any) -> None:
    await exchange(ScriptedSide("baseline", book, "a", live=False), ScriptedSide("candidate", book, "b"))
    assert book == ["baseline", "candidate"]


async def test_failed_repetition_keeps_the_first_result(exchange: Any, book: Any) -> None:
    failure = SideResponse(0, b"", 0.0, failure="cannot be reached")
    found = await exchange(ScriptedSide("baseline", book, "a", failure), ScriptedSide("candidate", book, "b", parts=1))
    assert found.failure is None
    assert found.baseline_again is None


async def test_api_keys_are_no_difference(exchange: Any, book: Any) -> None:
    baseline = ScriptedSide("baseline", book, '{"url": "https://x/?apikey=key-of-the-old-side"}')
    candidate = ScriptedSide("candidate", book, '{"url": "https://x/?apikey=key-of-the-new-side"}')
    found = await exchange(baseline, candidate, secrets=["key-of-the-old-side", "key-of-the-new-side"])
    assert book == ["baseline", "candidate"]
    assert found.baseline.body == '{"url": "https://x/?apikey=…"}'.encode() == found.candidate.body


async def test_failures_hold_no_api_keys(exchange: Any, book: Any) -> None:
    baseline = ScriptedSide(
        "baseline", book, SideResponse(0, b"", 0.0, failure="says that key-of-the-old-side is not known")
    )
    found = await exchange(baseline, ScriptedSide("candidate", book, "a"), secrets=["key-of-the-old-side"])
    assert found.failure == "the baseline says that … is not known"


async def test_request_that_may_exceed_the_limit_is_not_covered() -> None:
    budget = ComparisonBudget(10, spent=4)
    assert not await budget.hold(7)
    assert await budget.hold(6)


async def test_request_waits_for_reservations_that_may_be_released() -> None:
    budget = ComparisonBudget(10)
    assert await budget.hold(8)
    waiting = asyncio.create_task(budget.hold(5))
    await asyncio.sleep(0)
    assert not waiting.done()
    await budget.settle(8, 3)
    assert await waiting
    assert budget.spent == 3


async def test_waiting_request_is_refused_at_the_end() -> None:
    budget = ComparisonBudget(10)
    assert await budget.hold(8)
    waiting = asyncio.create_task(budget.hold(5))
    await asyncio.sleep(0)
    await budget.settle(8, 8)
    assert not await waiting
