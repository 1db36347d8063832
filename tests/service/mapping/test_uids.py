"""Tests of v3 uids: recorded, configured by a site, and reversible (contract graphql.md §1.5)."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import errors
from proxy.kit import shipped
from proxy.mapping import loader, transforms
from proxy.mapping.transforms import Uids

MAPPINGS = shipped("mappings")
NUMBERED = ("Seller", "Brand", "Manufacturer", "Category")
RECORDED = [
    (kind, each)
    for kind, entries in yaml.safe_load((MAPPINGS / "uids.yaml").read_text("utf-8")).items()
    if kind != "Source"
    for each in entries
]
ids = st.integers(0, 2**40 - 1).map(str)
OLD, NEW = "1" * 16, "2" * 16


@pytest.fixture(scope="session")
def book(mappings: loader.Mappings) -> dict[str, Uids]:
    return mappings.tables.uids


@pytest.fixture
def site_uids(tmp_path: Path) -> Callable[[str], dict[str, Uids]]:
    """The shipped uids with a table of a site's own."""

    def read(text: str) -> dict[str, Uids]:
        (tmp_path / "ours.yaml").write_text(text, encoding="utf-8")
        return loader.load_uids(MAPPINGS, tmp_path / "ours.yaml")

    return read


@given(st.sampled_from(NUMBERED), ids)
def test_computed_uid_has_sixteen_hex_digits_and_is_reversible(kind: str, number: str) -> None:
    made = Uids(kind, [])
    uid = made.uid(number, "any name")
    assert re.fullmatch("[0-9a-f]{16}", uid)
    assert made.target(uid) == transforms.UidTarget(number)


@pytest.mark.parametrize("kind", NUMBERED)
def test_uid_of_another_kind_resolves_to_nothing(kind: str, book: dict[str, Uids]) -> None:
    for other in set(NUMBERED) - {kind}:
        assert book[kind].target(book[other].uid("123456", "n")) is None


@pytest.mark.parametrize("kind", NUMBERED)
@pytest.mark.parametrize("number", ["", "x", "-1", str(2**40), "1.5", "0x1"])
def test_id_beyond_forty_bits_is_an_error(kind: str, number: str, book: dict[str, Uids]) -> None:
    with pytest.raises(ValueError, match=r"."):
        book[kind].uid(number, "no such name")


@cases.parametrize("kind, number, name, uid")
def test_newest_recorded_uid_is_sent(kind: str, number: str, name: str, uid: str, book: dict[str, Uids]) -> None:
    assert book[kind].uid(number, name) == uid


def test_every_recorded_uid_resolves_to_its_object(book: dict[str, Uids]) -> None:
    for kind, entry in RECORDED:
        assert re.fullmatch("[0-9a-f]{16}", entry["uid"])
        target = book[kind].target(entry["uid"])
        assert target is not None
        assert (target.id, target.names[0]) == (entry.get("id", target.id), entry["name"]), entry
        assert entry["uid"] in book[kind].on_record(entry.get("id", "999999999"), entry["name"])[1], entry
        assert not any(entry["uid"].startswith(tag) for tag in transforms.TAGS.values()), entry


def test_entry_without_an_id_has_that_of_any_of_its_names() -> None:
    """Whichever of them is newer, and whichever name they share."""
    with_id = transforms.KnownUid(OLD, "Acme", "4711", ("Acme Parts",), 2016)
    for year in (2015, 2017):
        book = Uids("Brand", [with_id, transforms.KnownUid(NEW, "ACME PARTS", year=year)])
        assert [(book.target(uid) or transforms.UidTarget(None)).id for uid in (OLD, NEW)] == ["4711", "4711"]
        assert book.uid("4711", "x") == (NEW if year == 2017 else OLD)
        assert {OLD, NEW} <= set(book.on_record("4711", "x")[1])


def test_sent_uid_is_of_the_newest_year(book: dict[str, Uids]) -> None:
    for kind, entry in RECORDED:
        sent = book[kind].uid(entry.get("id", "999999999"), entry["name"])
        years = {each["uid"]: each.get("year", 0) for known, each in RECORDED if known == kind}
        assert years[sent] >= entry.get("year", 0), entry


def test_unrecorded_source_has_a_stable_digest(mappings: loader.Mappings) -> None:
    uid = mappings.transforms["source_uid"]
    somebody, again, else_ = (uid(name, {}) for name in ("Somebody new", "Somebody new", "Somebody else"))
    assert somebody == again != else_
    assert re.fullmatch("50c4ce[0-9a-f]{10}", somebody)


def test_site_uids_override_shipped_ones_which_stay_accepted(
    site_uids: Callable[[str], dict[str, Uids]],
) -> None:
    ours = site_uids(
        "Seller:\n"
        f'  - {{uid: "{NEW}", name: "RS Components", year: 2014}}\n'
        f'  - {{uid: "{OLD}", name: "Zoro", id: "8284", year: 2013}}\n'
        f'Brand:\n  - {{uid: "2239e3330e2df5fe", name: "Burr Brown"}}\n'
    )
    assert (ours["Seller"].uid("3261", "RS"), ours["Seller"].name("3261", "RS")) == (NEW, "RS Components")
    assert ours["Seller"].on_record("3261", "RS")[1] == ["5e11e40000000cbd", "fbaa3ea0de71286d", NEW, NEW]
    assert ours["Seller"].target(OLD) == ("8284", ("Zoro",))
    assert ours["Brand"].uid("5", "Burr Brown") == "2239e3330e2df5fe"
    assert ours["Brand"].on_record("5", "Burr Brown")[0] == ["Burr Brown"] * 2  # shipped and ours
    assert ours["Brand"].uid("370", "Texas Instruments") != "2239e3330e2df5fe"  # one uid stands for one brand


def test_site_may_give_a_source_another_uid_than_the_seller(
    site_uids: Callable[[str], dict[str, Uids]],
) -> None:
    ours = site_uids(f'Source:\n  - {{uid: "{NEW}", name: "Newark"}}\n')
    assert (transforms.source_uids(ours)["newark"], ours["Seller"].uid("2402", "Newark")) == (NEW, "d294179ef2900153")


@pytest.mark.parametrize(
    "text, message",
    [
        ('Seller:\n  - {uid: "ABC", name: x}\n', r"^ours\.yaml:2:6: uid 'ABC' is not 16 hex digits"),
        (f'Brand:\n  - {{uid: "{OLD}", name: " "}}\n', r"^ours\.yaml:2:\d+: name is empty"),
        (f'Brand:\n  - {{uid: "{OLD}", name: x, id: "7a"}}\n', r"^ours\.yaml:2:\d+: id '7a' is not .* numeric id"),
        (f'Brand:\n  - {{uid: "{OLD}", name: x, number: "7"}}\n', r"^ours\.yaml:2:\d+: .*number"),
        (f'Brand:\n  - {{uid: "{OLD}", name: x}}\n  - {{uid: "{OLD}", name: y}}\n', r"^ours\.yaml:3:.*ours\.yaml:2:"),
        ("Maker: []\n", r"^ours\.yaml:1:1: no kind 'Maker'; there are Seller, Brand"),
    ],
)
def test_mistake_in_a_site_table_names_file_line_and_value(
    site_uids: Callable[[str], dict[str, Uids]], text: str, message: str
) -> None:
    with pytest.raises(errors.ConfigError, match=message):
        site_uids(text)
