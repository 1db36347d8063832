"""Tests of parts/search filtered by MPN against the sandbox: exact, complete over pages, with the expected cost."""

from typing import Any
from urllib.parse import quote

import pytest
from support import running_proxy
from together.environment import ProxyEnvironment

MPN = "filter[fields][mpn][]"
NUMBER = "SN74S74N"


async def search(environment: ProxyEnvironment, status: int = 200, /, **parameters: Any) -> Any:
    """A /parts/search; a list is a repeated parameter."""
    pairs = [
        (name, each) for name, value in parameters.items() for each in (value if isinstance(value, list) else [value])
    ]
    query = "&".join(f"{name}={quote(str(value))}" for name, value in pairs)
    response = await environment.proxy.get(f"/v3/parts/search?apikey={running_proxy.KEY}&{query}")
    assert response.status == status, await response.text()
    return await response.json()


def found(reply: Any) -> list[tuple[str, str]]:
    return [(result["item"]["mpn"], result["item"]["brand"]["name"]) for result in reply["results"]]


async def by_match(environment: ProxyEnvironment, number: str) -> set[str]:
    """The uids of all parts that have this number to the letter, by the other endpoint."""
    [result] = await environment.results({"mpn": number, "limit": 20}, more="&exact_only=1")
    return {item["uid"] for item in result["items"] if item["mpn"] == number}


async def test_mpn_filter_finds_all_parts_of_the_mpn_and_no_other(environment: ProxyEnvironment) -> None:
    reply = await search(environment, **{MPN: NUMBER, "limit": 100, "include[]": "specs"})
    assert {mpn for mpn, _ in found(reply)} == {NUMBER}
    assert {result["item"]["uid"] for result in reply["results"]} == await by_match(environment, NUMBER)
    assert reply["hits"] == len(reply["results"]) > 1
    assert reply["request"]["filter"]["fields"] == {"mpn": [NUMBER]}
    assert all(result["snippet"] for result in reply["results"])
    assert all("specs" in result["item"] for result in reply["results"])


@pytest.mark.parametrize("number", ["sn74s74n", "SN74-S74N", "SN74S74", "none-such"])
async def test_mpn_filter_is_exact_in_spelling(environment: ProxyEnvironment, number: str) -> None:
    reply = await search(environment, **{MPN: number})
    assert (reply["results"], reply["hits"]) == ([], 0)


async def test_mpn_filter_pages_are_consecutive_and_complete(environment: ProxyEnvironment) -> None:
    whole = await search(environment, **{MPN: NUMBER})
    pages = [
        await search(environment, **{MPN: NUMBER, "start": start, "limit": 1}) for start in range(whole["hits"] + 1)
    ]
    assert [page["hits"] for page in pages] == [whole["hits"]] * len(pages)
    assert [found(page) for page in pages] == [[each] for each in found(whole)] + [[]]


async def test_other_filters_apply_beside_an_mpn_filter(environment: ProxyEnvironment) -> None:
    whole = await search(environment, **{MPN: NUMBER, "limit": 20})
    for result in whole["results"]:
        brand = result["item"]["brand"]["name"]
        reply = await search(environment, **{MPN: NUMBER, "filter[fields][manufacturer.displayname][]": brand})
        assert {each["item"]["uid"] for each in reply["results"]} == {
            each["item"]["uid"] for each in whole["results"] if each["item"]["brand"]["name"] == brand
        }
    seller = "Digi-Key"
    reply = await search(environment, **{MPN: NUMBER, "filter[fields][offers.seller.name][]": seller})
    offered = [
        each["item"]["uid"]
        for each in whole["results"]
        if any(offer["seller"]["name"] == seller for offer in each["item"]["offers"])
    ]
    assert [each["item"]["uid"] for each in reply["results"]] == offered


async def test_stock_and_spec_filters_apply_beside_an_mpn_filter(environment: ProxyEnvironment) -> None:
    resistors = await search(environment, q="resistor", limit=20, **{"include[]": "specs"})
    item = next(each["item"] for each in resistors["results"] if "case_package" in each["item"]["specs"])
    [case] = item["specs"]["case_package"]["value"]
    fitting = await search(environment, **{MPN: item["mpn"], "filter[fields][specs.case_package.value][]": case})
    other = await search(environment, **{MPN: item["mpn"], "filter[fields][specs.case_package.value][]": "none-such"})
    stocked = await search(environment, **{MPN: item["mpn"], "filter[fields][avg_avail][]": "[1 TO *]"})
    assert [each["item"]["uid"] for each in fitting["results"]] == [item["uid"]]
    assert (other["results"], other["hits"]) == ([], 0)
    in_stock = any(offer["in_stock_quantity"] > 0 for offer in item["offers"])
    assert stocked["hits"] == int(in_stock)


async def test_several_mpns_are_alternatives(environment: ProxyEnvironment) -> None:
    resistors = await search(environment, q="resistor", limit=3)
    numbers = [each["item"]["mpn"] for each in resistors["results"]]
    reply = await search(environment, **{MPN: [*numbers, "none-such"], "limit": 100})
    assert [each["item"]["uid"] for each in reply["results"]] == [each["item"]["uid"] for each in resistors["results"]]
    same = await search(environment, **{"filter[queries][]": f"mpn:({' OR '.join(numbers)})", "limit": 100})
    assert found(same) == found(reply)


async def test_mpn_filter_results_can_be_sorted(environment: ProxyEnvironment) -> None:
    up, down = [
        found(await search(environment, **{MPN: NUMBER, "sortby": f"brand.name {direction}"}))
        for direction in ("asc", "desc")
    ]
    brands = [brand for _, brand in up]
    assert brands == sorted(brands, key=str.casefold)
    assert [brand for _, brand in down] == brands[::-1]
    assert len(set(brands)) > 1


async def test_mpn_filter_is_billed_for_all_upstream_results(environment: ProxyEnvironment) -> None:
    reply = await search(environment, **{MPN: NUMBER, "limit": 1})
    assert (len(reply["results"]), environment.billed_parts) == (1, reply["hits"])
    before = environment.billed_parts
    assert (await search(environment, **{MPN: NUMBER, "limit": 0}))["hits"] == reply["hits"]
    assert (await search(environment, **{MPN: "none-such"}))["hits"] == 0
    assert environment.billed_parts == before


async def test_query_beside_an_mpn_filter_is_refused_unless_equal(environment: ProxyEnvironment) -> None:
    same = await search(environment, **{MPN: NUMBER, "q": "sn74-s74n"})
    assert same["hits"] > 1
    refused = await search(environment, 400, **{MPN: NUMBER, "q": "flip-flop"})
    assert "q and a filter by mpn cannot be combined" in refused["message"]
