"""Tests of brands, sellers and categories with the sandbox: local searches, no cost (contract v3-rest.md §1, §1.1)."""

from typing import Any

from support import running_proxy
from together.environment import ProxyEnvironment, StartEnvironment


async def get(environment: ProxyEnvironment, target: str, status: int = 200) -> Any:
    response = await environment.proxy.get(f"{target}{'&' if '?' in target else '?'}apikey={running_proxy.KEY}")
    assert response.status == status, await response.text()
    return await response.json()


def names(reply: Any) -> list[str]:
    return [result["item"]["name"] for result in reply["results"]]


async def test_list_is_fetched_once_and_refreshed_daily_in_the_background(environment: ProxyEnvironment) -> None:
    for _ in range(3):
        await get(environment, "/v3/brands/search?q=texas")
        await get(environment, "/v3/brands/2239e3330e2df5fe")
    assert environment.sandbox.request_counts.graphql == 1
    environment.time.advance(86_400)
    for _ in range(3):
        assert names(await get(environment, "/v3/brands/search?q=texas"))[0] == "Texas Instruments"
    assert environment.sandbox.request_counts.graphql <= 2
    assert environment.billed_parts == 0


async def test_missing_list_gives_a_v3_error(start: StartEnvironment, unreachable_url: str) -> None:
    async with start(urls={"graphql_url": f"{unreachable_url}/graphql"}) as environment:
        reply = await get(environment, "/v3/brands/search?q=texas", 503)
        assert reply["__class__"] == "ServerErrorResponse"
        assert (await get(environment, "/v3/sellers/2c3be9310496fffc", 503))["__class__"] == "ServerErrorResponse"


async def test_no_pattern_blocks_the_event_loop(environment: ProxyEnvironment) -> None:
    patterns = ("*" * 1000 + "zq", "*e" * 400 + "zq", "e*" * 400)
    for pattern in patterns:
        assert (await get(environment, f"/v3/brands/search?q={pattern}"))["hits"] == 0
        assert (await get(environment, f"/v3/brands/search?filter[fields][name][]={pattern}"))["hits"] == 0
