"""v3 uids that can be turned back, and v3's names of specs (contract graphql.md §1.5, §10.5)."""

import re
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import errors
from proxy.mapping import loader, tables
from proxy.mapping.specs import Source, SpecNames

KINDS = ("Seller", "Brand", "Manufacturer", "Category")
ids = st.integers(0, 2**40 - 1).map(str)


@pytest.fixture(scope="session")
def book(rulebook: loader.Rulebook) -> tables.Tables:
    return rulebook.tables


@given(st.sampled_from(KINDS), ids)
def test_a_computed_uid_is_sixteen_hex_digits_and_can_be_turned_back(kind: str, number: str) -> None:
    uids = tables.Uids(kind, [])
    uid = uids.uid(number, "any name")
    assert re.fullmatch("[0-9a-f]{16}", uid)
    assert uids.identity(uid) == tables.Identity(number, None)


@given(ids)
def test_kinds_never_share_a_uid_and_a_brands_is_not_its_manufacturers(number: str) -> None:
    all_of_them = {tables.Uids(kind, []).uid(number, "n") for kind in KINDS}
    assert len(all_of_them) == len(KINDS)


@given(ids, ids)
def test_two_companies_never_share_a_uid(one: str, other: str) -> None:
    uids = tables.Uids("Brand", [])
    assert (uids.uid(one, "n") == uids.uid(other, "n")) == (one == other)


@given(st.sampled_from(KINDS), st.text())
def test_a_uid_of_nobodys_making_is_nobody(kind: str, text: str) -> None:
    identity = tables.Uids(kind, []).identity(text)
    assert identity is None or re.fullmatch("[0-9a-f]{16}", text)


@pytest.mark.parametrize("kind", KINDS)
def test_the_uid_of_another_kind_is_nobody(kind: str, book: tables.Tables) -> None:
    for other in set(KINDS) - {kind}:
        assert book.uids[kind].identity(book.uids[other].uid("123456", "n")) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", ["", "x", "-1", str(2**40), "1.5", "0x1"])
def test_an_id_that_is_no_number_below_two_to_the_forty_is_an_error(
    kind: str, number: str, book: tables.Tables
) -> None:
    with pytest.raises(ValueError, match=r"."):
        book.uids[kind].uid(number, "no such name")


@pytest.mark.parametrize(
    "kind, number, name, uid",
    [
        ("Brand", "370", "Texas Instruments", "2239e3330e2df5fe"),
        ("Manufacturer", "370", "Texas Instruments", "40f985f368ed933e"),
        ("Seller", "459", "Digi-Key", "2c3be9310496fffc"),
        ("Seller", "2401", "Mouser", "a5e060ea85e77627"),
        ("Seller", "2402", "Newark", "d294179ef2900153"),
        ("Category", "4161", "Electronic Parts", "8a1e4714bb3951d9"),
        ("Category", "999", "Resistors", "5c6a91606d4187ad"),
    ],
)
def test_known_uids_are_the_recorded_ones(kind: str, number: str, name: str, uid: str, book: tables.Tables) -> None:
    assert book.uids[kind].uid(number, name) == uid
    identity = book.uids[kind].identity(uid)
    assert identity is not None
    assert identity.name == name
    assert identity.id in (number, None)


def test_every_known_uid_is_well_formed_and_is_not_one_that_is_computed(book: tables.Tables) -> None:
    for kind, uids in book.uids.items():
        known = uids._identities
        assert known, kind
        assert all(re.fullmatch("[0-9a-f]{16}", uid) for uid in known)
        assert not any(uid.startswith(tag) for uid in known for tag in tables.TAGS.values())


def test_no_id_has_two_known_uids(book: tables.Tables) -> None:
    for kind, uids in book.uids.items():
        ids_ = [identity.id for identity in uids._identities.values() if identity.id]
        assert sorted(set(ids_)) == sorted(ids_), kind
    assert book.uids["Seller"].uid("4089", "Chip One Stop") == "6ffbaaf17255bc3c"


def test_a_source_has_its_known_uid_or_a_digest_that_stays(book: tables.Tables) -> None:
    source = book.uids["Source"].source
    assert source("Farnell") == "58989d9272cd8b5f"
    assert source("Somebody new") == source("Somebody new") != source("Somebody else")
    assert re.fullmatch("[0-9a-f]{16}", source("Somebody new"))


@pytest.mark.parametrize(
    "shortname, name, key",
    [
        ("numberofpins", "Number of Pins", "pin_count"),
        ("case_package", "Case/Package", "case_package"),
        ("dcresistance_dcr_", "DC Resistance (DCR)", "dc_resistance"),
        ("brandnewthing", "Brand-new Thing (max)", "brand_new_thing_max"),
        ("odd", "Ω", "odd"),
    ],
)
def test_a_spec_has_v3s_key(shortname: str, name: str, key: str, book: tables.Tables) -> None:
    assert book.specs.key(shortname, name) == key


