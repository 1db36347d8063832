"""The page Configuration: settings in effect with their sources, and no secret among them."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.running_admin import BEARER, PAGE, TOKEN
from together.environment import ProxyEnvironment

from proxy import __version__, config
from proxy.config.origins import ConfigurationOrigin
from proxy.kit import shipped
from proxy.web.admin.pages import configuration

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
    assert sources["listen.port"] == "--port"
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


async def test_file_that_blocks_is_an_error_and_holds_nothing(
    managed: ProxyEnvironment, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configuration, "READ_SECONDS", 0.1)
    file.unlink()
    os.mkfifo(file)
    response = await managed.admin.send("GET", "/configuration.json", headers=BEARER)
    assert response.status == 500
    assert "the configuration could not be read within 0.1 seconds" in await response.text()


def reloading(managed: ProxyEnvironment, **result: Any) -> list[str]:
    """Let the service stand in for one that can be reloaded; return the list of its reloads."""
    reloads: list[str] = []
    service = managed.admin.service

    async def reload() -> config.ReloadResult:
        reloads.append("reload")
        outcome = config.ReloadResult(at=managed.time.now(), **result)
        service.report(outcome)
        return outcome

    service.reload = reload
    return reloads


async def test_button_reloads_once_and_shows_what_changed(managed: ProxyEnvironment, file: Path) -> None:
    reloads = reloading(managed, outcome="reloaded", changed=("cache.seconds",), waiting_for_restart=("listen.port",))
    admin = managed.admin
    assert (await admin.json("/configuration.json"))["last_reload"] is None
    managed.time.advance(60)
    await admin.sign_in()
    assert (await admin.send("POST", "/configuration/reload", headers=PAGE)).status == 403
    assert reloads == []
    assert (await admin.submit("/configuration", "/reload")).status == 303
    assert reloads == ["reload"]
    html = await (await admin.send("GET", "/configuration", headers=PAGE)).text()
    assert "The configuration is reloaded; changed: cache.seconds. listen.port wait for a restart." in html
    assert "<strong>Waiting for a restart:</strong> <code>listen.port</code>" in html
    page = await admin.json("/configuration.json")
    assert page["loaded"] == page["last_reload"]["at"] == managed.time.now()


async def test_failed_reload_shows_every_mistake_and_keeps_the_time(managed: ProxyEnvironment, file: Path) -> None:
    mistakes = ("<b>own.yaml:4:3: cache.seconds: is wrong", "own.yaml:5:3: another")
    reloading(managed, outcome="failed", mistakes=mistakes)
    before = (await managed.admin.json("/configuration.json"))["loaded"]
    managed.time.advance(60)
    message = await managed.admin.act("/configuration/reload")
    assert message == f"The configuration stays as it was: {mistakes[0]} (1 more below)"
    page = await managed.admin.json("/configuration.json")
    assert (page["loaded"], page["last_reload"]["mistakes"]) == (before, list(mistakes))
    html = await managed.admin.page("/configuration")
    assert all(each.replace("<b>", "&lt;b&gt;") in html for each in mistakes)


async def test_service_without_a_file_has_no_button(managed: ProxyEnvironment) -> None:
    assert "/configuration/reload" not in await managed.admin.page("/configuration")
    response = await managed.admin.send("POST", "/configuration/reload", headers=BEARER)
    assert response.status == 400
