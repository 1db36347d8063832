"""Tests of brands, sellers and categories with the sandbox: local searches, no cost (contract v3-rest.md §1, §1.1)."""

from typing import Any

import pytest
from support import running_proxy
from together.environment import ProxyEnvironment, StartEnvironment

ROOT = "8a1e4714bb3951d9"


async def get(environment: ProxyEnvironment, target: str, status: int = 200) -> Any:
    response = await environment.proxy.get(f"{target}{'&' if '?' in target else '?'}apikey={running_proxy.KEY}")
    assert response.status == status, await response.text()
    return await response.json()


def names(reply: Any) -> list[str]:
    return [result["item"]["name"] for result in reply["results"]]


async def test_search_for_texas_ranks_texas_instruments_before_its_brands(environment: ProxyEnvironment) -> None:
    reply = await get(environment, "/v3/brands/search?q=texas")
    first, *others = names(reply)
    assert first == "Texas Instruments"
    assert {"Burr Brown", "TAOS", "Klixon", "Nextgen"} <= set(others)
    assert reply["results"][0]["item"]["uid"] == "2239e3330e2df5fe"
    assert [result["snippet"] for result in reply["results"]] == [None] * reply["hits"]
    assert not {"user_country", "user_currency"} & set(reply)


async def test_wildcard_search_ranks_newark_first(environment: ProxyEnvironment) -> None:
    assert names(await get(environment, "/v3/sellers/search?q=*newark*"))[0] == "Newark"


@pytest.mark.parametrize("path, least", [("brands", 50), ("sellers", 100), ("categories", 100)])
async def test_list_pages_are_consecutive_and_complete(environment: ProxyEnvironment, path: str, least: int) -> None:
    first = await get(environment, f"/v3/{path}/search?limit=100&sortby=name+asc")
    second = await get(environment, f"/v3/{path}/search?limit=100&start=100&sortby=name+asc")
    found = names(first) + names(second)
    assert first["hits"] == len(found) >= least
    assert found == sorted(found, key=str.casefold)
    objects = [result["item"] for page in (first, second) for result in page["results"]]
    assert len({each["uid"] for each in objects}) == len(objects)


@pytest.mark.parametrize("path", ["brands", "sellers", "categories"])
async def test_every_listed_object_is_found_by_uid(environment: ProxyEnvironment, path: str) -> None:
    found = [result["item"] for result in (await get(environment, f"/v3/{path}/search?limit=100"))["results"]]
    by_uid = await get(environment, f"/v3/{path}/get_multi?" + "&".join(f"uid[]={each['uid']}" for each in found))
    assert by_uid == {each["uid"]: each for each in found}
    assert await get(environment, f"/v3/{path}/{found[7]['uid']}") == found[7]


async def test_categories_form_a_tree(environment: ProxyEnvironment) -> None:
    found = {
        result["item"]["uid"]: result["item"]
        for start in (0, 100)
        for result in (await get(environment, f"/v3/categories/search?limit=100&start={start}"))["results"]
    }
    for uid, each in found.items():
        assert all(found[child]["parent_uid"] == uid for child in each["children_uids"])
        assert each["ancestor_uids"][-1:] == ([each["parent_uid"]] if each["parent_uid"] else [])
        assert each["ancestor_names"] == [found[above]["name"] for above in each["ancestor_uids"]]
    assert [uid for uid, each in found.items() if each["parent_uid"] is None] == [ROOT]


async def test_filters_facets_and_stats_agree(environment: ProxyEnvironment) -> None:
    counted = "facet[fields][parent_uid][include]=1&stats[num_parts][include]=1"
    reply = await get(environment, f"/v3/categories/search?limit=100&{counted}")
    top = reply["facet_results"]["fields"]["parent_uid"]["facets"][0]
    below = await get(
        environment, f"/v3/categories/search?limit=100&filter[fields][parent_uid][]={top['value']}&{counted}"
    )
    assert below["hits"] == top["count"] == len(below["results"])
    sizes = [result["item"]["num_parts"] for result in below["results"]]
    stats = below["stats_results"]["num_parts"]
    assert (stats["min"], stats["max"], stats["count"]) == (min(sizes), max(sizes), len(sizes))
    assert stats["mean"] == pytest.approx(sum(sizes) / len(sizes))
    assert reply["facet_results"]["fields"]["parent_uid"]["missing"] == 1


async def test_unknown_field_is_refused_with_the_known_ones(environment: ProxyEnvironment) -> None:
    for asked in ("filter[fields][x][]=1", "filter[queries][]=x:1", "sortby=x+asc", "facet[fields][x][include]=1"):
        for q in ("", "none-such"):
            reply = await get(environment, f"/v3/sellers/search?q={q}&{asked}", 400)
            assert reply["message"] == (
                "there is no field 'x'; there are uid, name, homepage_url, display_flag, has_ecommerce, id"
            )


@pytest.mark.parametrize("name", ["brands", "sellers", "categories"])
async def test_unknown_uid_is_a_404(environment: ProxyEnvironment, name: str) -> None:
    reply = await get(environment, f"/v3/{name}/ffffffffffffffff", 404)
    assert reply["__class__"] == "ClientErrorResponse"


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
