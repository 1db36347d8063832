"""Tests of effective settings: their values, their sources, and that no secret is among them."""

from pathlib import Path

import pytest
from support import cases

from proxy.config import loader
from proxy.kit import shipped

SECRETS = ("PLANTED-client-secret", "PLANTED-key", "PLANTED-store", "PLANTED-proxy", "PLANTED-token", "PLANTED-id")
FILE = Path(__file__).with_name("own.yaml").read_text(encoding="utf-8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("PLANTED-client-secret")
    own = tmp_path / "own.yaml"
    own.write_text(FILE)
    return own


def effective(file: Path) -> dict[str, tuple[str, str]]:
    environ = {"ADMIN_TOKEN": "PLANTED-token-of-24-bytes", "CLIENT_ID": "PLANTED-id"}
    settings = loader.load(file, environ)
    rows = loader.effective_settings(settings, file)
    return {row["name"]: (row["value"], row["source"]) for row in rows}


@cases.parametrize("name, value, source")
def test_setting_has_its_value_and_its_source(file: Path, name: str, value: str, source: str) -> None:
    assert effective(file)[name] == (value, source)


def test_secrets_are_in_no_row(file: Path) -> None:
    text = str(effective(file))
    assert [planted for planted in SECRETS if planted in text] == []


def test_every_setting_of_the_shipped_file_is_listed_once() -> None:
    file = shipped.path("config.yaml")
    rows = loader.effective_settings(loader.load(file, {}), file)
    names = [row["name"] for row in rows]
    assert len(names) == len(set(names))
    assert {"listen.port", "applications.demo.parts", "store", "cache.bytes"} <= set(names)
