"""docs/reference/mappings.md describes every key of a rule; examples are the real ones, its steps work as written."""

import asyncio
import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from proxy import model
from proxy.config import FEATURES
from proxy.kit import located_yaml, shipped
from proxy.mapping import compiler, coverage, loader, paths, reading, rules, transforms

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "mappings"
CASE_FILES = {"request.txt", "operations.json", "upstream.json", "expected.json"}


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/reference/mappings.md"]


def _words(page: Any) -> Any:
    return [row[0].strip("`") for row in page.table("key")]


def _names(kind: Any) -> Any:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def _real() -> Any:
    """All objects of the mapping files, as they are written."""
    found: dict[str, Any] = {}
    for file in FOLDER.glob("*.yaml"):
        if file.name not in loader.TABLES:
            found |= located_yaml.load(file).data
    return found


def _parse(block: Any) -> Any:
    return located_yaml.loads(block.text, f"docs/reference/mappings.md:{block.line}").data


def test_documented_keys_are_exactly_those_of_objects_and_rules(page: Any) -> None:
    described = _words(page)
    assert len(described) == len(set(described))
    assert set(described) == _names(rules.ObjectRules) | _names(rules.FieldRule)
    assert _names(rules.ComputedValue) <= _names(rules.FieldRule)


def test_every_key_is_used_in_an_example(page: Any) -> None:
    examples = "".join(block.text for block in page.blocks("yaml"))
    unused = [word for word in _words(page) if not re.search(rf"\b{word}:", examples)]
    assert unused == []


def test_every_example_is_in_the_mapping_files(page: Any) -> None:
    real = _real()
    blocks = page.blocks("yaml", "")
    assert blocks
    for block in blocks:
        for name, said in _parse(block).items():
            fields = said.pop("fields", {})
            assert said == {word: real[name][word] for word in said}, name
            assert fields == {field: real[name]["fields"][field] for field in fields}, name


def test_example_of_a_table_is_in_its_file(page: Any) -> None:
    [block] = page.blocks("yaml", "spec_names.yaml")
    real = yaml.safe_load((ROOT / "mappings/spec_names.yaml").read_text(encoding="utf-8"))
    said = yaml.safe_load(block.text)
    assert said == {name: real[name] for name in said}


def test_named_files_exist_and_every_kind_of_file_is_named(page: Any) -> None:
    named = {row[0].strip("`") for row in page.table("file")}
    assert [pattern for pattern in named if not list(ROOT.glob(pattern))] == []
    assert {f"mappings/{name}" for name in loader.TABLES} <= named


def test_every_documented_path_form_is_valid(page: Any) -> None:
    forms = [row[0].strip("`") for row in page.table("form")]
    origins = {paths.parse(form).origin for form in forms}
    assert origins == {"here", "above", "context"}


def test_documented_context_is_that_of_the_code(page: Any) -> None:
    (row,) = [row for row in page.table("form") if row[0] == "`$currency`"]
    assert set(re.findall(r"`\$(\w+)`", row[1])) == set(reading.CONTEXT)


@pytest.fixture
def followed_guide(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The mappings folder and the case folder after the how-to has been followed."""
    folder = shutil.copytree(FOLDER, tmp_path / "mappings")
    (schema,) = page.blocks("graphql")
    _insert(folder / "schema.graphql", f"type {schema.word} {{\n", schema.text)
    (rule,) = page.blocks("yaml", "new")
    for name, said in _parse(rule).items():
        lines = rule.text.split("  fields:\n")[1]
        _insert(folder / "part.yaml", f"{name}:\n", "", after="  fields:\n", lines=lines)
        assert said["fields"].keys().isdisjoint(_real()[name]["fields"])
    (function,) = page.blocks("python", "new")
    names = dict(vars(transforms))
    exec(compile(function.text, "docs/reference/mappings.md", "exec"), names)
    monkeypatch.setitem(transforms.TRANSFORMS, "price_pair", names["price_pair"])
    case = tmp_path / "average_price"
    case.mkdir()
    for block in page.blocks():
        if block.word in CASE_FILES:
            (case / block.word).write_text(block.text, encoding="utf-8")
    return folder, case


def _insert(file: Any, head: Any, text: Any, after: str = "", lines: str = "") -> None:
    whole = file.read_text(encoding="utf-8")
    start = whole.index(head) + len(head)
    start = whole.index(after, start) + len(after)
    file.write_text(whole[:start] + text + lines + whole[start:], encoding="utf-8")


def test_example_field_is_compiled_and_listed(followed_guide: Any) -> None:
    book = loader.load(followed_guide[0])
    projection = model.Projection(book.includable("Part"), features=frozenset(FEATURES))
    rows = {f"{row.object}.{row.field}": row.kind for row in coverage.of_mappings(book)}
    assert "medianPrice1000" in compiler.compile_object(book, "Part", projection).selection
    assert rows["Part.avg_price_v2"] == "derived"


def test_example_case_has_four_files_and_passes(followed_guide: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, case = followed_guide
    assert {file.name for file in case.iterdir()} == CASE_FILES
    find = shipped.path
    monkeypatch.setattr(shipped, "path", lambda name: folder if name == "mappings" else find(name))
    _run(case)


def test_example_case_fails_without_the_field(followed_guide: Any) -> None:
    with pytest.raises(AssertionError):
        _run(followed_guide[1])


def _run(case: Any) -> None:
    """Run a copy of tests/service/cases' own runner beside the case, with whatever parameters it finds there."""
    runner = shutil.copy(ROOT / "tests/service/cases/test_cases.py", case.parent)
    spec = importlib.util.spec_from_file_location("mapping_cases", runner)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (target,) = module.TARGETS
    asyncio.run(module.run_case(*target.values))
