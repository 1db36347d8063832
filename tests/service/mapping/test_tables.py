"""Tests of v3's spec keys (contract graphql.md §10.5), and of tables that mapping files use."""

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import yaml
from msgspec import structs
from support import cases

from proxy import errors
from proxy.kit import shipped
from proxy.mapping import loader, rules, transforms
from proxy.mapping.specs import SpecNames, SpecSource
from proxy.planning import search_filters


@pytest.fixture(scope="session")
def book(mappings: loader.Mappings) -> rules.Tables:
    return mappings.tables


@cases.parametrize("shortname, name, key")
def test_spec_has_its_v3_key(shortname: str, name: str, key: str, book: rules.Tables) -> None:
    assert book.specs.key(shortname, name) == key


def shortnames(specs: SpecNames, key: str) -> tuple[str, ...]:
    source = specs.sources.get(key)
    return tuple(name for name in (source.value, source.low, source.high) if name) if source else ()


def test_every_key_and_shortname_resolves_to_its_attribute(book: rules.Tables) -> None:
    names = book.specs.names
    spellings = [(name, key) for name, entry in names.items() for key in (entry.key, *entry.also, name)]
    assert [pair for pair in spellings if pair[0] not in shortnames(book.specs, pair[1])] == []
    assert book.specs.sources.get("made_up_thing") is None


def test_tolerance_has_a_quantity_and_range_has_bounds(book: rules.Tables) -> None:
    tolerance = book.specs.sources.get("capacitance_tolerance")
    assert tolerance == SpecSource("capacitance_tolerance", "tolerance", beside="capacitance")
    temperature = SpecSource("operating_temperature", None, "minoperatingtemperature", "maxoperatingtemperature")
    assert book.specs.sources.get("operating_temperature") == temperature


@cases.parametrize("names, reason")
def test_contradictory_table_is_a_mistake(load: Callable[..., loader.Mappings], names: str, reason: str) -> None:
    with pytest.raises(errors.ConfigError, match=f"spec_names.yaml: {reason}"):
        load("Part:\n  reads: SupPart\n  source: here\n  fields: {mpn: mpn}\n", spec_names__yaml=names)


def test_unlisted_attributes_have_their_name_in_v3_spelling(book: rules.Tables) -> None:
    more = [
        SimpleNamespace(shortname="wobblerate", name="Wobble Rate"),
        SimpleNamespace(shortname="x", name="Pin Count"),
    ]
    specs = SpecNames(book.specs.names, more)
    keys = ("wobble_rate", "wobblerate", "pin_count", "made_up_thing")
    found = [shortnames(specs, key) for key in keys]
    assert found == [("wobblerate",), ("wobblerate",), ("numberofpins",), ()]


@cases.parametrize("shortname, kind, value, si, datatype, values")
def test_spec_has_v3_datatype_and_values(
    shortname: str, kind: str, value: str, si: str, datatype: str, values: list[str], book: rules.Tables
) -> None:
    assert book.specs.datatype(shortname, kind) == datatype
    assert book.specs.values(shortname, kind, value, si) == values


@pytest.mark.parametrize("kind", ["Seller", "Brand", "Manufacturer", "Category"])
def test_every_name_of_an_entry_leads_to_its_object(kind: str, book: rules.Tables) -> None:
    """Whichever of them the service has, in any case of letters."""
    entries = yaml.safe_load((shipped("mappings") / "uids.yaml").read_text("utf-8"))[kind]
    for entry in entries:
        every = [entry["name"], *entry.get("also", [])]
        for upstream, asked in itertools.product([*every, every[-1].upper()], every):
            listed = structs.replace(book, listed={rules.LISTS.get(kind, kind): {upstream: ("4711",)}})
            found = str(entry["id"]) if "id" in entry else "4711"
            for field, value in ((rules.SearchField(uid=kind), entry["uid"]), (rules.SearchField(name=kind), asked)):
                assert search_filters.ids(listed, field, value) == (found,), (entry, upstream, value)


def test_source_that_the_service_lists_as_a_seller_has_the_uid_of_the_seller(book: rules.Tables) -> None:
    sellers = {"Somebody new": ("4711",), "Newark": ("2402",), "Nu Horizons": ("4712",)}
    made = transforms.of_tables(book.uids, book.specs)
    for name, (id_,) in sellers.items():
        assert made["source_uid"](name, sellers) == made["seller_uid"](id_, name)
    assert made["source_uid"]("Somebody else", sellers).startswith("50c4ce")


def test_no_shipped_source_is_a_seller(book: rules.Tables) -> None:
    recorded = yaml.safe_load((shipped("mappings") / "uids.yaml").read_text("utf-8"))["Source"]
    assert [each["name"] for each in recorded if book.uids["Seller"].named.get(each["name"])] == []
