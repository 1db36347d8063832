"""The page Configuration: settings in effect with their sources, and no secret among them."""

import os
from pathlib import Path
from typing import Any

import pytest
from integration.environment import ProxyEnvironment
from support.running_admin import TOKEN

from proxy import __version__
from proxy.config.origins import ConfigurationOrigin
from proxy.kit import shipped

FILE = """
listen: {port: 9000}
cache:
  seconds: 0
applications:
  demo:
    client_secret: env:THE_SECRET
    apikeys: ["<b>EXAMPLE_KEY"]
"""


@pytest.fixture
def file(managed: ProxyEnvironment, tmp_path: Path) -> Path:
    """The file that the service of `managed` stands in for having read."""
    own = tmp_path / "<b>own.yaml"
    own.write_text(FILE)
    long_ago = managed.time.now() - 3600
    os.utime(own, (long_ago, long_ago))
    managed.admin.service.origin = ConfigurationOrigin(own, {"listen.port": "--port"}, is_shipped=False)
    return own


async def settings(managed: ProxyEnvironment) -> dict[str, Any]:
    page = await managed.admin.json("/configuration.json")
    return {each["name"]: each for each in page["settings"]}


async def test_settings_have_their_values_and_sources(managed: ProxyEnvironment, file: Path) -> None:
    shown = await settings(managed)
    sources = {name: each["source"] for name, each in shown.items()}
    assert sources["cache.seconds"] == f"{file.name}:4"
    assert sources["listen.port"] == "--port of the command line"
    assert sources["applications.demo.client_secret"] == f"env:THE_SECRET, {file.name}:7"
    assert sources["cache.bytes"] == "default"
    in_effect = managed.admin.service.gateway.settings
    assert shown["cache.bytes"]["value"] == str(in_effect.cache.bytes)
    assert shown["upstream"] if isinstance(in_effect.upstream, str) else shown["upstream.graphql_url"]


async def test_secrets_are_hidden(managed: ProxyEnvironment, file: Path) -> None:
    application = managed.admin.service.gateway.settings.applications["demo"]
    assert application.client_secret is not None
    secrets = (TOKEN, application.client_secret.reveal(), str(application.client_id), "EXAMPLE_KEY")
    page = await managed.admin.page("/configuration")
    assert [each for each in secrets if each in page or each in str(await settings(managed))] == []
    assert {name for name, each in (await settings(managed)).items() if each["is_secret"]} >= {
        "admin.token",
        "applications.demo.client_secret",
        "applications.demo.apikeys.1.key",
    }


async def test_versions_are_those_of_the_command(managed: ProxyEnvironment) -> None:
    page = await managed.admin.json("/configuration.json")
    assert (page["version"], (page["schema"], page["mappings"])) == (__version__, shipped.versions())


async def test_file_that_has_changed_since_is_reported(managed: ProxyEnvironment, file: Path) -> None:
    page = await managed.admin.json("/configuration.json")
    assert (page["file"], page["is_changed"], page["problem"]) == (str(file), False, None)
    later = managed.time.now() + 3600
    os.utime(file, (later, later))
    assert (await managed.admin.json("/configuration.json"))["is_changed"] is True
    assert "The file was changed since" in await managed.admin.page("/configuration")


@pytest.mark.parametrize("content", ["listen: [", "a: 1\na: 2\n", None])
async def test_file_that_cannot_be_read_now_leaves_the_settings(
    managed: ProxyEnvironment, file: Path, content: str | None
) -> None:
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    page = await managed.admin.json("/configuration.json")
    assert page["problem"]
    assert len(page["settings"]) > 50
    html = await managed.admin.page("/configuration")
    assert "The file cannot be read now" in html
    assert "<b>own" not in html
