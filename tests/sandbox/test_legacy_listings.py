"""The old service's brands, sellers and categories: by uid, several at once, and searched (§1, §1.1, §3.2)."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
import yaml
from sandbox.legacy_client import LegacyClient
from support import cases

from nexar_sandbox.catalog import store
from nexar_sandbox.legacy_v3 import catalog_objects
from proxy.mapping import loader
from proxy.mapping import tables as proxys
from proxy.tools.compare.judging import unknown_uids


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


CATEGORIES = Path(catalog_objects.__file__).parents[1] / "catalog/data/categories.jsonl"
MAPPINGS = Path(__file__).parents[2] / "mappings"


def test_a_recorded_uid_is_found_by_id_or_name() -> None:
    known = catalog_objects.LegacyUids()
    assert known.of("Seller", "459", "Whoever") == "2c3be9310496fffc"
    assert known.of("Category", "4163", "Resistors") == "5c6a91606d4187ad"
    assert known.of("Brand", "212", "KEMET") == "6991a89b4423be56"
    assert known.of("Brand", "370", "Texas Instruments") != known.of("Manufacturer", "370", "Texas Instruments")


def test_the_newest_of_several_uids_is_returned_and_all_are_accepted() -> None:
    known = catalog_objects.LegacyUids()
    assert known.of("Seller", "3917", "Freelance Electronics") == "a1fc64f687d7723b"
    found = map(known.current, ("029cc79618fcd15b", "a1fc64f687d7723b", "cd01000bfc2916c6", "0123456789abcdef"))
    assert list(found) == ["a1fc64f687d7723b", "a1fc64f687d7723b", "5c6a91606d4187ad", "0123456789abcdef"]


@pytest.mark.parametrize("kind", ["Seller", "Brand", "Manufacturer", "Category"])
def test_other_uids_are_opaque_and_differ_from_those_of_the_proxy(kind: catalog_objects.Kind) -> None:
    known, theirs = catalog_objects.LegacyUids(), proxys.Uids(kind, [])
    made = [known.of(kind, str(number), "Nobody on record") for number in range(500)]
    assert len(set(made)) == len({uid[:6] for uid in made}) == 500
    assert all(re.fullmatch("[0-9a-f]{16}", uid) for uid in made)
    assert [uid for uid in made if theirs.target(uid)] == []


def test_a_source_that_is_no_seller_is_recorded_or_gets_its_own_digest() -> None:
    known, theirs = catalog_objects.LegacyUids(), proxys.Uids("Source", [])
    assert known.of("Source", "Ciiva", "Ciiva") == "8c5c4956cfa65f9b"
    assert known.of("Source", "Nobody", "Nobody") != known.of("Source", "Somebody", "Somebody")
    assert known.of("Source", "Nobody", "Nobody") != theirs.digest("Nobody")


def test_a_source_that_is_a_seller_has_its_v3_name_and_uid() -> None:
    catalog = store.open_catalog()
    made = catalog_objects.CompanyObjects(catalog, catalog_objects.LegacyUids())
    sellers = [*catalog.reference.sellers]
    credited = [made.credited(each.name)["sources"][0] for each in sellers]
    shown = [made.seller(each) for each in sellers]
    assert [(each["uid"], each["name"]) for each in credited] == [(each["uid"], each["name"]) for each in shown]
    names = [made.credited(name)["sources"][0]["name"] for name in ("RS", "Arrow Electronics, Inc.", "Nobody")]
    assert names == ["RS Components", "Arrow Electronics", "Nobody"]
    assert made.credited("")["sources"] == []
    catalog.close()


def test_categories_of_the_sandbox_that_are_on_record_have_their_uids() -> None:
    known, sent = catalog_objects.LegacyUids(), loader.load_uids(MAPPINGS, None)["Category"]
    recorded = set(unknown_uids.RECORDED.read_text("utf-8").split())
    categories = map(msgspec.json.decode, CATEGORIES.read_bytes().splitlines())
    uids = {
        each["name"]: (known.of("Category", each["id"], each["name"]), sent.uid(each["id"], each["name"]))
        for each in categories
    }
    names = {name for name, each in uids.items() if recorded.intersection(each)}
    assert names == {
        *("Capacitors", "Chip SMD Resistors", "Diodes", "Discrete Semiconductors", "Electronic Parts", "Inductors"),
        *("Integrated Circuits (ICs)", "MOSFETs", "Passive Components", "Resistors", "Through Hole Resistors"),
    }
    assert all(uids[name][0] == uids[name][1] for name in names)


def test_the_recorded_uids_equal_the_table_of_the_proxy() -> None:
    """Neither reads the other's: whoever learns a uid writes it into both."""
    lines = [
        msgspec.json.decode(line, type=catalog_objects.RecordedUid)
        for line in catalog_objects.RECORDED.read_bytes().splitlines()
    ]
    table = yaml.safe_load((MAPPINGS / "uids.yaml").read_text("utf-8"))
    listed = {
        (kind, each["uid"], each["name"], tuple(each.get("also", ())), each.get("id"), each.get("year", 0))
        for kind, entries in table.items()
        for each in entries
    }
    assert {(line.kind, line.uid, line.name, line.also, line.id, line.year) for line in lines} == listed
