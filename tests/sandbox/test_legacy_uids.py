"""The uids of the old service: those on record, the formula for all others, and the proxy's table beside them."""

import hashlib
from pathlib import Path

import msgspec
import pytest
import yaml

from proxy.sandbox.legacy_v3 import uids

MAPPINGS = Path(__file__).parents[2] / "mappings"


def test_a_uid_on_record_is_found_by_number_else_by_name() -> None:
    known = uids.Uids()
    assert known.of("Seller", "459", "Whoever") == "2c3be9310496fffc"
    assert known.of("Category", "4163", "Resistors") == "5c6a91606d4187ad"
    assert known.of("Brand", "370", "Texas Instruments") != known.of("Manufacturer", "370", "Texas Instruments")


@pytest.mark.parametrize(
    "kind, uid",
    [
        ("Seller", "5e11e400000003e8"),
        ("Brand", "b4a2d000000003e8"),
        ("Manufacturer", "3a2fac00000003e8"),
        ("Category", "ca7e6000000003e8"),
    ],
)
def test_every_other_uid_says_what_it_is_of_and_its_number(kind: uids.Kind, uid: str) -> None:
    assert uids.Uids().of(kind, "1000", "Nobody on record") == uid


def test_a_source_that_is_not_on_record_is_a_digest_of_its_name() -> None:
    known = uids.Uids()
    assert known.of_source("Farnell") == "58989d9272cd8b5f"
    assert known.of_source("Nobody") == hashlib.blake2b(b"Nobody", digest_size=8).hexdigest()


def test_the_old_services_record_and_the_proxys_table_say_the_same() -> None:
    """Neither reads the other's: whoever learns a uid writes it into both."""
    lines = [msgspec.json.decode(line, type=uids.Line) for line in uids.RECORDED.read_bytes().splitlines()]
    table = yaml.safe_load((MAPPINGS / "uids.yaml").read_text("utf-8"))
    listed = {(kind, each["uid"], each["name"], each.get("id")) for kind, entries in table.items() for each in entries}
    assert {(line.kind, line.uid, line.name, line.id) for line in lines} == listed
