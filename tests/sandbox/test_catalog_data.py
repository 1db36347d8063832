"""Holds the shipped catalog files to the facts that other tests, docs and clients lean on.

The files are read as plain JSON lines, not through the loader, so that a fault in one is not hidden by the
other. Known ids and numbers: contract v3-rest.md §1, §4 and graphql.md §2.3, §2.6.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[2] / "sandbox" / "nexar_sandbox" / "catalog" / "data"


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]


FILES = {name: read(name) for name in ("parts", "companies", "categories", "attributes")}
PARTS, COMPANIES, CATEGORIES, ATTRIBUTES = FILES.values()
COMPANY = {row["id"]: row for row in COMPANIES}
CATEGORY = {row["id"]: row for row in CATEGORIES}
ATTRIBUTE = {row["shortname"]: row for row in ATTRIBUTES}
SELLERS = {row["id"]: row for row in COMPANIES if "seller" in row["roles"]}


def named(mpn: str) -> dict[str, dict[str, Any]]:
    """The parts with exactly this number, by maker."""
    return {COMPANY[p["manufacturer"]]["name"]: p for p in PARTS if p["mpn"] == mpn}


def test_the_catalog_is_large_and_varied() -> None:
    assert len(PARTS) >= 330
    assert len({p["manufacturer"] for p in PARTS}) >= 32
    assert len({p["category"] for p in PARTS}) >= 20
    assert len(ATTRIBUTES) == 185


@pytest.mark.parametrize("name", FILES)
def test_ids_are_numeric_and_unique(name: str) -> None:
    ids = [row["id"] for row in FILES[name]]
    assert len({one for one in ids if re.fullmatch(r"[1-9]\d{0,8}", one)}) == len(ids)


def test_v3_uids_are_16_hex_digits_and_unique_with_the_redirected_ones() -> None:
    uids = [uid for p in PARTS for uid in (p["v3uid"], *p.get("redirected", ()))]
    assert len({uid for uid in uids if re.fullmatch("[0-9a-f]{16}", uid)}) == len(uids)


def test_slugs_paths_shortnames_and_the_numbers_of_a_maker_are_unique() -> None:
    keys = [row["slug"] for row in COMPANIES] + [row["path"] for row in CATEGORIES]
    keys += [row["shortname"] for row in ATTRIBUTES] + [f"{p['manufacturer']} {p['mpn']}" for p in PARTS]
    assert [key for key, count in Counter(keys).items() if count > 1] == []


def test_every_reference_of_a_part_resolves() -> None:
    leaves = CATEGORY.keys() - {row["parentId"] for row in CATEGORIES}
    for p in PARTS:
        assert "manufacturer" in COMPANY[p["manufacturer"]]["roles"], p["mpn"]
        assert p["category"] in leaves, p["mpn"]
        assert p.get("sku", {}).keys() | p.get("codes", {}).keys() <= SELLERS.keys(), p["mpn"]


def test_the_category_tree_is_connected() -> None:
    loose = [row["id"] for row in CATEGORIES if not row["path"].startswith(CATEGORY[row["parentId"]]["path"])]
    assert (loose, CATEGORY["4161"]["parentId"]) == ([], "4161")


def test_every_part_has_text_compliance_and_specs_of_the_right_type() -> None:
    for p in PARTS:
        assert all((p["description"], p["specs"]["lifecyclestatus"], p["specs"]["rohs"])), p["mpn"]
        assert len(p["specs"]) >= 6, p["mpn"]
        for shortname, value in p["specs"].items():
            wanted = str if ATTRIBUTE[shortname]["valueType"] == "text" else int | float
            assert isinstance(value, wanted), (p["mpn"], shortname, value)


SHARED = {"SN74S74N": 4, "MBR1020VL": 2, "LM358N": 4, "1N4148": 3, "2N3904": 3, "NE555N": 3}
TWINS = """ATMEGA328P-PU|ATMEGA328PPU; 1.5SMC68CA|1.5SMC6.8CA; CRCW06030000Z0EA|CRCW0603-0000Z0EA;
LGR971-KN-1-0-20-R18|LG R971-KN-1-0-20-R18"""
RECORDED = """
71048703 Kingbright APTF1616LSEEZGKQBKC, 19030212 Lite-On LTST-C193KSKT-5A, 55421667 Panasonic ERJ-3EKF3000V,
55403646 Panasonic ERJ-3EKF1001V, 55421850 Panasonic ERJ-3EKF6040V, 9251210 Panasonic ERJ-3EKF4700V,
276131 Samtec TMM-103-01-G-S, 10598856 Memory Protection Devices BU2032SM-BT-GTR, 84329765 onsemi MBR1020VL,
82008699 Panjit MBR1020VL, 9145152 KEMET C0603C475K8PACTU, 97568376 Adafruit Industries 4062,
24403092 Rohm RUM001L02T2CL, 23827794 Fluke FLUKE-424D"""
REDIRECTED = """103cdb613d20cffb bd4d768f82c5628a 206062-1, 843f4dbbd9275bf8 5ec397c9af088104 SN74S74N,
02afc8ea3f09dd68 eddc25bd5de8321b FLUKE-424D"""


@pytest.mark.parametrize("mpn", SHARED)
def test_some_numbers_belong_to_several_makers(mpn: str) -> None:
    assert len(named(mpn)) == SHARED[mpn]


@pytest.mark.parametrize("twins", re.split(r";\s", TWINS))
def test_some_numbers_of_a_maker_differ_in_punctuation_alone(twins: str) -> None:
    mpn, twin = twins.split("|")
    assert named(mpn).keys() == named(twin).keys() != set()
    assert re.sub(r"\W", "", mpn) == re.sub(r"\W", "", twin)


@pytest.mark.parametrize("mpn", ["SN74S74N", "LM358", "ATMEGA328P-AU", "1N4148", "2N3904", "AD9361BBCZ"])
def test_some_part_numbers_are_prefixes_of_others(mpn: str) -> None:
    assert {p["mpn"] for p in PARTS if p["mpn"].startswith(mpn)} > {mpn}


@pytest.mark.parametrize("fact", re.split(r",\s+", RECORDED.strip()))
def test_recorded_parts_keep_their_numeric_ids(fact: str) -> None:
    id_, *maker, mpn = fact.split(" ")
    assert named(mpn)[" ".join(maker)]["id"] == id_


@pytest.mark.parametrize("fact", re.split(r",\s", REDIRECTED))
def test_redirected_uids_lead_to_their_part(fact: str) -> None:
    old, *new = fact.split()
    assert [[p["v3uid"], p["mpn"]] for p in PARTS if old in p.get("redirected", ())] == [new]


def test_order_code_67k1122_of_newark_is_the_texas_instruments_part() -> None:
    found = [(p["id"], seller) for p in PARTS for seller, code in p.get("sku", {}).items() if code == "67K1122"]
    assert found == [(named("SN74S74N")["Texas Instruments"]["id"], "2402")]


def test_aliases_of_makers_are_known() -> None:
    other = {(alias, row["name"]) for row in COMPANIES for alias in row["aliases"]}
    assert {("MPD", "Memory Protection Devices"), ("Vishay Lite-On", "Lite-On"), ("Kemet", "KEMET")} <= other
    assert {(brand, "Texas Instruments") for brand in ("TAOS", "Klixon", "Burr Brown", "Nextgen")} <= other


def test_sellers_of_every_kind_exist() -> None:
    kinds = Counter((row["isBroker"], row.get("authorized", True)) for row in SELLERS.values())
    assert min(kinds[True, False], kinds[False, False], kinds[False, True]) >= 5
    assert {"GBP", "EUR", "SGD", "JPY", "CNY"} <= {row.get("currency", "USD") for row in SELLERS.values()}


def test_all_edge_cases_exist() -> None:
    assert {code for p in PARTS for code in p.get("codes", {}).values()} == {-1, -2, -3, -4}
    assert {"none", "brokers", "nostock"} <= {p.get("offers") for p in PARTS}
    assert all(sum(p.get(key) is False for p in PARTS) >= 5 for key in ("datasheet", "images", "cad"))
    rare = ("aka", "series", "documents", "referenceDesigns", "factoryLeadDays", "freeSample")
    assert all(sum(key in p for p in PARTS) >= 5 for key in rare)
