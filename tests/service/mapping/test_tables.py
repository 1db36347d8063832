"""Tests of v3's spec keys (contract graphql.md §10.5), and of tables that mapping files use."""

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import yaml
from support import cases

from proxy import errors
from proxy.kit import shipped
from proxy.mapping import loader, tables, transforms
from proxy.mapping.specs import SpecNames, SpecSource


@pytest.fixture(scope="session")
def book(mappings: loader.Mappings) -> tables.Tables:
    return mappings.tables


@cases.parametrize("shortname, name, key")
def test_spec_has_its_v3_key(shortname: str, name: str, key: str, book: tables.Tables) -> None:
    assert book.specs.key(shortname, name) == key


def shortnames(specs: SpecNames, key: str) -> tuple[str, ...]:
    source = specs.source(key)
    return source.shortnames if source else ()


def test_every_key_and_shortname_resolves_to_its_attribute(book: tables.Tables) -> None:
    names = book.specs.names
    spellings = [(name, key) for name, entry in names.items() for key in (entry.key, *entry.also, name)]
    assert [pair for pair in spellings if pair[0] not in shortnames(book.specs, pair[1])] == []
    assert book.specs.source("made_up_thing") is None


def test_former_keys_are_accepted(book: tables.Tables) -> None:
    before = """ambient_temperature_range_high length width height thickness diameter pitch termination elv tolerance
        case_code_metric military_standard operating_supply_current operating_supply_voltage min_supply_voltage
        max_supply_voltage min_operating_temperature max_operating_temperature propagation_delay wire_cable_gauge
        inductance_tolerance capacitance_tolerance resistance_tolerance lead_pitch pin_count"""
    assert [key for key in before.split() if len(shortnames(book.specs, key)) != 1] == []


def test_tolerance_has_a_quantity_and_range_has_bounds(book: tables.Tables) -> None:
    tolerance = book.specs.source("capacitance_tolerance")
    assert tolerance == SpecSource("capacitance_tolerance", "tolerance", beside="capacitance")
    temperature = SpecSource("operating_temperature", None, "minoperatingtemperature", "maxoperatingtemperature")
    assert book.specs.source("operating_temperature") == temperature


@cases.parametrize("names, reason")
def test_contradictory_table_is_a_mistake(load: Callable[..., loader.Mappings], names: str, reason: str) -> None:
    with pytest.raises(errors.ConfigError, match=f"spec_names.yaml: {reason}"):
        load("Part:\n  reads: SupPart\n  source: here\n  fields: {mpn: mpn}\n", spec_names__yaml=names)


def test_unlisted_attributes_have_their_name_in_v3_spelling(book: tables.Tables) -> None:
    more = [
        SimpleNamespace(shortname="wobblerate", name="Wobble Rate"),
        SimpleNamespace(shortname="x", name="Pin Count"),
    ]
    specs = book.specs.with_attributes(more)
    keys = ("wobble_rate", "wobblerate", "pin_count", "made_up_thing")
    found = [shortnames(specs, key) for key in keys]
    assert found == [("wobblerate",), ("wobblerate",), ("numberofpins",), ()]


@cases.parametrize("shortname, kind, value, si, datatype, values")
def test_spec_has_v3_datatype_and_values(
    shortname: str, kind: str, value: str, si: str, datatype: str, values: list[str], book: tables.Tables
) -> None:
    assert book.specs.datatype(shortname, kind) == datatype
    assert book.specs.values(shortname, kind, value, si) == values


def test_category_ancestors_start_at_the_root(book: tables.Tables) -> None:
    root, middle = SimpleNamespace(id="4161", name="Electronic Parts"), SimpleNamespace(id="5", name="Five")
    leaf = SimpleNamespace(id="6", name="Six", ancestors=[root, middle])
    made = transforms.of_tables(book)
    assert made["category_line"](leaf) == ["8a1e4714bb3951d9", "ca7e600000000005", "ca7e600000000006"]
    assert made["parent_uid"](leaf.ancestors) == "ca7e600000000005"
    assert made["parent_uid"]([]) is None


def test_sellers_and_sources_have_their_v3_names(book: tables.Tables) -> None:
    made = transforms.of_tables(book)
    sellers = {"3261": "RS", "4089": "Chip One Stop", "14": "Allied Electronics", "1106": "Arrow", "8284": "Zoro"}
    named = ["RS Components", "Chip One Stop Japan", "Allied Electronics & Automation", "Arrow Electronics", "Zoro"]
    assert [made["seller_name"](*each) for each in sellers.items()] == named
    assert [made["source_name"](name) for name in sellers.values()][:2] == named[:2]
    assert [book.ids("Seller", name) for name in ("RS", "RS Components")] == [("3261",), ("3261",)]


