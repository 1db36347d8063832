"""Tests of the mapping loader: a mistake in mappings/ stops the program at start, with its position."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import cases

from proxy import errors, model
from proxy.mapping import compiler, loader

HEAD = "Part:\n  reads: SupPart\n  source: here\n  fields:\n    mpn: mpn\n"
OFFER = "Offer:\n  reads: SupOffer\n  source: here\n  fields:\n    sku: sku\n"


def test_folder_of_rules_is_loaded_as_a_mapping(load: Callable[..., loader.Mappings]) -> None:
    book = load(HEAD + "    offers: {from: offers, each: Offer, include: true}\n" + OFFER)
    assert list(book.rules) == ["Part", "Offer"]
    assert book.includable("Part") == {"offers"}
    assert book.places["Part", "offers"].startswith("part.yaml:6")


@cases.parametrize("rules, place, says")
def test_mistake_is_found_on_loading(load: Callable[..., loader.Mappings], rules: str, place: str, says: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        load(rules.replace("HEAD", HEAD).replace("OFFER", OFFER))
    assert caught.value.message.startswith(place)
    assert says in caught.value.message


@cases.parametrize("rule, says")
def test_rule_that_contradicts_the_schema_is_found_on_compiling(
    load: Callable[..., loader.Mappings], rule: str, says: str
) -> None:
    more = "" if rule.startswith("{") and "Offer" in rule else "    used: {from: offers, each: Offer}\n"
    quoted = rule if rule.startswith("{") else f'"{rule}"'
    book = load(f"{HEAD}    x: {quoted}\n{more}{OFFER}")
    with pytest.raises(errors.ConfigError) as caught:
        compiler.compile_object(book, "Part", model.Projection())
    assert caught.value.message.startswith("part.yaml:6")
    assert "Part.x: " in caught.value.message
    assert says in caught.value.message


def test_object_in_two_files_is_a_mistake(load: Callable[..., loader.Mappings]) -> None:
    with pytest.raises(errors.ConfigError, match=r"^part\.yaml:1.*: object Part is described twice$"):
        load(HEAD, another__yaml=HEAD)


@cases.parametrize("file, text, place")
def test_mistake_in_a_table_is_found(load: Callable[..., loader.Mappings], file: str, text: str, place: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        load(HEAD, **{file: text})
    assert caught.value.message.startswith(place)


def test_mistake_in_a_table_names_the_file(load: Callable[..., loader.Mappings]) -> None:
    with pytest.raises(errors.ConfigError, match=r"^uids\.yaml:\d+.*`name`$"):
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
    with pytest.raises(errors.ConfigError) as caught:
        loader.load_view(load(HEAD), view_folder(tmp_path, rules), "octopart", "Line")
    assert says in caught.value.message


def view_folder(tmp_path: Path, rules: str) -> Path:
    folder = tmp_path / "view"
    folder.mkdir()
    (folder / "line.yaml").write_text(rules, encoding="utf-8")
    return folder
