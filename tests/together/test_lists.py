"""Tests of brands, sellers and categories with the sandbox: local searches, no cost (contract v3-rest.md §1, §1.1)."""

from collections import defaultdict
from collections.abc import Iterator
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


async def test_category_is_found_by_the_name_that_v3_gave_it(environment: ProxyEnvironment) -> None:
    """v3 wrote Through-Hole Resistors, the service writes Through Hole Resistors; its id is not on record."""
    [found] = (await get(environment, "/v3/categories/search?q=through-hole+resistors"))["results"]
    uid = found["item"]["uid"]
    assert (uid, found["item"]["name"]) == ("91ee5ce4a8204a29", "Through Hole Resistors")
    by_name = await get(environment, "/v3/categories/search?filter[fields][name][]=Through-Hole+Resistors")
    assert names(by_name) == ["Through Hole Resistors"]
    parts = await get(
        environment, f"/v3/parts/search?q=resistor&filter[fields][category_uids][]={uid}&include[]=category_uids"
    )
    assert 0 < parts["hits"] == len(parts["results"]) <= found["item"]["num_parts"]
    assert all(uid in each["item"]["category_uids"] for each in parts["results"])


async def test_source_that_is_a_seller_has_the_uid_of_the_seller(environment: ProxyEnvironment) -> None:
    include = "".join(f"&include[]={name}" for name in ("descriptions", "datasheets", "imagesets"))
    uids: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for q in ("resistor", "diode", "regulator"):
        found = await get(environment, f"/v3/parts/search?q={q}&limit=50{include}")
        for each in objects(found):
            uids[each["__class__"]][each["name"]].add(each["uid"])
    named = [name for name in uids["Source"] if name in uids["Seller"]]
    assert len(named) > 20
    assert [name for name in named if uids["Source"][name] != uids["Seller"][name]] == []
    assert environment.sandbox.request_counts.graphql == 4  # three searches, and the list of sellers


def objects(value: Any) -> Iterator[Any]:
    """Yield the sellers and sources in a response."""
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(each)
    if isinstance(value, dict) and value.get("__class__") in {"Seller", "Source"}:
        yield value
