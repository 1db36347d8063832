"""Secret files that other users can read, and the configuration that is shipped."""

import re
from pathlib import Path
from typing import Any

import pytest
from support import cases

from proxy import config
from proxy.config import loader

ROOT = Path(__file__).parents[3]


@pytest.fixture
def exposed_files(tmp_path: Path) -> Any:
    """Names of the files, for a configuration of some mode; those that it may name have mode 0644."""
    for name in ("secret", "key.pem"):
        (tmp_path / name).write_text("text")
        (tmp_path / name).chmod(0o644)

    def of(text: str, mode: int = 0o644) -> list[str]:
        file = tmp_path / "config.yaml"
        file.write_text(text)
        file.chmod(mode)
        return [each.name for each in loader.exposed(file)]

    return of


@cases.parametrize("text")
def test_plain_secret_needs_an_owner_only_configuration(exposed_files: Any, text: str) -> None:
    assert [exposed_files(text, mode) for mode in (0o600, 0o400, 0o640, 0o604)] == [
        [],
        [],
        ["config.yaml"],
        ["config.yaml"],
    ]


@cases.parametrize("text")
def test_configuration_without_secret_may_be_readable_by_all(exposed_files: Any, text: str) -> None:
    assert exposed_files(text) == []


@cases.parametrize("text, file")
def test_secret_file_must_be_owner_only(exposed_files: Any, tmp_path: Path, text: str, file: str) -> None:
    assert exposed_files(text) == [file]
    (tmp_path / file).chmod(0o600)
    assert exposed_files(text) == []


def test_shipped_configuration_holds_no_secret(exposed_files: Any) -> None:
    assert exposed_files((ROOT / "config.yaml").read_text()) == []


FILE = Path(__file__).parents[3] / "config.yaml"
CREDENTIALS = {"NEXAR_CLIENT_ID": "id", "NEXAR_CLIENT_SECRET": "secret"}


def test_shipped_file_is_short_and_holds_the_defaults_but_a_store_in_memory() -> None:
    demo = config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest("EXAMPLE_KEY")),))
    assert loader.load(FILE, {}) == config.Config(applications={"demo": demo}, store=config.StoreUrl("memory:"))
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 20


def test_shipped_file_with_what_it_has_in_comments_uses_nexar(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^#(?= {2,}\w+:)", "", FILE.read_text(encoding="utf-8"))
    file = tmp_path / "config.yaml"
    file.write_text(text.replace("upstream: sandbox", "upstream: nexar"), encoding="utf-8")
    loaded = loader.load(file, CREDENTIALS)
    assert loaded.upstream == config.UpstreamSettings(
        graphql_url="https://api.nexar.com/graphql", token_url="https://identity.nexar.com/connect/token"
    )
    demo = loaded.applications["demo"]
    assert (demo.client_id, demo.plan, demo.parts, demo.period) == ("id", "evaluation", 100, "lifetime")
