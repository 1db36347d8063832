"""The uids of the old service: recorded and generated ones, and the proxy's table of uids."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from nexar_sandbox.catalog import store
from nexar_sandbox.legacy_v3 import catalog_objects
from proxy.mapping import loader
from proxy.mapping import transforms as proxys
from proxy.tools.compare.judging import unknown_uids

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
    known = catalog_objects.LegacyUids()
    assert known.of("Source", "Ciiva", "Ciiva") == "8c5c4956cfa65f9b"
    assert known.of("Source", "Nobody", "Nobody") != known.of("Source", "Somebody", "Somebody")
    assert not known.of("Source", "Nobody", "Nobody").startswith(proxys.TAGS["Source"])


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
    categories = map(msgspec.json.decode, CATEGORIES.read_bytes().splitlines())
    uids = {
        each["name"]: (known.of("Category", each["id"], each["name"]), sent.uid(each["id"], each["name"]))
        for each in categories
    }
    names = {name for name, each in uids.items() if unknown_uids.RECORDED.intersection(each)}
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
