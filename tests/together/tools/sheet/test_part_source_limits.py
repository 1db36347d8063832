"""Tests of the source of parts for spreadsheets: budget, quota, a service in trouble, and runs that end early."""

import asyncio
from pathlib import Path

import pytest
from together.tools.sheet.sheet_source import (
    DIODE,
    FLIP_FLOP,
    NUMBERS,
    UNKNOWN,
    Serve,
    billed,
    booked,
    collect,
    fetched,
    inject,
    numbers,
    opened,
)

import nexar_sandbox
from proxy import errors
from proxy.kit import clock
from proxy.tools.sheet import source as part_source
from proxy.tools.sheet.parts import BudgetExhausted, PartQuery


@pytest.mark.parametrize("budget", [0, 1, 99, 150, 230])
async def test_budget_is_never_exceeded_and_used_up_to_the_last_part(
    serve: Serve, numbered: nexar_sandbox.Catalog, file: Path, time: clock.ManualClock, budget: int
) -> None:
    # Every second line has a part: what a request does not use is left for the next.
    queries = [query for pair in zip(numbers(250), numbers(250, NUMBERS), strict=True) for query in pair]
    async with serve(numbered) as sandbox, opened(sandbox, file, time) as source:
        results, error = await collect(source, *queries, budget=budget)
        assert isinstance(error, BudgetExhausted)
        assert source.parts_spent == billed(sandbox) == budget
        assert sum(len(result.parts) for result in results) == budget
        rest, error = await collect(source, *queries, budget=500)
        assert (error, len(rest), billed(sandbox)) == (None, 500, 250)


async def test_sources_of_a_number_cost_at_most_what_was_said_before(
    serve: Serve, catalog: nexar_sandbox.Catalog, file: Path, time: clock.ManualClock
) -> None:
    queries = [PartQuery(number, limit=5) for number in ("LM358N", "SN74S74N", UNKNOWN.mpn)]
    async with serve(catalog) as sandbox, opened(sandbox, file, time) as source:
        cost = await source.estimate(queries)
        assert (cost.queries, cost.parts_if_one, cost.upstream_requests) == (3, 3, 1)
        results, error = await collect(source, *queries, budget=9)
        assert isinstance(error, BudgetExhausted)
        assert [result.query.mpn for result in results] == ["LM358N", "SN74S74N"]
        assert billed(sandbox) <= 9
        by_number = await fetched(source, *queries)
        makers = {query.mpn: {part.manufacturer for part in found.parts} for query, found in by_number.items()}
        assert {"Texas Instruments", "STMicroelectronics"} <= makers["LM358N"]
        assert makers[UNKNOWN.mpn] == set()
        assert billed(sandbox) == source.parts_spent == sum(len(found.parts) for found in by_number.values()) <= 10
        await fetched(source, *queries)
        assert billed(sandbox) == source.parts_spent


async def test_quota_is_used_up_and_then_ends_the_run_in_its_own_words(
    serve: Serve, numbered: nexar_sandbox.Catalog, file: Path, time: clock.ManualClock
) -> None:
    changes = {"application": {"parts": 130}}
    async with serve(numbered) as sandbox, opened(sandbox, file, time, changes) as source:
        results, error = await collect(source, *numbers(300))
        assert isinstance(error, errors.QuotaExhausted)
        assert "demo has 0 of 130 parts left" in error.message
        assert len(results) == source.parts_spent == billed(sandbox) == 130
        assert all(result.parts for result in results)


@pytest.mark.parametrize("fault", ["429 count=2 retry_after=0", "5xx count=2 status=503 retry_after=0"])
async def test_busy_service_is_asked_again(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock, fault: str
) -> None:
    inject(sandbox, fault)
    async with opened(sandbox, file, time) as source:
        results, error = await collect(source, FLIP_FLOP, DIODE)
        assert error is None
        assert [len(result.parts) for result in results] == [1, 1]
        assert source.parts_spent == billed(sandbox) == 2


