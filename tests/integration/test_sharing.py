"""What is asked for once: tokens, identical queries under way, answers that are kept (ARCHITECTURE.md, decisions)."""

import asyncio
import json
from typing import Any

import pytest
from integration.house import House, Starts, target
from support import running_proxy

from proxy import config
from proxy.kit import clock

ONE = {"mpn": "SN74S74N"}
DAY = 86_400


async def test_fifty_concurrent_first_requests_make_one_token_request(house: House) -> None:
    replies = await asyncio.gather(*(house.reply({"mpn": "1N4007", "limit": n % 20}) for n in range(50)))
    assert {reply["results"][0]["error"] for reply in replies} == {None}
    assert house.sandbox.request_counts.tokens == 1


async def test_identical_queries_in_flight_are_one_upstream_request(house: House) -> None:
    await house.proxy.get("/readyz")
    probed = house.sandbox.request_counts.graphql
    replies = await asyncio.gather(*(house.reply(ONE, ONE, more=f"&n={n}") for n in range(30)))
    assert all(reply["results"] == replies[0]["results"] for reply in replies)
    assert (house.sandbox.request_counts.graphql - probed, house.billed) == (1, 3)


async def test_without_cache_the_next_request_is_sent(house: House) -> None:
    await house.results(ONE, ONE)
    await house.results(ONE, ONE)
    assert (house.sandbox.request_counts.graphql, house.billed) == (2, 6)


async def test_cache_entries_expire(start: Starts) -> None:
    async with start(cache={"seconds": 60}) as house:
        first = await house.results(ONE)
        house.time.advance(59)
        assert await house.results(ONE) == first
        assert (house.sandbox.request_counts.graphql, house.billed) == (2, 3)
        house.time.advance(2)
        assert await house.results(ONE) == first
        assert (house.sandbox.request_counts.graphql, house.billed) == (4, 6)


async def test_cached_result_takes_a_new_reference_but_no_other_projection(start: Starts) -> None:
    async with start(cache={"seconds": 60}) as house:
        await house.results({**ONE, "reference": 1}, ONE)
        first, _ = await house.results({**ONE, "reference": "two"}, ONE)
        assert (first["reference"], house.sandbox.request_counts.graphql) == ("two", 1)
        await house.results(ONE, ONE, more="&include[]=specs")
        assert house.sandbox.request_counts.graphql == 2


async def test_cache_stays_within_its_bytes(start: Starts) -> None:
    async with start(cache={"seconds": 60, "bytes": 1_000}) as house:
        for number in ("none-1", "none-2", "none-3", "none-1"):
            await house.results({"sku": number})
        assert house.sandbox.request_counts.graphql == 4


async def test_failure_is_not_cached(start: Starts, nobody: str) -> None:
    async with start(cache={"seconds": 60}, application={"currency": "XXX"}) as house:
        for _ in range(2):
            assert (await house.results(ONE))[0]["error"]
        assert house.sandbox.request_counts.graphql == 2


async def test_expired_token_is_renewed_for_the_request(house: House) -> None:
    await house.results(ONE)
    house.time.advance(25 * 3600)
    assert (await house.results(ONE))[0]["hits"] == 4
    assert house.sandbox.request_counts.tokens == 2
    refused = 'outcome="TokenRefused"'
    assert refused not in await (await house.proxy.get("/metrics")).text()


async def test_token_refused_as_expired_is_renewed_once_and_the_request_retried(start: Starts) -> None:
    ahead = clock.ManualClock()
    async with start(upstream_time=ahead) as house:
        await house.results(ONE, ONE)
        ahead.advance(25 * 3600)
        replies = await asyncio.gather(*(house.reply({**ONE, "limit": n}, ONE) for n in range(10)))
        assert {reply["results"][0]["hits"] for reply in replies} == {4}
        assert house.sandbox.request_counts.tokens == 2
        assert (await house.results(ONE))[0]["hits"] == 4
        assert house.sandbox.request_counts.tokens == 2


async def test_token_is_renewed_before_expiry_in_the_background(house: House) -> None:
    await house.results(ONE)
    house.time.advance(DAY - 200)
    assert (await house.results(ONE))[0]["hits"] == 4
    await asyncio.wait_for(until(lambda: house.sandbox.request_counts.tokens == 2), 5)
    house.time.advance(300)
    assert (await house.results(ONE))[0]["hits"] == 4
    assert house.sandbox.request_counts.tokens == 2


async def until(holds: Any) -> None:
    while not holds():
        await asyncio.sleep(0.005)


async def test_applications_share_no_results(start: Starts) -> None:
    async with start(cache={"seconds": 60}) as house:
        own: dict[str, Any] = {
            "client_id": config.ClientId(house.sandbox.default_application.client_id),
            "client_secret": config.Secret(house.sandbox.default_application.client_secret),
        }
        other = config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest("other-key")),), **own)
        chosen = running_proxy.settings(house.sandbox.graphql_url, house.sandbox.token_url, application=own)
        both = config.Config(
            applications={**chosen.applications, "other": other},
            upstream=chosen.upstream,
            cache=config.CacheSettings(seconds=60),
        )
        async with running_proxy.running(both, house.time) as proxy:
            for key in ("EXAMPLE_KEY", "other-key", "EXAMPLE_KEY"):
                assert (await proxy.get(target(ONE, ONE, key=key))).status == 200
            text = await (await proxy.get("/metrics")).text()
        assert house.sandbox.request_counts.graphql == 2
    assert json.dumps(house.asked[0]) == json.dumps(house.asked[1])
    assert all(f'v3bridge_parts_returned_total{{application="{name}"}} 3.0' in text for name in ("demo", "other"))


@pytest.mark.parametrize("going", ["cancelled", "alive"])
async def test_disconnected_client_does_not_affect_others(house: House, going: str) -> None:
    await house.proxy.get("/readyz")
    probed = house.sandbox.request_counts.graphql
    tasks = [asyncio.create_task(house.reply(ONE, ONE)) for _ in range(3)]
    await until(lambda: house.sandbox.request_counts.graphql > probed or all(task.done() for task in tasks))
    if going == "cancelled":
        tasks[0].cancel()
    rest = await asyncio.gather(*tasks[1:])
    await asyncio.gather(tasks[0], return_exceptions=True)
    assert [reply["results"][0]["hits"] for reply in rest] == [4, 4]
    assert house.sandbox.request_counts.graphql == probed + 1
