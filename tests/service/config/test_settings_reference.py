"""Tests of config.yaml: it agrees with the settings and their defaults."""

import re
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
import yaml

from proxy import config
from proxy.config import loader

FILE = Path(__file__).parents[3] / "config.yaml"
BLOCKS = {
    "listen": config.ListenSettings,
    "admin": config.AdminSettings,
    "upstream": config.UpstreamSettings,
    "translation": config.TranslationSettings,
    "cache": config.CacheSettings,
    "clients": config.ClientSettings,
    "log": config.LogSettings,
    "tracing": config.TracingSettings,
    "shadow": config.ShadowSettings,
    "alerts": config.AlertSettings,
    "schema_check": config.SchemaCheckSettings,
}
INNER = {"timeouts": config.TimeoutSettings, "breaker": config.BreakerSettings, "tls": config.TlsSettings}


@pytest.fixture(scope="module")
def uncommented_file() -> str:
    """The file with every commented setting switched on, as its own first lines explain."""
    text = FILE.read_text(encoding="utf-8").replace("\nupstream: sandbox\n", "\n")
    return re.sub(r"(?m)^#(?=\S| {2,}(?:- )?\w+:)", "", text)


def test_shipped_file_holds_exactly_the_defaults() -> None:
    demo = config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest("EXAMPLE_KEY")),))
    assert loader.load(FILE, {}) == config.Config(applications={"demo": demo})


def test_every_setting_is_in_the_shipped_file(uncommented_file: str) -> None:
    written = yaml.safe_load(uncommented_file)
    assert set(written) == set(config.Config.__struct_fields__)
    assert {name: set(written[name]) for name in BLOCKS} == {
        name: set(kind.__struct_fields__) for name, kind in BLOCKS.items()
    }
    assert {name: set(written["upstream"][name]) for name in INNER} == {
        name: set(kind.__struct_fields__) for name, kind in INNER.items()
    }
    demo = written["applications"]["demo"]
    assert set(demo) == set(config.ApplicationSettings.__struct_fields__)
    assert set(demo["apikeys"][1]) == set(config.ApiKeySettings.__struct_fields__)
    assert {name: set(written["shadow"][name]) for name in ("timeouts", "breaker")} == {
        name: set(INNER[name].__struct_fields__) for name in ("timeouts", "breaker")
    }
    lists = {"webhooks": config.WebhookSettings, "commands": config.CommandSettings}
    assert {name: set(written["alerts"][name][0]) for name in lists} == {
        name: set(kind.__struct_fields__) for name, kind in lists.items()
    }
    assert set(demo["shadow"]) == set(config.ApplicationShadowSettings.__struct_fields__)
    assert set(demo["sunset"]) == set(config.SunsetSettings.__struct_fields__)
    assert set(demo["reconcile"]) == set(config.ReconciliationSettings.__struct_fields__)


def test_commented_block_is_the_real_upstream_with_defaults(uncommented_file: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(uncommented_file, encoding="utf-8")
    loaded = loader.load(
        file,
        {
            "NEXAR_CLIENT_ID": "id",
            "NEXAR_CLIENT_SECRET": "secret",
            "V3BRIDGE_STORE_KEY": f"{'A' * 43}=",
            "V3BRIDGE_ADMIN_TOKEN": "a-token-of-the-operators",
            "V3BRIDGE_ALERT_URL": "https://chat.example/hooks/1",
            "V3BRIDGE_ALERT_SECRET": f"whsec_{'A' * 32}",
        },
    )
    assert loaded.upstream == config.UpstreamSettings(
        graphql_url="https://api.nexar.com/graphql", token_url="https://identity.nexar.com/connect/token"
    )
    assert loaded.applications["demo"].client_id == "id"


@pytest.mark.parametrize(
    "kind",
    [
        *BLOCKS.values(),
        *INNER.values(),
        config.ApplicationSettings,
        config.ApiKeySettings,
        config.ReconciliationSettings,
        config.SunsetSettings,
        config.ApplicationShadowSettings,
        config.WebhookSettings,
        config.CommandSettings,
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_setting_documents_accepted_values(kind: Any) -> None:
    hints = get_type_hints(kind, include_extras=True)
    for name in kind.__struct_fields__:
        metas = [meta for meta in hints[name].__metadata__ if isinstance(meta, msgspec.Meta)]
        assert any(meta.description for meta in metas), name


def test_every_setting_has_a_comment_in_the_file(uncommented_file: str) -> None:
    """Each key is followed by a comment on its line, or follows one."""
    lines = uncommented_file.splitlines()
    for number, line in enumerate(lines):
        if re.match(r"\s*[a-z_]+: ?\S", line) and "_url:" not in line:
            assert "#" in line or "#" in lines[number - 1] or "client_" in line, line
