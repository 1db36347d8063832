"""Tests of work done once: tokens, identical queries in flight, cached results (ARCHITECTURE.md, decisions)."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from support import running_proxy
from together.environment import ProxyEnvironment, StartEnvironment, target

from proxy import config
from proxy.kit import clock

ONE = {"mpn": "SN74S74N"}
DAY = 86_400


async def test_fifty_concurrent_first_requests_make_one_token_request(environment: ProxyEnvironment) -> None:
    replies = await asyncio.gather(*(environment.reply({"mpn": "1N4007", "limit": n % 20}) for n in range(50)))
    assert {reply["results"][0]["error"] for reply in replies} == {None}
    assert environment.sandbox.request_counts.tokens == 1


async def test_identical_queries_in_flight_are_one_upstream_request(environment: ProxyEnvironment) -> None:
    await environment.proxy.get("/readyz")
    probed = environment.sandbox.request_counts.graphql
    replies = await asyncio.gather(*(environment.reply(ONE, ONE, more=f"&n={n}") for n in range(30)))
    assert all(reply["results"] == replies[0]["results"] for reply in replies)
    assert (environment.sandbox.request_counts.graphql - probed, environment.billed_parts) == (1, 3)


async def test_without_cache_the_next_request_is_sent(environment: ProxyEnvironment) -> None:
    await environment.results(ONE, ONE)
    await environment.results(ONE, ONE)
    assert (environment.sandbox.request_counts.graphql, environment.billed_parts) == (2, 6)


async def test_cache_entries_expire(start: StartEnvironment) -> None:
    async with start(cache={"seconds": 60}) as environment:
        first = await environment.results(ONE)
        environment.time.advance(59)
        assert await environment.results(ONE) == first
        assert (environment.sandbox.request_counts.graphql, environment.billed_parts) == (1, 3)
        environment.time.advance(2)
        assert await environment.results(ONE) == first
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


async def test_expired_token_is_renewed_for_the_request(environment: ProxyEnvironment) -> None:
    await environment.results(ONE)
    environment.time.advance(25 * 3600)
    assert (await environment.results(ONE))[0]["hits"] == 4
    assert environment.sandbox.request_counts.tokens == 2
    refused = 'outcome="TokenRefused"'
    assert refused not in await (await environment.proxy.get("/metrics")).text()


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


async def test_applications_share_no_results(start: StartEnvironment) -> None:
    async with start(cache={"seconds": 60}) as environment:
        own: dict[str, Any] = {
            "client_id": config.ClientId(environment.sandbox.default_application.client_id),
            "client_secret": config.Secret(environment.sandbox.default_application.client_secret),
        }
        other = config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest("other-key")),), **own)
        chosen = running_proxy.settings(environment.sandbox.graphql_url, environment.sandbox.token_url, application=own)
        both = msgspec.structs.replace(
            chosen, applications={**chosen.applications, "other": other}, cache=config.CacheSettings(seconds=60)
        )
        async with running_proxy.running(both, environment.time) as proxy:
            for key in ("EXAMPLE_KEY", "other-key", "EXAMPLE_KEY"):
                assert (await proxy.get(target(ONE, ONE, key=key))).status == 200
            text = await (await proxy.get("/metrics")).text()
        assert environment.sandbox.request_counts.graphql == 2
    assert json.dumps(environment.sent_variables[0]) == json.dumps(environment.sent_variables[1])
    assert all(f'v3bridge_parts_returned_total{{application="{name}"}} 3.0' in text for name in ("demo", "other"))


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
