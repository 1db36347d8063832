"""The source of parts for spreadsheets: what it returns and costs, which application pays, and runs that end early."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import running_proxy

import nexar_sandbox
from proxy import config, errors
from proxy.gateway import StoredState
from proxy.kit import clock
from proxy.tools.sheet import fetching
from proxy.tools.sheet import source as part_source
from proxy.tools.sheet.formula_job import ApplicationLogin
from proxy.tools.sheet.offers import PartQuery, PartResult
from proxy.tools.sheet.source import BudgetExhausted, CostEstimate, PartSource

FLIP_FLOP, DIODE, UNKNOWN = PartQuery("SN74S74N", "Texas Instruments"), PartQuery("1N4007"), PartQuery("NO-SUCH-PART-0")


@dataclass(frozen=True)
class Bench:
    """A sandbox, a store in front of it, and the clock of both."""

    sandbox: nexar_sandbox.Sandbox
    file: Path
    time: clock.ManualClock

    def settings(self, **changes: Any) -> config.Config:
        """Return a configuration with the sandbox as upstream; `changes` are those of its application."""
        application = {"features": "all"} | changes
        return running_proxy.in_front_of(self.sandbox, store=f"sqlite:{self.file}", application=application)

    def opened(self, login: Any = None, **changes: Any) -> AbstractAsyncContextManager[PartSource]:
        return fetching.open_source(self.settings(**changes), self.time, login=login)

    @property
    def billed(self) -> int:
        return self.sandbox.billed_parts

    async def booked(self) -> int:
        """Return the parts of the application in the store, used, uncertain and reserved."""
        async with StoredState.open(self.settings(), self.time) as state:
            row = (await state.usage())[0]
        return row.used + row.uncertain + row.reserved

    def inject(self, text: str) -> None:
        self.sandbox.faults.replace(nexar_sandbox.parse_faults(text))


@pytest.fixture
async def bench(
    time: clock.ManualClock, numbered: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, tmp_path: Path
) -> AsyncIterator[Bench]:
    chosen = nexar_sandbox.SandboxSettings()
    async with nexar_sandbox.serve(chosen, clock=time, catalog=numbered, key=signing_key) as sandbox:
        yield Bench(sandbox, tmp_path / "state.sqlite", time)


@pytest.fixture
async def source(bench: Bench) -> AsyncIterator[PartSource]:
    async with bench.opened() as started:
        yield started


async def fetched(source: PartSource, *queries: PartQuery, **options: Any) -> dict[PartQuery, PartResult]:
    results, error = await collect(source, *queries, **options)
    assert error is None
    return {result.query: result for result in results}


async def collect(source: PartSource, *queries: PartQuery, **options: Any) -> Any:
    """Return the results until the run ends, and the error that ends it."""
    results: list[PartResult] = []
    try:
        async with aclosing(source.fetch(queries, **options)) as arriving:
            async for result in arriving:
                results.append(result)  # noqa: PERF401 - those before an error are wanted, too
    except errors.BridgeError as error:
        return results, error
    return results, None


def numbers(count: int, first: int = 0) -> list[PartQuery]:
    return [PartQuery(f"SHEET{n:05}") for n in range(first, first + count)]


async def test_hits_count_all_matches_and_a_manufacturer_filters(bench: Bench) -> None:
    ambiguous = PartQuery(FLIP_FLOP.mpn)
    async with bench.opened() as source:
        results = await fetched(source, ambiguous, FLIP_FLOP, FLIP_FLOP._replace(manufacturer="Vishay"))
        assert source.parts_spent == bench.billed == 2
    (first, filtered, other) = results.values()
    assert first.hits > filtered.hits >= 1
    assert [part.manufacturer for part in filtered.parts] == ["Texas Instruments"]
    assert (other.parts, other.hits, other.error) == ((), 0, None)


async def test_prices_are_exact_and_converted_to_the_currency_of_each_query_at_the_same_time(bench: Bench) -> None:
    queries = [FLIP_FLOP._replace(currency=code) for code in ("EUR", "USD", "JPY")]
    async with bench.opened() as source:
        results = await fetched(source, *queries)
        assert source.parts_spent == bench.billed == 3
    for query, result in results.items():
        prices = [price for part in result.parts for offer in part.offers for price in offer.prices]
        assert {price.currency for price in prices} >= {"USD", "EUR"}
        for price in prices:
            rate = nexar_sandbox.exchange_rate(price.currency, query.currency)
            exact = None if rate is None else Decimal(repr(float(price.price) * rate))
            assert price.converted == exact
            assert price.price == Decimal(repr(float(price.price)))


async def test_billed_parts_are_spent_and_booked_and_a_second_run_costs_nothing(bench: Bench) -> None:
    queries = [FLIP_FLOP, DIODE, UNKNOWN, FLIP_FLOP]
    async with bench.opened() as source:
        assert await source.estimate(queries) == CostEstimate(3, 0, 3, 1)
        assert bench.sandbox.request_counts.graphql == 0
        first = await fetched(source, *queries)
        assert source.parts_spent == bench.billed == 2
        assert source.upstream_requests == 1
        assert await source.estimate(queries) == CostEstimate(3, 3, 0, 0)
    assert await bench.booked() == 2
    bench.time.advance(3600)
    async with bench.opened() as source:
        # That there is no such part is asked again, free of charge.
        assert await source.estimate(queries) == CostEstimate(3, 2, 1, 1)
        second = await fetched(source, *queries)
        assert (source.parts_spent, source.upstream_requests, bench.billed) == (0, 1, 2)
    assert second == {**first, UNKNOWN: first[UNKNOWN]._replace(fetched=bench.time.now())}
    assert [second[query].fetched for query in (FLIP_FLOP, DIODE)] == [bench.time.now() - 3600] * 2


async def test_candidates_pay_for_what_is_beyond_the_first_part_only(bench: Bench, source: PartSource) -> None:
    query = PartQuery("LM358N")
    assert len((await fetched(source, query))[query].parts) == 1
    more = query._replace(limit=3)
    found = (await fetched(source, more))[more]
    assert len(found.parts) == 3
    assert source.parts_spent == bench.billed == 3
    assert await source.estimate([more]) == CostEstimate(1, 1, 0, 0)
    assert await source.estimate([query._replace(limit=5)]) == CostEstimate(1, 0, 1, 1)


async def test_api_key_selects_the_application_and_is_charged(bench: Bench) -> None:
    named = (config.ApiKeySettings(config.digest("a-key"), name="erp"),)
    demo = bench.settings().applications["demo"]
    other = msgspec.structs.replace(demo, apikeys=named)
    both = msgspec.structs.replace(bench.settings(), applications={"demo": demo, "other": other})
    async with fetching.open_source(both, bench.time, apikey="a-key") as source:
        assert (source.client.application.name, source.client.key) == ("other", "erp")
    with pytest.raises(errors.ConfigError, match="several applications"):
        await fetching.open_source(both, bench.time).__aenter__()


async def test_login_of_a_configured_application_keeps_its_quota(bench: Bench) -> None:
    account = bench.sandbox.default_application
    login = ApplicationLogin(config.ClientId(account.client_id), config.Secret(account.client_secret))
    async with bench.opened(login, parts=1) as source:
        results, error = await collect(source, FLIP_FLOP, DIODE)
    assert isinstance(error, errors.QuotaExhausted)
    assert (len(results), bench.billed) == (1, 1)


@pytest.mark.parametrize("budget", [0, 99, 230])
async def test_budget_is_used_up_to_the_last_part(bench: Bench, source: PartSource, budget: int) -> None:
    # Every second line has a part: what a request does not use is left for the next.
    queries = [query for pair in zip(numbers(250), numbers(250, 1000), strict=True) for query in pair]
    results, error = await collect(source, *queries, budget=budget)
    assert isinstance(error, BudgetExhausted)
    assert source.parts_spent == bench.billed == budget
    assert sum(len(result.parts) for result in results) == budget
    rest, error = await collect(source, *queries, budget=500)
    assert (error, len(rest), bench.billed) == (None, 500, 250)


async def test_quota_is_used_up_and_then_ends_the_run_in_its_own_words(bench: Bench) -> None:
    async with bench.opened(parts=130) as source:
        results, error = await collect(source, *numbers(300))
        assert isinstance(error, errors.QuotaExhausted)
        assert "demo has 0 of 130 parts left" in error.message
        assert len(results) == source.parts_spent == bench.billed == 130
        assert all(result.parts for result in results)


async def test_service_that_stays_down_ends_the_run_after_a_few_batches(
    bench: Bench, source: PartSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_source, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(part_source, "WAIT_SECONDS_MAX", 1.0)  # the circuit breaker is open for longer
    bench.inject("5xx status=500 body=json")
    results, error = await collect(source, *numbers(900))
    assert isinstance(error, errors.ServerError)
    assert 0 < len(results) < 900


async def test_response_that_cannot_be_read_counts_as_spent_and_is_not_asked_again(bench: Bench) -> None:
    bench.inject("malformed body=empty count=1")
    async with bench.opened() as source:
        results, error = await collect(source, FLIP_FLOP, DIODE)
        assert error is None
        assert [result.parts for result in results] == [(), ()]
        assert source.parts_spent == bench.billed == 2
    assert await bench.booked() == 2


async def test_line_that_the_service_refuses_does_not_fail_the_others(source: PartSource) -> None:
    # The service refuses requests whose variables it cannot read.
    hostile = PartQuery("\x00" * 3)
    results = await fetched(source, *numbers(60), hostile, *numbers(60, 60))
    assert sum(len(result.parts) for result in results.values()) == 120
    assert not results[hostile].parts


async def test_refusal_of_all_lines_that_may_be_billed_ends_the_run(bench: Bench) -> None:
    wrong = [query._replace(currency="XXX") for query in numbers(500)]
    async with bench.opened() as source:
        results, error = await collect(source, *wrong)
        assert {result.error for result in results} == {str(error)} == {"currency 'XXX' is not supported"}
        # Each operation was sent twice: the second time without features, which might have been the reason.
        assert (len(results), source.parts_spent, bench.billed) == (400, 800, 0)
    assert await bench.booked() == 800


async def test_stopped_run_waits_no_more(bench: Bench, source: PartSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_source, "WAIT_SECONDS", 55.0)
    bench.inject("5xx status=500 body=json")
    stop = asyncio.Event()
    run = asyncio.create_task(collect(source, *numbers(900), stop=stop))
    await asyncio.wait({run}, timeout=2)
    assert not run.done()
    stop.set()
    _, error = await asyncio.wait_for(run, 20)
    assert error is None


async def test_what_is_fetched_anew_is_never_stale(bench: Bench, source: PartSource) -> None:
    await fetched(source, FLIP_FLOP, DIODE, UNKNOWN)
    bench.time.advance(3600)
    bench.inject("malformed body=empty count=1")
    (result,) = (await fetched(source, FLIP_FLOP, anew=True)).values()
    assert (result.parts, bool(result.error), source.parts_spent) == ((), True, 3)
    (result,) = (await fetched(source, FLIP_FLOP, anew=True)).values()
    assert (result.fetched, source.parts_spent, bench.billed) == (bench.time.now(), 4, 4)
