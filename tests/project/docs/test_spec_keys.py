"""docs/reference/spec-keys.md says of each known v3 spec key where its values come from, or why from nowhere."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support import cases
from typer import testing

from proxy.cli import main

ROOT = Path(__file__).parents[3]
NAME = "docs/reference/spec-keys.md"
RENEW = "v3bridge surface --page spec-keys > docs/reference/spec-keys.md"


@pytest.fixture(scope="module")
def names() -> Any:
    return yaml.safe_load((ROOT / "mappings/spec_names.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def keys() -> Any:
    return yaml.safe_load((ROOT / "mappings/spec_keys.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows(pages: Any) -> Any:
    return {row[0].strip("`"): row for row in pages[NAME].table("v3 key")}


def test_page_is_up_to_date_and_names_its_command(pages: Any) -> None:
    done = testing.CliRunner().invoke(main.app, ["surface", "--page", "spec-keys"])
    assert (done.exit_code, done.stdout) == (0, pages[NAME].text), f"{NAME} is stale; renew it with: {RENEW}"
    assert RENEW in pages[NAME].blocks("sh")[0].text


def test_mapped_key_has_no_reason(keys: Any, names: Any) -> None:
    mapped = {entry["key"] for entry in names.values()}
    assert sorted(mapped & {key for key, reason in keys.items() if reason}) == []


@pytest.mark.parametrize("key, sources", cases.of(__file__, "keys_read_by_v3_programs_have_a_source"))
def test_keys_read_by_v3_programs_have_a_source(rows: Any, key: str, sources: Any) -> None:
    assert [source for source in sources if f"`{source}`" not in rows[key][1]] == []


def test_no_attribute_named_like_a_v3_key_has_another_key(keys: Any, names: Any) -> None:
    spelled = {name.replace("_", ""): key for key in keys for name in [key]}
    missed = [name for name, entry in names.items() if name in spelled and entry["key"] != spelled[name]]
    assert missed == []
