"""docs/reference/comparison.md matches proxy/tools/compare: keys, defaults, accepted values, kinds, names, limits."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
import yaml

from proxy.config import mistakes
from proxy.tools.compare import loader, results
from proxy.tools.compare.judging import thresholds, tolerances, verdict
from proxy.tools.compare.judging.findings import CAUSES, KINDS
from proxy.tools.compare.judging.settings import ComparisonSettings


def _settings(kind: Any = ComparisonSettings, prefix: str = "") -> Any:
    """Every dotted key → its struct and its own name; of a block only what is in it, but lists and choices too."""
    for field in msgspec.structs.fields(kind):
        hint = get_type_hints(kind)[field.name]
        blocks = [each for each in _types(hint) if isinstance(each, type) and issubclass(each, msgspec.Struct)]
        block = next((each for each in blocks if each.__name__ != "Threshold"), None)
        if block is None or hint is not block:
            yield f"{prefix}{field.name}", field, kind
        if block is not None:
            yield from _settings(block, f"{prefix}{field.name}.")


def _types(hint: Any) -> Any:
    return [hint, *(inner for each in get_args(hint) for inner in _types(each))]


SETTINGS = {name: (field, kind) for name, field, kind in _settings()}


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/reference/comparison.md"]


@pytest.fixture(scope="module")
def rows(page: Any) -> Any:
    return {row[0].strip("`"): row[1:] for row in page.table("key")}


def test_documented_keys_are_exactly_those_of_the_settings(rows: Any) -> None:
    assert set(rows) == set(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_documented_default_is_that_of_the_code(rows: Any, name: Any) -> None:
    field, _ = SETTINGS[name]
    stated = rows[name][0]
    if field.default is msgspec.NODEFAULT:
        assert stated == "required"
    elif field.default is None:
        assert stated == "none"
    else:
        value = yaml.safe_load(stated.strip("`"))
        assert (tuple(value) if value == [] else value) == field.default


@pytest.mark.parametrize("name", SETTINGS)
def test_documented_values_equal_the_error_message(rows: Any, name: Any) -> None:
    field, kind = SETTINGS[name]
    assert rows[name][1] == mistakes.accepted(kind, field.name)


def test_every_example_is_valid(page: Any, tmp_path: Path) -> None:
    blocks = page.blocks("yaml")
    assert blocks
    for block in blocks:
        file = tmp_path / "ours.yaml"
        file.write_text(block.text, encoding="utf-8")
        assert loader.load(file, {}).rules


@pytest.mark.parametrize("first, words", [("kind", KINDS), ("cause", CAUSES), ("spelling", tolerances.NORMAL_FORMS)])
def test_every_term_has_a_row(page: Any, first: str, words: Any) -> None:
    named = [word.strip("` ") for row in page.table(first) for word in row[0].split(",")]
    assert sorted(named) == sorted(words)


def test_documented_threshold_names_are_exactly_those_of_the_code(page: Any) -> None:
    section = page.text.partition("## Thresholds")[2].partition("## Exit codes")[0]
    lists = [line.partition(": ")[2] for line in section.splitlines() if line.startswith("- ")]
    about, words, both = ([name.strip("` ") for name in line.split(",")] for line in lists)
    assert tuple(about) == thresholds.SUBJECTS
    assert tuple(words) == thresholds.WORDS
    assert all(thresholds.parse(name).name == name for name in both)


def test_documented_verdicts_are_those_of_the_code(page: Any) -> None:
    assert {row[1] for row in page.table("when")} == set(get_args(results.Verdict))


def test_documented_exit_codes_are_those_of_the_code(page: Any) -> None:
    codes = [int(row[0]) for row in page.table("code")]
    assert codes == [verdict.EQUIVALENT, verdict.DIFFERENT, verdict.NOT_COMPARED]
