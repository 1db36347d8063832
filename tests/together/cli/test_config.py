"""`v3bridge config --all`: values, their sources, and that no secret is among them."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import cases

FILE = Path(__file__).with_name("own.yaml")


@pytest.fixture
def shown(run_command: Any, tmp_path: Path) -> str:
    (tmp_path / "secret").write_text("PLANTED-client-secret")
    (tmp_path / "own.yaml").write_text(FILE.read_text(encoding="utf-8"))
    return str(run_command("config", "--all", "--json", "--config", str(tmp_path / "own.yaml")).stdout)


@cases.parametrize("name, value, source")
def test_setting_has_its_value_and_its_source(shown: str, name: str, value: str, source: str) -> None:
    rows = {row["name"]: (row["value"], row["source"]) for row in json.loads(shown)}
    assert rows[name] == (value, source)


def test_settings_are_listed_once_and_without_secrets(shown: str) -> None:
    names = [row["name"] for row in json.loads(shown)]
    assert len(names) == len(set(names))
    assert "PLANTED" not in shown
