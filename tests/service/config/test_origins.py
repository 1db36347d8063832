"""Tests of effective settings: their values, their sources, and that no secret is among them."""

from pathlib import Path

import msgspec
import pytest
from support import cases

from proxy import config
from proxy.config import loader, origins
from proxy.config.origins import ConfigurationOrigin
from proxy.kit import shipped

SECRETS = ("PLANTED-client-secret", "PLANTED-key", "PLANTED-store", "PLANTED-proxy", "PLANTED-token", "PLANTED-id")
FILE = Path(__file__).with_name("own.yaml").read_text(encoding="utf-8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("PLANTED-client-secret")
    own = tmp_path / "own.yaml"
    own.write_text(FILE)
    return own


def effective(file: Path, **overrides: str) -> dict[str, tuple[str, str]]:
    environ = {"ADMIN_TOKEN": "PLANTED-token-of-24-bytes", "CLIENT_ID": "PLANTED-id"}
    settings = loader.load(file, environ)
    rows = origins.effective_settings(settings, ConfigurationOrigin(file, overrides, is_shipped=False))
    return {row.name: (row.value, row.source) for row in rows}


@cases.parametrize("name, value, source")
def test_setting_has_its_value_and_its_source(file: Path, name: str, value: str, source: str) -> None:
    assert effective(file)[name] == (value, source)


def test_option_of_the_command_line_is_the_source(file: Path) -> None:
    assert effective(file, **{"listen.port": "--port"})["listen.port"] == ("9000", "--port")


def test_secrets_are_in_no_row(file: Path) -> None:
    text = str(effective(file))
    assert [planted for planted in SECRETS if planted in text] == []


def test_value_that_is_in_no_file_was_set_at_the_start(file: Path) -> None:
    settings = loader.load(file, {"ADMIN_TOKEN": "a-token-of-24-characters", "CLIENT_ID": "b"})
    listen = msgspec.structs.replace(settings.listen, host="192.0.2.7")
    settings = msgspec.structs.replace(settings, listen=listen)
    rows = origins.effective_settings(settings, ConfigurationOrigin(file, {}, is_shipped=False))
    assert next(row for row in rows if row.name == "listen.host").source == "set at the start"


def test_settings_of_no_file_are_defaults_or_set_at_the_start() -> None:
    application = config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest("a")),), country="DE")
    rows = origins.effective_settings(config.Config(applications={"demo": application}), None)
    sources = {row.name: row.source for row in rows}
    assert sources["applications.demo.country"] == "set at the start"
    assert sources["cache.seconds"] == "default"


def test_every_setting_of_the_shipped_file_is_listed_once() -> None:
    file = shipped.path("config.yaml")
    rows = origins.effective_settings(loader.load(file, {}), ConfigurationOrigin(file, {}, is_shipped=True))
    names = [row.name for row in rows]
    assert len(names) == len(set(names))
    assert {"listen.port", "applications.demo.shadow.share", "store", "shadow.timeouts.total_seconds"} <= set(names)
    assert {row.block for row in rows} >= {"general", "listen", "applications.demo", "shadow"}


def test_blocks_that_are_broken_in_the_file_now_are_defaults_or_set(file: Path) -> None:
    settings = loader.load(file, {"ADMIN_TOKEN": "a-token-of-24-characters", "CLIENT_ID": "b"})
    file.write_text("listen: 7\napplications: [1, 2]\n")
    rows = origins.effective_settings(settings, ConfigurationOrigin(file, {}, is_shipped=False))
    sources = {row.name: row.source for row in rows}
    assert sources["cache.seconds"] == "set at the start"
