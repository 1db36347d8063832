"""The old service's brands, sellers and categories: by uid, several at once, and searched (§1, §1.1, §3.2)."""

from typing import Any
from urllib.parse import quote

import pytest
from sandbox.legacy_client import LegacyClient
from support import cases


async def _names(legacy: LegacyClient, target: str) -> list[str]:
    return [result["item"]["name"] for result in (await legacy.read(target))["results"]]


async def test_an_object_is_returned_bare_with_the_recorded_keys(legacy: LegacyClient) -> None:
    assert await legacy.read("/brands/2239e3330e2df5fe") == {
        "__class__": "Brand",
        "uid": "2239e3330e2df5fe",
        "name": "Texas Instruments",
        "homepage_url": "http://ti.com",
    }
    digikey = {
        "__class__": "Seller",
        "uid": "2c3be9310496fffc",
        "id": "459",
        "name": "Digi-Key",
        "display_flag": "US",
        "has_ecommerce": True,
        "homepage_url": "http://www.digikey.com",
    }
    assert await legacy.read("/sellers/2c3be9310496fffc") == await legacy.read("/seller/2c3be9310496fffc") == digikey


async def test_a_categorys_ancestors_run_from_the_root_to_the_parent(legacy: LegacyClient) -> None:
    resistors = await legacy.read("/categories/5c6a91606d4187ad")
    assert resistors["ancestor_names"] == ["Electronic Parts", "Passive Components"]
    assert resistors["ancestor_uids"] == ["8a1e4714bb3951d9", "7542b8484461ae85"]
    assert resistors["parent_uid"] == "7542b8484461ae85"
    children = await legacy.read(
        "/categories/get_multi?" + "&".join(f"uid[]={uid}" for uid in resistors["children_uids"])
    )
    assert {child["parent_uid"] for child in children.values()} == {resistors["uid"]}
    root = await legacy.read("/categories/8a1e4714bb3951d9")
    assert (root["parent_uid"], root["ancestor_uids"]) == (None, [])


async def test_imagesets_of_categories_must_be_included(legacy: LegacyClient) -> None:
    assert "imagesets" not in await legacy.read("/categories/5c6a91606d4187ad")
    with_pictures = await legacy.read("/categories/5c6a91606d4187ad?include[]=imagesets")
    assert with_pictures["imagesets"] == []


async def test_get_multi_is_keyed_by_uid_without_unknown_uids(legacy: LegacyClient) -> None:
    found = await legacy.read(
        "/sellers/get_multi?uid[0]=2c3be9310496fffc&uid[1]=0000000000000000&uids[0]=a5e060ea85e77627"
    )
    assert {uid: seller["name"] for uid, seller in found.items()} == {
        "2c3be9310496fffc": "Digi-Key",
        "a5e060ea85e77627": "Mouser",
    }


@pytest.mark.parametrize("uids", [[], [f"{number:016x}" for number in range(101)]])
async def test_get_multi_needs_one_to_a_hundred_uids(legacy: LegacyClient, uids: list[str]) -> None:
    assert (await legacy.get("/brands/get_multi?" + "&".join(f"uid[]={uid}" for uid in uids))).status == 400


async def test_names_are_listed_before_aliases(legacy: LegacyClient) -> None:
    names = await _names(legacy, "/brands/search?q=texas")
    assert names[0] == "Texas Instruments"
    assert {"Burr Brown", "Klixon"} <= set(names)


async def test_the_echo_has_the_defaults_and_snippets_are_null(legacy: LegacyClient) -> None:
    body = await legacy.read("/brands/search?q=texas&limit=1&filter[fields][name]=Texas+Instruments")
    assert body["request"] == {
        "__class__": "SearchRequest",
        "q": "texas",
        "start": 0,
        "limit": 1,
        "sortby": "score desc",
        "filter": {"fields": {"name": ["Texas Instruments"]}, "queries": []},
        "facet": {"fields": {}, "queries": []},
        "stats": {},
    }
    assert set(body) == {
        "__class__", "request", "results", "hits", "msec", "facet_results", "stats_results", "spec_metadata"
    }  # fmt: skip
    assert body["results"][0]["snippet"] is None


@cases.parametrize("mistake")
async def test_an_invalid_parameter_gets_400(legacy: LegacyClient, mistake: str) -> None:
    response = await legacy.get(f"/brands/search?q=&{mistake}")
    assert (response.status, response.json["__class__"]) == (400, "ClientErrorResponse")


# Names of sellers: that of the newest recording, and by which KiCost picks offers; then older ones and the catalog's.
SELLERS = [
    ("3261", "RS Components", ["RS"]),
    ("14", "Allied Electronics & Automation", ["Allied Electronics"]),
    ("4089", "Chip One Stop Japan", ["Chip One Stop"]),
    ("1106", "Arrow Electronics", ["Arrow Electronics, Inc."]),
]


@pytest.mark.parametrize("number, name, others", SELLERS)
async def test_sellers_are_found_by_all_recorded_names(
    legacy: LegacyClient, number: str, name: str, others: list[str]
) -> None:
    for called in (name, *others):
        spelled = quote(called)
        (seller,) = (await legacy.read(f"/sellers/search?filter[fields][name][]={spelled}"))["results"]
        assert (seller["item"]["id"], seller["item"]["name"]) == (number, name)
        assert name in await _names(legacy, f"/sellers/search?q={spelled}")
        sold = await legacy.read(f"/parts/search?limit=5&filter[fields][offers.seller.name][]={spelled}")
        assert sold["hits"] > 0
        assert all(name in _sellers(result["item"]) for result in sold["results"])
        facet = f"facet[fields][offers.seller.name][include]=1&filter[fields][offers.seller.name][]={spelled}"
        counts = await legacy.read(f"/parts/search?limit=0&facet[fields][offers.seller.name][limit]=100&{facet}")
        values = {each["value"] for each in counts["facet_results"]["fields"]["offers.seller.name"]["facets"]}
        assert name in values
        assert not values & set(others)
        mpn = sold["results"][0]["item"]["mpn"]
        assert all(name in _sellers(item) for item in await legacy.items({"mpn": mpn, "seller": called}))


def _sellers(part: dict[str, Any]) -> set[str]:
    return {offer["seller"]["name"] for offer in part["offers"]}
