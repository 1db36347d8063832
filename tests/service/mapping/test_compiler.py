"""Compiled mapping rules: v3 values and selection sets, and the source that a traceback shows."""

import traceback
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from support import cases

from proxy import errors, model
from proxy.kit import shipped
from proxy.mapping import compiler, loader
from proxy.model import MappingContext, Projection

Map = Callable[..., Any]

PART = "Part:\n  reads: SupPart\n  source: here\n  fields:\n"
OFFER = "Offer:\n  reads: SupOffer\n  under: SupPart\n  source: here\n  fields: {sku: sku, of: ^mpn}\n"
MAKER = 'Maker:\n  reads: SupCompany\n  class: ""\n  source: here\n  fields: {name: name}\n'
RECORD: dict[str, Any] = {
    "mpn": "A1",
    "maker": {"name": "TI"},
    "tags": ["a", "b"],
    "price": None,
    "offers": [{"sku": "s1", "stock": 0}, {"sku": "s2", "stock": 7}, {"sku": "s3", "stock": None}],
}


@cases.parametrize(
    "rule, value",
    ("{from: offers, each: Offer}", [{"__class__": "Offer", "sku": f"s{n}", "of": "A1"} for n in (1, 2, 3)]),
)
def test_rule_produces_a_value(map_part: Map, rule: str, value: Any) -> None:
    used = "    o: {from: offers, each: Offer, include: true}\n    m: {from: maker, is: Maker, include: true}\n"
    assert map_part(f"{PART}    x: {rule}\n{used}{OFFER}{MAKER}", RECORD) == {"__class__": "Part", "x": value}


@cases.parametrize("rule, value")
def test_null_in_a_path_gives_the_blank_value(map_part: Map, rule: str, value: Any) -> None:
    rules = f"{PART}    x: {rule}\n    m: {{from: maker, is: Maker, include: true}}\n{MAKER}"
    assert map_part(rules, {**RECORD, "maker": None}) == {"__class__": "Part", "x": value}


def test_object_of_the_same_record_has_the_same_context(map_part: Map) -> None:
    whole = OFFER.replace("{sku: sku, of: ^mpn}", "{data: {from: ., is: Data}}")
    data = OFFER.replace("Offer:", "Data:").replace("{sku: sku, of: ^mpn}", "{of: ^mpn}")
    found = map_part(f"{PART}    offers: {{from: offers, each: Offer}}\n{whole}{data}", RECORD)
    assert found["offers"][0] == {"__class__": "Offer", "data": {"__class__": "Data", "of": "A1"}}


PROJECTED = (
    PART
    + "    mpn: mpn\n"
    + "    maker: {from: maker, is: Maker}\n"
    + "    offers: {from: offers, each: Offer}\n"
    + "    by_sku: {from: offers, keyed: Offer, key: {from: sku}, include: true}\n"
    + "    tags: {from: price, include: true}\n"
    + OFFER
    + MAKER.replace('""', "Maker")
)


def paths(*texts: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(text.split(".")) for text in texts)


SKU, ALL = {"sku"}, {"__class__", "sku", "of"}


@pytest.mark.parametrize(
    "projection, fields",
    [
        ({"hide": paths("by_sku.s2.of")}, {"s1": ALL, "s2": ALL - {"of"}, "s3": ALL}),
        ({"hide": paths("by_sku.*.of")}, dict.fromkeys(("s1", "s2", "s3"), ALL - {"of"})),
        ({"hide": paths("by_sku.*.of", "by_sku.s1")}, dict.fromkeys(("s2", "s3"), ALL - {"of"})),
        ({"hide": paths("by_sku.*")}, {}),
        ({"show": paths("by_sku.s2.sku")}, {"s2": SKU}),
        ({"show": paths("by_sku.s2.sku", "by_sku.s3.of")}, {"s2": SKU, "s3": {"of"}}),
        ({"show": paths("by_sku.s2.sku", "by_sku.s3")}, {"s2": SKU, "s3": ALL}),
        ({"show": paths("by_sku.*.sku")}, dict.fromkeys(("s1", "s2", "s3"), SKU)),
        ({"show": paths("by_sku.*.sku", "by_sku.s3")}, {"s1": SKU, "s2": SKU, "s3": ALL}),
        ({"show": paths("by_sku"), "hide": paths("by_sku.s1.sku")}, {"s1": ALL - SKU, "s2": ALL, "s3": ALL}),
        ({"show": paths("by_sku.s1", "by_sku.s2"), "hide": paths("by_sku.s1.sku")}, {"s1": ALL - SKU, "s2": ALL}),
    ],
)
def test_single_key_of_a_keyed_object_can_be_shown(
    map_part: Map, projection: dict[str, Any], fields: dict[str, Any]
) -> None:
    seen = map_part(PROJECTED, RECORD, include=frozenset({"by_sku"}), **projection)
    assert {key: set(offer) for key, offer in seen["by_sku"].items()} == fields


def test_field_has_the_same_arguments_in_all_paths(load: Callable[..., loader.Mappings]) -> None:
    of_new = f'{PART}    x: {{from: "offers(onlyNew: true)", each: Offer}}\n{OFFER}'
    part = compiler.compile_object(load(of_new), "Part", model.Projection())
    assert part.selection == "mpn offers(onlyNew: true) { sku }"
    of_all = load(of_new.replace("\nOffer:", "\n    y: {from: offers, each: Offer}\nOffer:"))
    with pytest.raises(errors.ConfigError, match=r"part.yaml:.* Part.y: offers is offers\(onlyNew: true\) in another"):
        compiler.compile_object(of_all, "Part", model.Projection())


def test_order_is_a_stable_sort(map_part: Map) -> None:
    rules = f"{PART}    x: {{from: offers, each: Offer, order: {{from: ^mpn, through: text}}}}\n{OFFER}"
    by_sku = rules.replace("^mpn, through", "sku, through")
    shuffled = {**RECORD, "offers": RECORD["offers"][::-1]}
    assert [offer["sku"] for offer in map_part(rules, shuffled)["x"]] == ["s3", "s2", "s1"]
    assert [offer["sku"] for offer in map_part(by_sku, shuffled)["x"]] == ["s1", "s2", "s3"]


MAPPINGS = loader.load(shipped("mappings"))
ATTRIBUTED = Projection(show=frozenset({("descriptions",)}), include=frozenset({"descriptions"}))
HERE = MappingContext("US", "USD")


def test_traceback_names_each_object_of_the_path() -> None:
    part = compiler.compile_object(MAPPINGS, "Part", ATTRIBUTED)
    record = msgspec.convert({"descriptions": [{"text": "x", "creditString": "A"}]}, part.record)
    record.descriptions[0].creditString = 5  # nothing that was decoded has it: it makes the transform fail
    with pytest.raises(Exception, match="int") as failure:
        part.map(record, HERE)
    functions = [frame.name for frame in traceback.extract_tb(failure.value.__traceback__)]
    assert functions[1] == "map_part"
    assert {"map_description", "map_attribution", "map_source"} <= set(functions)
