"""docs/reference/v3-surface.md says of each known v3 spec key where its values come from, or why from nowhere."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support import cases

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def names() -> Any:
    return yaml.safe_load((ROOT / "mappings/spec_names.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def keys() -> Any:
    return yaml.safe_load((ROOT / "mappings/spec_keys.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows(pages: Any) -> Any:
    return {row[0].strip("`"): row for row in pages["docs/reference/v3-surface.md"].table("v3 key")}


def test_mapped_key_has_no_reason(keys: Any, names: Any) -> None:
    mapped = {entry["key"] for entry in names.values()}
    assert sorted(mapped & {key for key, reason in keys.items() if reason}) == []


@cases.parametrize("key, sources")
def test_keys_read_by_v3_programs_have_a_source(rows: Any, key: str, sources: Any) -> None:
    assert [source for source in sources if f"`{source}`" not in rows[key][1]] == []


def test_no_attribute_named_like_a_v3_key_has_another_key(keys: Any, names: Any) -> None:
    spelled = {name.replace("_", ""): key for key in keys for name in [key]}
    missed = [name for name, entry in names.items() if name in spelled and entry["key"] != spelled[name]]
    assert missed == []
