"""Parts that a response has and nobody was billed for: by the cache, and by coalescing, for each API key and month."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from together.environment import RawResponse, StartEnvironment, target
from together.test_shared_cache import others, settings, stored

import nexar_sandbox
from proxy import config
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry.callers import MonthlyRequests

KEPT = {"seconds": 300, "stale_seconds": 300}
A, B = {"mpn": "SN74S74N"}, {"mpn": "1N4007"}
KEYS = (
    config.ApiKeySettings(config.digest("EXAMPLE_KEY"), name="erp"),
    config.ApiKeySettings(config.digest("shop"), name="shop"),
)
MONTH = "2023-11"


@pytest.fixture
def of_store(tmp_path: Path, time: clock.ManualClock) -> Any:
    """Settings of a service with a store; and the counts in it of each key, after the service has ended."""
    file = tmp_path / "state.sqlite"
    changes = {"store": f"sqlite:{file}", "application": {"apikeys": KEYS}}

    async def counts() -> dict[str, tuple[int, ...]]:
        store = await SqliteStore.open(file, time)
        try:
            return {each.key: each[3:] for each in await store.monthly_requests(MONTH)}
        finally:
            await store.aclose()

    return changes, counts


def parts(*replies: RawResponse) -> int:
    return sum(len(result["items"]) for reply in replies for result in reply.json["results"])


async def test_each_way_of_a_hit_avoids_the_parts_of_its_response(start: StartEnvironment, of_store: Any) -> None:
    changes, counts = of_store
    async with start(cache=KEPT, **changes) as environment:
        number = 4  # the last ones are encoded responses
        for _ in range(number):
            await environment.get(target(A))
        paid = environment.billed_parts
    assert await counts() == {"erp": (number, number - 1, (number - 1) * paid, 0)}


async def test_cached_queries_of_another_key_and_beginnings_of_pages_are_avoided(
    start: StartEnvironment, of_store: Any
) -> None:
    changes, counts = of_store
    async with start(cache=KEPT, **changes) as environment:
        first = await environment.get(target({**A, "limit": 2}))
        longer = await environment.get(target({**A, "limit": 3}, B, key="shop"))
        uid = longer.json["results"][1]["items"][0]["uid"]
        found = await environment.get(f"/v3/parts/{uid}?apikey=shop")
        assert found.headers["x-cache"] == "hit"
        billed, in_responses = environment.billed_parts, parts(first, longer) + 1
    assert await counts() == {"erp": (1, 0, 0, 0), "shop": (2, 1, 3, 0)}
    assert billed + 3 == in_responses


@pytest.mark.parametrize("cache", [KEPT, {"seconds": 0}])
async def test_equal_requests_and_queries_in_flight_are_avoided_by_coalescing(
    start: StartEnvironment, of_store: Any, cache: dict[str, int]
) -> None:
    changes, counts = of_store
    async with start(cache=cache, **changes) as environment:
        await environment.get(target({"mpn": "NO-SUCH-PART"}))  # gets the token
        environment.sandbox.faults.replace(nexar_sandbox.parse_faults("latency ms=100"))
        paths = [target(A), target(A), target(A, more="&pretty_print=1"), target(A, B, key="shop")]
        replies = await asyncio.gather(*map(environment.get, paths))
        billed, in_responses = environment.billed_parts, parts(*replies)
    by_key = await counts()
    assert sum(coalesced for *_, coalesced in by_key.values()) == in_responses - billed == 9
    assert [cached for _, _, cached, _ in by_key.values()] == [0, 0]


async def test_joined_request_avoids_by_the_cache_what_was_cached_for_the_first(
    start: StartEnvironment, of_store: Any
) -> None:
    changes, counts = of_store
    async with start(cache=KEPT, **changes) as environment:
        await environment.get(target(A))
        environment.sandbox.faults.replace(nexar_sandbox.parse_faults("latency ms=100"))
        first, second = await asyncio.gather(*(environment.get(target(A, B)) for _ in range(2)))
        assert sorted(each.headers["x-cache"] for each in (first, second)) == ["miss", "shared"]
        of_a, of_b = (len(result["items"]) for result in first.json["results"])
    assert await counts() == {"erp": (3, 0, 2 * of_a, of_b)}


async def test_documents_of_graphql_are_counted(start: StartEnvironment, of_store: Any) -> None:
    changes, counts = of_store
    async with start(cache=KEPT, **changes) as environment:
        document = {"query": '{ supSearchMpn(q: "SN74S74N", limit: 2) { results { part { mpn } } } }'}
        for _ in range(2):
            url = f"{environment.proxy.url}/graphql"
            async with environment.proxy.session.post(url, json=document, headers={"token": "shop"}) as response:
                assert response.status == 200
        billed = environment.billed_parts
    assert await counts() == {"shop": (2, 1, billed, 0)}


async def test_stale_response_avoids_nothing(start: StartEnvironment, of_store: Any) -> None:
    changes, counts = of_store
    async with start(cache=KEPT, **changes) as environment:
        await environment.get(target(A))
        environment.time.advance(KEPT["seconds"] + 1)
        environment.sandbox.faults.replace(nexar_sandbox.parse_faults("5xx"))
        assert (await environment.get(target(A))).headers["x-cache"] == "stale"
    assert await counts() == {"erp": (2, 0, 0, 0)}


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_counts_of_two_services_on_one_store_add_up(
    start: StartEnvironment, request: pytest.FixtureRequest, tmp_path: Path, time: clock.ManualClock, kind: str
) -> None:
    url = request.getfixturevalue("redis_server").url if kind == "redis" else f"sqlite:{tmp_path}/state.sqlite"
    async with start() as environment:
        async with others(environment, *[settings(environment, url)] * 2) as (one, other):
            replies = [await one.get(target(A)) for _ in range(2)]
            await stored(environment, url, 1)
            replies.append(await other.get(target(A)))
        billed = environment.billed_parts
    assert [reply.headers["x-cache"] for reply in replies] == ["miss", "hit", "hit"]
    store = await opening.open_store(config.StoreUrl(url), time)
    assert await store.monthly_requests(MONTH) == [MonthlyRequests(MONTH, "demo", "1", 3, 2, 2 * billed, 0)]
    await store.aclose()