async def test_failing_service_is_the_error_of_each_line_and_costs_nothing(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_source, "WAIT_SECONDS", 0.0)
    inject(sandbox, "5xx status=500 body=json")
    async with opened(sandbox, file, time) as source:
        results, error = await collect(source, FLIP_FLOP, DIODE)
        assert (error, source.parts_spent) == (None, 0)
        assert [result.parts for result in results] == [(), ()]
        assert all(result.error for result in results)
        sandbox.faults.clear()
        assert all(result.error is None for result in (await fetched(source, FLIP_FLOP, DIODE)).values())


async def test_service_that_stays_down_ends_the_run_after_a_few_batches(
    serve: Serve, numbered: nexar_sandbox.Catalog, file: Path, time: clock.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_source, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(part_source, "WAIT_SECONDS_MAX", 1.0)  # the circuit breaker is open for longer
    async with serve(numbered) as sandbox, opened(sandbox, file, time) as source:
        inject(sandbox, "5xx status=500 body=json")
        results, error = await collect(source, *numbers(900))
        assert isinstance(error, errors.ServerError)
        assert 0 < len(results) < 900


async def test_response_that_cannot_be_read_counts_as_spent_and_is_not_asked_again(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    inject(sandbox, "malformed body=empty count=1")
    async with opened(sandbox, file, time) as source:
        results, error = await collect(source, FLIP_FLOP, DIODE)
        assert error is None
        assert [result.parts for result in results] == [(), ()]
        assert source.parts_spent == billed(sandbox) == 2
    assert await booked(sandbox, file, time) == 2


async def test_line_that_the_service_refuses_does_not_fail_the_others(
    serve: Serve, numbered: nexar_sandbox.Catalog, file: Path, time: clock.ManualClock
) -> None:
    # The service refuses requests whose variables it cannot read.
    hostile = PartQuery("\x00" * 3)
    async with serve(numbered) as sandbox, opened(sandbox, file, time) as source:
        results = await fetched(source, *numbers(60), hostile, *numbers(60, 60))
        assert sum(len(result.parts) for result in results.values()) == 120
        assert not results[hostile].parts


async def test_refusal_of_all_lines_that_may_be_billed_ends_the_run(
    serve: Serve, numbered: nexar_sandbox.Catalog, file: Path, time: clock.ManualClock
) -> None:
    wrong = [query._replace(currency="XXX") for query in numbers(500)]
    async with serve(numbered) as sandbox, opened(sandbox, file, time) as source:
        results, error = await collect(source, *wrong)
        assert {result.error for result in results} == {str(error)} == {"currency 'XXX' is not supported"}
        # Each operation was sent twice: the second time without features, which might have been the reason.
        assert (len(results), source.parts_spent, billed(sandbox)) == (400, 800, 0)
    assert await booked(sandbox, file, time) == 800


async def test_cancelled_run_waits_for_what_is_billed_and_keeps_it(
    serve: Serve, numbered: nexar_sandbox.Catalog, file: Path, time: clock.ManualClock
) -> None:
    async with serve(numbered) as sandbox:
        inject(sandbox, "latency ms=300")
        async with opened(sandbox, file, time) as source:
            run = asyncio.create_task(fetched(source, *numbers(300)))
            while not sandbox.request_counts.graphql:
                await asyncio.sleep(0.01)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            assert source.parts_spent == billed(sandbox) == 300
        assert await booked(sandbox, file, time) == 300
        async with opened(sandbox, file, time) as source:
            assert (await source.estimate(numbers(300))).stored == 300


async def test_what_is_fetched_anew_is_never_stale(
    sandbox: nexar_sandbox.Sandbox, file: Path, time: clock.ManualClock
) -> None:
    async with opened(sandbox, file, time) as source:
        await fetched(source, FLIP_FLOP, DIODE, UNKNOWN)
        time.advance(3600)
        inject(sandbox, "malformed body=empty count=1")
        (result,) = (await fetched(source, FLIP_FLOP, anew=True)).values()
        assert (result.parts, bool(result.error), source.parts_spent) == ((), True, 3)
        (result,) = (await fetched(source, FLIP_FLOP, anew=True)).values()
        assert (result.fetched, source.parts_spent, billed(sandbox)) == (time.now(), 4, 4)