def shortnames(specs: SpecNames, key: str) -> tuple[str, ...]:
    source = specs.source(key)
    return source.shortnames if source else ()


def test_every_key_and_shortname_leads_back_to_its_attribute(book: tables.Tables) -> None:
    names = book.specs.names
    spellings = [(name, key) for name, entry in names.items() for key in (entry.key, *entry.also, name)]
    assert [pair for pair in spellings if pair[0] not in shortnames(book.specs, pair[1])] == []
    assert book.specs.source("made_up_thing") is None


def test_keys_that_the_table_gave_before_are_taken_still(book: tables.Tables) -> None:
    before = """ambient_temperature_range_high length width height thickness diameter pitch termination elv tolerance
        case_code_metric military_standard operating_supply_current operating_supply_voltage min_supply_voltage
        max_supply_voltage min_operating_temperature max_operating_temperature propagation_delay wire_cable_gauge
        inductance_tolerance capacitance_tolerance resistance_tolerance lead_pitch pin_count"""
    assert [key for key in before.split() if len(shortnames(book.specs, key)) != 1] == []


def test_a_tolerance_needs_its_quantity_and_a_range_has_ends(book: tables.Tables) -> None:
    tolerance = book.specs.source("capacitance_tolerance")
    assert tolerance == Source("capacitance_tolerance", "tolerance", beside="capacitance")
    temperature = Source("operating_temperature", None, "minoperatingtemperature", "maxoperatingtemperature")
    assert book.specs.source("operating_temperature") == temperature


@pytest.mark.parametrize(
    "names, reason",
    [
        ("a: {key: x}\nb: {key: x}\n", "a and b are both the value of x"),
        ("a: {key: x, end: max}\nb: {key: x, end: max}\n", "a and b are both the max of x"),
        ("a: {key: x, end: max}\n", "x has one end only"),
        ("a: {key: x, beside: {c: y}}\n", "a has a key beside c, which is no attribute of this table"),
    ],
)
def test_a_table_that_contradicts_itself_is_a_mistake(
    load: Callable[..., loader.Rulebook], names: str, reason: str
) -> None:
    with pytest.raises(errors.MappingError, match=f"spec_names.yaml: {reason}"):
        load("Part:\n  reads: SupPart\n  source: here\n  fields: {mpn: mpn}\n", spec_names__yaml=names)


def test_attributes_that_the_table_does_not_hold_are_known_by_their_name_in_v3s_spelling(book: tables.Tables) -> None:
    more = [
        SimpleNamespace(shortname="wobblerate", name="Wobble Rate"),
        SimpleNamespace(shortname="x", name="Pin Count"),
    ]
    specs = book.specs.with_attributes(more)
    keys = ("wobble_rate", "wobblerate", "pin_count", "made_up_thing")
    found = [shortnames(specs, key) for key in keys]
    assert found == [("wobblerate",), ("wobblerate",), ("numberofpins",), ()]


@pytest.mark.parametrize(
    "shortname, kind, value, si, datatype, values",
    [
        ("resistance", "number", "22", "22000", "decimal", ["22000.0"]),
        ("capacitance", "number", "100", "1e-07", "decimal", ["1e-07"]),
        ("capacitance", "number", "7", "", "decimal", ["7.0"]),
        ("numberofpins", "number", "14", "14", "integer", ["14"]),
        ("numberofpins", "number", "14.5", "14.5", "integer", ["14.5"]),
        ("resistance", "number", "5 %", "", "decimal", ["5 %"]),
        ("rohs", "text", "Compliant", "", "string", ["Compliant"]),
        ("color", "text", "Blue, Green", "", "string", ["Blue", "Green"]),
        ("rohs", "text", "a, b", "", "string", ["a, b"]),
        ("unknown", "number", "1", "1", "decimal", ["1.0"]),
    ],
)
def test_a_spec_has_v3s_datatype_and_values(
    shortname: str, kind: str, value: str, si: str, datatype: str, values: list[str], book: tables.Tables
) -> None:
    assert book.specs.datatype(shortname, kind) == datatype
    assert book.specs.values(shortname, kind, value, si) == values


def test_categories_run_from_the_root_and_a_root_has_no_parent(book: tables.Tables) -> None:
    root, middle = SimpleNamespace(id="4161", name="Electronic Parts"), SimpleNamespace(id="5", name="Five")
    leaf = SimpleNamespace(id="6", name="Six", ancestors=[root, middle])
    made = book.transforms()
    assert made["category_line"](leaf) == ["8a1e4714bb3951d9", "ca7e600000000005", "ca7e600000000006"]
    assert made["parent_uid"](leaf.ancestors) == "ca7e600000000005"
    assert made["parent_uid"]([]) is None
