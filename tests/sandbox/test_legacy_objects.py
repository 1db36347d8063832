"""The old service's objects: keys of their classes, redirects, click links, projections and lists (§1, §2, §3)."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from sandbox.legacy_client import LegacyClient, StartLegacy
from support import cases

from nexar_sandbox.legacy_v3 import projection

TEXAS = "5ec397c9af088104"


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Everything that has a class."""
    if isinstance(value, dict):
        if "__class__" in value:
            yield value
        for each in value.values():
            yield from _objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from _objects(each)


async def test_every_object_has_exactly_the_keys_of_its_class(all_parts: list[dict[str, Any]]) -> None:
    seen = set()
    for each in _objects(all_parts):
        name = each["__class__"]
        assert set(each) - {"__class__"} == set(projection.CLASSES[name]), name
        seen.add(name)
    assert seen == set(projection.CLASSES) - {"DocumentMetadata", "Category"}


async def test_click_links_have_the_api_key_of_the_request(start_legacy: StartLegacy) -> None:
    async with start_legacy(apikeys=("first001", "second02")) as old:
        for key in ("first001", "second02"):
            part = (await old.get(f"/parts/{TEXAS}", key)).json
            links = [offer["product_url"] for offer in part["offers"]]
            assert all(re.search(rf"\?country=US&ak={key}&sig=[0-9a-f]{{7}}&sid=\d+&ppid=\d+&", link) for link in links)


async def test_a_redirected_uid_returns_the_remaining_part(legacy: LegacyClient) -> None:
    part = await legacy.read("/parts/103cdb613d20cffb")
    assert part["uid"] == "bd4d768f82c5628a"
    assert "103cdb613d20cffb" in part["redirected_uids"]
    several = await legacy.read("/parts/get_multi?uid[]=103cdb613d20cffb&uid[]=bd4d768f82c5628a&uid[]=ffffffffffffffff")
    assert several == {"103cdb613d20cffb": part, "bd4d768f82c5628a": part}


async def test_fields_that_only_v3_had_are_present(all_parts: list[dict[str, Any]]) -> None:
    offers = [offer for part in all_parts for offer in part["offers"]]
    for name in ("octopart_rfq_url", "on_order_eta", "_custom", "factory_order_multiple", "multipack_quantity"):
        assert any(offer[name] for offer in offers), name
    assert {offer["seller"]["has_ecommerce"] for offer in offers} == {True}
    assert all(sheet["metadata"]["size_bytes"] for part in all_parts for sheet in part["datasheets"])
    assert any(part["external_links"]["evalkit_url"] for part in all_parts)
    assert any(each["seller"]["has_ecommerce"] is False for part in all_parts for each in part["broker_listings"])


@cases.parametrize("spelling")
async def test_array_parameters_are_accepted_in_every_spelling(legacy: LegacyClient, spelling: str) -> None:
    part = await legacy.read(f"/parts/{TEXAS}?{spelling}&include[]=compliante_documents")
    assert {"specs", "datasheets"} <= set(part)


async def test_an_attribution_without_a_name_has_no_sources(all_parts: list[dict[str, Any]]) -> None:
    """As v3 recorded it: a source has a name and a uid, and is left out otherwise."""
    attributions = [each for each in _objects(all_parts) if each["__class__"] == "Attribution"]
    assert {len(each["sources"]) for each in attributions} == {0, 1}
    assert all(source["name"] and source["uid"] for each in attributions for source in each["sources"])


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
async def test_sellers_have_all_recorded_names(legacy: LegacyClient, number: str, name: str, others: list[str]) -> None:
    for called in (name, *others):
        spelled = quote(called)
        (seller,) = (await legacy.read(f"/sellers/search?filter[fields][name][]={spelled}"))["results"]
        assert (seller["item"]["id"], seller["item"]["name"]) == (number, name)
        found = (await legacy.read(f"/sellers/search?q={spelled}"))["results"]
        assert name in [result["item"]["name"] for result in found]
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
