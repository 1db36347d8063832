"""Tests of the mapping loader: a mistake in mappings/ stops the program at start, with its position."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proxy import errors, model
from proxy.mapping import compiler, loader

HEAD = "Part:\n  reads: SupPart\n  source: here\n  fields:\n    mpn: mpn\n"
OFFER = "Offer:\n  reads: SupOffer\n  source: here\n  fields:\n    sku: sku\n"


def test_folder_of_rules_is_loaded_as_a_mapping(load: Callable[..., loader.Mappings]) -> None:
    book = load(HEAD + "    offers: {from: offers, each: Offer, include: true}\n" + OFFER)
    assert list(book.rules) == ["Part", "Offer"]
    assert book.includable("Part") == {"offers"}
    assert book.place("Part", "offers").startswith("part.yaml:6")


@pytest.mark.parametrize(
    "rules, place, says",
    [
        (HEAD + "    x: {from: mpn, always: 1, why: because}\n", "part.yaml:6", "Part.x needs exactly one of"),
        (HEAD + "    x: {from: mpn, none: nothing}\n", "part.yaml:6", "Part.x needs exactly one of"),
        (HEAD + "    a-b: mpn\n", "part.yaml:6", "'a-b' is no name of a field: use letters, digits and _"),
        (HEAD + "    __class__: mpn\n", "part.yaml:6", "'__class__' is no name of a field"),
        (HEAD + "    x: {include: true}\n", "part.yaml:6", "Part.x needs exactly one of"),
        (HEAD + "    x: {always: 1}\n", "part.yaml:6", "Part.x is always the same; say in `why`"),
        (HEAD + "    x: {always: null}\n", "part.yaml:6", "Part.x is always the same; say in `why`"),
        (HEAD + "    x: {from: offers, keyed: Offer}\n" + OFFER, "part.yaml:6", "`keyed` and `key` go together"),
        (HEAD + "    x: {from: offers, each: Offer, key: {from: sku}}\n" + OFFER, "part.yaml:6", "go together"),
        (HEAD + "    x: {from: mpn, thruogh: text}\n", "part.yaml:6", "thruogh"),
        (HEAD + "    x: {from: mpn, include: 1}\n", "part.yaml:6", "bool"),
        (HEAD + "    x: 7\n", "part.yaml:6", "int"),
        (HEAD + "    x: mpn\n    x: mpn\n", "part.yaml:7", "x"),
        (HEAD + OFFER, "part.yaml:10", "nothing uses the object Offer"),
        (HEAD.replace("SupPart", "SupNothing"), "part.yaml:5", "Part reads a type the schema does not have"),
        (HEAD.replace("reads: SupPart", "reads: SupPart\n  under: SupNothing"), "part.yaml:6", "reads a type"),
        (HEAD.replace("  source: here\n", ""), "part.yaml:1", "source"),
        (HEAD + "  clas: Part\n", "part.yaml:", "clas"),
        ("Part: 7\n", "part.yaml:1", "object"),
        ("Part:\n  reads: [\n", "part.yaml:", ""),
    ],
)
def test_mistake_is_found_on_loading(load: Callable[..., loader.Mappings], rules: str, place: str, says: str) -> None:
    with pytest.raises(errors.MappingError) as caught:
        load(rules)
    assert caught.value.message.startswith(place)
    assert says in caught.value.message


@pytest.mark.parametrize(
    "rule, says",
    [
        ("nothing", "the service's type SupPart has no field 'nothing'"),
        ("maker.nothing", "the service's type SupCompany has no field 'nothing'"),
        ("mpn.nothing", "the service's type String has no field 'nothing'"),
        ("maker{id nothing}", "the service's type SupCompany has no field 'nothing'"),
        ("offers(", "'offers(' is not a path"),
        ("maker..id", "is not a path"),
        ("maker id", "is not a path: 'maker id' is more than one field"),
        ("maker{id}.name", "only its last step can have braces"),
        ("^name", "nothing is around this object"),
        ("$nothing", "the request's context has no $nothing; it has $country, $currency"),
        ("{from: mpn, through: nothing}", "no transform is called 'nothing'; there are "),
        ("{from: maker, is: Nothing}", "no mapping file describes an object 'Nothing'"),
        ("{from: [maker, mpn], is: Offer}", "an object is mapped from one path"),
        ("{from: maker, is: Offer}", "Offer reads SupOffer, but the path leads to SupCompany"),
        ("{from: tags, each: Offer}", "Offer reads SupOffer, but the path leads to String"),
        ("{from: offers, each: Offer, only: {from: nothing}}", "the service's type SupOffer has no field 'nothing'"),
        ("{from: offers, each: Offer, only: {from: sku, through: no}}", "no transform is called 'no'"),
        ("{from: offers, each: Offer, or_else: nothing}", "the service's type SupPart has no field 'nothing'"),
    ],
)
def test_rule_that_contradicts_the_schema_is_found_on_compiling(
    load: Callable[..., loader.Mappings], rule: str, says: str
) -> None:
    more = "" if rule.startswith("{") and "Offer" in rule else "    used: {from: offers, each: Offer}\n"
    quoted = rule if rule.startswith("{") else f'"{rule}"'
    book = load(f"{HEAD}    x: {quoted}\n{more}{OFFER}")
    with pytest.raises(errors.MappingError) as caught:
        compiler.compile_object(book, "Part", model.Projection())
    assert caught.value.message.startswith("part.yaml:6")
    assert "Part.x: " in caught.value.message
    assert says in caught.value.message


def test_object_in_two_files_is_a_mistake(load: Callable[..., loader.Mappings]) -> None:
    with pytest.raises(errors.MappingError, match=r"^part\.yaml:1.*: object Part is described twice$"):
        load(HEAD, another__yaml=HEAD)


@pytest.mark.parametrize(
    "file, text, place",
    [
        ("uids__yaml", "Seller:\n  - {uid: abc}\n", "uids.yaml:2"),
        ("uids__yaml", "Seller:\n  - {uid: abc, name: A, idd: 7}\n", "uids.yaml:2"),
        ("uids__yaml", "Seller: []\nBrand: 7\n", "uids.yaml:2"),
        ("spec_names__yaml", "inductance: {key: a}\ncapacitance: {}\n", "spec_names.yaml:2"),
        ("spec_names__yaml", "inductance: {key: a}\ncapacitance: {key: a, whole: 1}\n", "spec_names.yaml:2"),
        ("search__yaml", "mpn: {sort: mpn}\nbrand: {sorted: mpn}\n", "search.yaml:2"),
    ],
)
def test_mistake_in_a_table_is_found(load: Callable[..., loader.Mappings], file: str, text: str, place: str) -> None:
    with pytest.raises(errors.MappingError) as caught:
        load(HEAD, **{file: text})
    assert caught.value.message.startswith(place)


def test_mistake_in_a_table_names_the_file(load: Callable[..., loader.Mappings]) -> None:
    with pytest.raises(errors.MappingError, match=r"^uids\.yaml:\d+.*`name`$"):
        load(HEAD, uids__yaml="Seller:\n  - {uid: abc}\n")


def test_site_name_is_inserted(load: Callable[..., Any]) -> None:
    schema = "type Query { a: SupPart } type SupPart { mpn: String! octopartUrl: String! }"
    book = load(HEAD + '    "{site}_url": "{site}Url"\n', schema__graphql=schema.replace("octopart", "{site}"))
    assert compiler.compile_object(book, "Part", model.Projection()).selection == "mpn octopartUrl"


def test_view_has_objects_of_its_own_with_the_schema_of_the_mappings(
    load: Callable[..., loader.Mappings], tmp_path: Path
) -> None:
    folder = view_folder(tmp_path, "Line:\n  reads: SupPart\n  source: here\n  fields:\n    number: mpn\n")
    mappings = load(HEAD)
    view = loader.load_view(mappings, folder, "octopart", "Line")
    assert (list(view.rules), list(mappings.rules)) == (["Line"], ["Part"])
    assert compiler.compile_object(view, "Line", model.Projection()).selection == "mpn"


@pytest.mark.parametrize(
    "rules, says", [(HEAD, "nothing uses the object Part"), ("Line:\n  reads: SupPart\n", "line.yaml:1")]
)
def test_mistake_of_a_view_is_found_on_loading(
    load: Callable[..., loader.Mappings], tmp_path: Path, rules: str, says: str
) -> None:
    with pytest.raises(errors.MappingError) as caught:
        loader.load_view(load(HEAD), view_folder(tmp_path, rules), "octopart", "Line")
    assert says in caught.value.message


def view_folder(tmp_path: Path, rules: str) -> Path:
    folder = tmp_path / "view"
    folder.mkdir()
    (folder / "line.yaml").write_text(rules, encoding="utf-8")
    return folder
