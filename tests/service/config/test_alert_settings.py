"""Tests of the settings of alerts: receivers, their names, and what is refused without being shown."""

import base64
import pickle
from typing import Any

import pytest
from support import cases

from proxy import config, errors
from proxy.config import loader

HEAD = 'applications: {demo: {apikeys: ["a-key"]}}\nalerts:\n'
KEY = base64.b64encode(b"k" * 24).decode()


@pytest.fixture
def alerts(load: Any) -> Any:
    def of(text: str, **environ: str) -> config.AlertSettings:
        read: config.Config = load(f"{HEAD}{text}", **environ)
        return read.alerts

    return of


@pytest.fixture
def mistakes(load: Any) -> Any:
    def of(text: str, **environ: str) -> list[str]:
        with pytest.raises(errors.ConfigError) as caught:
            load(f"{HEAD}{text}", **environ)
        assert "T0K3N" not in str(caught.value)
        return str(caught.value).splitlines()

    return of


def hook(fields: str) -> str:
    return f"  webhooks: [{{{fields}}}]\n"


def test_receivers_without_a_name_have_their_place(alerts: Any) -> None:
    text = (
        '  webhooks: [{url: "https://a.example/T0K3N"}, {url: "https://b.example", name: chat}]\n'
        "  commands: [{command: [cat]}, {command: [tee, file]}]\n"
    )
    assert list(alerts(text).receivers) == ["webhook-1", "chat", "command-1", "command-2"]


@cases.parametrize("url")
def test_addresses_that_are_accepted_are_hidden(alerts: Any, url: str) -> None:
    (webhook,) = alerts(hook("url: env:HOOK"), HOOK=url).webhooks
    assert webhook.url.reveal() == url
    assert "T0K3N" not in repr(webhook) + webhook.url.shown
    assert webhook.url.shown.partition("://")[0] == url.partition("://")[0]
    assert pickle.loads(pickle.dumps(webhook)) == webhook


@cases.parametrize("url,reason")
def test_addresses_that_are_refused_are_not_shown(mistakes: Any, url: str, reason: str) -> None:
    (line,) = mistakes(hook("url: env:HOOK"), HOOK=url)
    assert f"alerts.webhooks[0].url: {reason}" in line


def test_secret_has_the_form_of_the_specification(alerts: Any, mistakes: Any) -> None:
    (webhook,) = alerts(hook(f'url: "https://a.example", secret: "whsec_{KEY}"')).webhooks
    assert webhook.secret.key == b"k" * 24
    for wrong in (KEY, "whsec_", "whsec_T0K3N", f"whsec_{KEY}!", f"whsec_{base64.b64encode(b'k' * 65).decode()}"):
        (line,) = mistakes(hook(f'url: "https://a.example", secret: "{wrong}"'))
        assert "is not whsec_ and 24 to 64 bytes in base64" in line


def test_every_mistake_has_its_line(mistakes: Any) -> None:
    lines = mistakes(
        "  thresholds: [50, 101]\n"
        "  webhooks:\n"
        "  - {name: a}\n"
        "  - {url: 'https://a.example/T0K3N', name: a, events: [quota.all]}\n"
        "  - {url: 'https://a.example/T0K3N', name: command-1, timeout_seconds: 0}\n"
        "  commands:\n"
        "  - {command: cat}\n"
        "  - \n"
        "  - {command: [], flavor: red}\n"
    )
    places = [line.split(": ", 2)[1] for line in lines]
    assert places == [
        "alerts.thresholds[1]",
        "alerts.webhooks[0].url",
        "alerts.webhooks[1]",
        "alerts.webhooks[1].events[0]",
        "alerts.webhooks[2].timeout_seconds",
        "alerts.commands[0]",
        "alerts.commands[0].command",
        "alerts.commands[1].command",
        "alerts.commands[2].command",
        "alerts.commands[2].flavor",
    ]


def test_commands_that_send_nothing_need_no_secrets_of_receivers(tmp_path: Any) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"{HEAD}{hook('url: env:NO, secret: env:NO')}")
    assert loader.load(file, {}, upstream=False).alerts.webhooks[0].url.shown == "https://absent"