@pytest.mark.parametrize("kind", ["Seller", "Brand", "Manufacturer", "Category"])
def test_every_name_of_an_entry_leads_to_its_object(kind: str, book: tables.Tables) -> None:
    """Whichever of them the service has, in any case of letters."""
    entries = yaml.safe_load((shipped.path("mappings") / "uids.yaml").read_text("utf-8"))[kind]
    for entry in entries:
        every = [entry["name"], *entry.get("also", [])]
        for upstream, asked in itertools.product([*every, every[-1].upper()], every):
            listed = book.with_list(tables.LISTS.get(kind, kind), {upstream: ("4711",)})
            target = book.uids[kind].target(entry["uid"])
            assert target is not None
            assert listed.ids_of(kind, target) == (target.id or "4711",), (entry, upstream)
            assert listed.ids(kind, asked) == (target.id or "4711",), (entry, upstream, asked)


@pytest.mark.parametrize("quantity", ["Resistance", "Capacitance", "Inductance"])
def test_tolerance_has_the_recorded_name_of_its_quantity(quantity: str, book: tables.Tables) -> None:
    beside = [SimpleNamespace(attribute=SimpleNamespace(shortname=quantity.lower()))]
    assert transforms.of_tables(book)["spec_name"]("tolerance", "Tolerance", beside) == f"{quantity} Tolerance"


@pytest.mark.parametrize(
    "names, quantity",
    [
        (["Electronic Parts", "Passive Components", "Resistors", "Chip SMD Resistors"], "resistance"),
        (["Electronic Parts", "Passive Components", "Capacitors"], "capacitance"),
        (["Electronic Parts", "Passive Components", "Inductors", "Fixed Inductors"], "inductance"),
        (["Electronic Parts", "Discrete Semiconductors", "Zener Diodes"], ""),
    ],
)
def test_tolerance_without_a_quantity_is_named_by_the_category(
    names: list[str], quantity: str, book: tables.Tables
) -> None:
    *above, own = [SimpleNamespace(name=name) for name in names]
    category = SimpleNamespace(name=own.name, ancestors=above)
    specs = [SimpleNamespace(attribute=SimpleNamespace(shortname="tolerance"))]
    made = transforms.of_tables(book)
    key = f"{quantity}_tolerance" if quantity else "tolerance"
    assert made["spec_key"]("tolerance", "Tolerance", specs, category) == key
    assert made["spec_name"]("tolerance", "Tolerance", specs, category) == key.replace("_", " ").title()
    assert made["spec_shown"]("tolerance", specs, category)
    beside = SimpleNamespace(attribute=SimpleNamespace(shortname="inductance"))  # a quantity goes before the category
    assert made["spec_key"]("tolerance", "Tolerance", [*specs, beside], category) == "inductance_tolerance"
    own_tolerance = SimpleNamespace(attribute=SimpleNamespace(shortname=key.replace("_", "")))
    assert made["spec_shown"]("tolerance", [*specs, own_tolerance], category) == (quantity not in {"inductance"})


def test_what_upstream_gives_only_for_display_is_kept(book: tables.Tables) -> None:
    """A recorded response of 2022 has display values alone."""
    low, high = (
        SimpleNamespace(
            attribute=SimpleNamespace(shortname=f"{end}operatingtemperature"), value="", siValue="", displayValue=shown
        )
        for end, shown in (("min", "-55 °C"), ("max", "155 °C"))
    )
    made = transforms.of_tables(book)
    assert made["spec_low"]("minoperatingtemperature", [low, high]) is None
    assert made["spec_high"]("minoperatingtemperature", [low, high]) is None
    assert made["spec_display"]("tolerance", "1 %", "", "", []) == "1 %"
    assert made["spec_display"]("tolerance", "1 %", "1", "1", []) == "±1%"


@cases.parametrize("name, uid")
def test_source_has_its_recorded_uid_or_that_of_the_seller(name: str, uid: str, book: tables.Tables) -> None:
    assert transforms.of_tables(book)["source_uid"](name, {}) == uid


def test_source_that_the_service_lists_as_a_seller_has_the_uid_of_the_seller(book: tables.Tables) -> None:
    sellers = {"Somebody new": ("4711",), "Newark": ("2402",), "Nu Horizons": ("4712",)}
    made = transforms.of_tables(book)
    for name, (id_,) in sellers.items():
        assert made["source_uid"](name, sellers) == made["seller_uid"](id_, name)
    assert made["source_uid"]("Somebody else", sellers).startswith("50c4ce")


def test_no_shipped_source_is_a_seller(book: tables.Tables) -> None:
    recorded = yaml.safe_load((shipped.path("mappings") / "uids.yaml").read_text("utf-8"))["Source"]
    assert [each["name"] for each in recorded if book.uids["Seller"].named(each["name"])] == []
