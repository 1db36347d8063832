"""Tests of cached results and of tokens that expire; tests/acceptance has what several processes do once."""

import asyncio
from typing import Any

import pytest
from together.environment import ProxyEnvironment, StartEnvironment

from proxy.kit import clock

ONE = {"mpn": "SN74S74N"}
DAY = 86_400


async def test_without_cache_the_next_request_is_sent(environment: ProxyEnvironment) -> None:
    await environment.results(ONE, ONE)
    await environment.results(ONE, ONE)
    assert (environment.sandbox.request_counts.graphql, environment.billed_parts) == (2, 6)


async def test_cached_result_takes_a_new_reference_but_no_other_projection(start: StartEnvironment) -> None:
    async with start(cache={"seconds": 60}) as environment:
        await environment.results({**ONE, "reference": 1}, ONE)
        first, _ = await environment.results({**ONE, "reference": "two"}, ONE)
        assert (first["reference"], environment.sandbox.request_counts.graphql) == ("two", 1)
        await environment.results(ONE, ONE, more="&include[]=specs")
        assert environment.sandbox.request_counts.graphql == 2


async def test_cache_stays_within_its_bytes(start: StartEnvironment) -> None:
    async with start(cache={"seconds": 60, "bytes": 1_000}) as environment:
        for number in ("none-1", "none-2", "none-3", "none-1"):
            await environment.results({"sku": number})
        assert environment.sandbox.request_counts.graphql == 4


async def test_failure_is_not_cached(start: StartEnvironment, unreachable_url: str) -> None:
    async with start(cache={"seconds": 60}, application={"currency": "XXX"}) as environment:
        for _ in range(2):
            assert (await environment.results(ONE))[0]["error"]
        assert environment.sandbox.request_counts.graphql == 3  # the first is sent of whole parts, too


async def test_token_refused_as_expired_is_renewed_once_and_the_request_retried(start: StartEnvironment) -> None:
    ahead = clock.ManualClock()
    async with start(upstream_time=ahead) as environment:
        await environment.results(ONE, ONE)
        ahead.advance(25 * 3600)
        replies = await asyncio.gather(*(environment.reply({**ONE, "limit": n}, ONE) for n in range(10)))
        assert {reply["results"][0]["hits"] for reply in replies} == {4}
        assert environment.sandbox.request_counts.tokens == 2
        assert (await environment.results(ONE))[0]["hits"] == 4
        assert environment.sandbox.request_counts.tokens == 2


async def test_token_is_renewed_before_expiry_in_the_background(environment: ProxyEnvironment) -> None:
    await environment.results(ONE)
    environment.time.advance(DAY - 200)
    assert (await environment.results(ONE))[0]["hits"] == 4
    await asyncio.wait_for(until(lambda: environment.sandbox.request_counts.tokens == 2), 60)
    environment.time.advance(300)
    assert (await environment.results(ONE))[0]["hits"] == 4
    assert environment.sandbox.request_counts.tokens == 2


async def until(holds: Any) -> None:
    while not holds():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("going", ["cancelled", "alive"])
async def test_disconnected_client_does_not_affect_others(environment: ProxyEnvironment, going: str) -> None:
    await environment.proxy.get("/readyz")
    probed = environment.sandbox.request_counts.graphql
    tasks = [asyncio.create_task(environment.reply(ONE, ONE)) for _ in range(3)]
    await until(lambda: environment.sandbox.request_counts.graphql > probed or all(task.done() for task in tasks))
    if going == "cancelled":
        tasks[0].cancel()
    rest = await asyncio.gather(*tasks[1:])
    await asyncio.gather(tasks[0], return_exceptions=True)
    assert [reply["results"][0]["hits"] for reply in rest] == [4, 4]
    assert environment.sandbox.request_counts.graphql == probed + 1
