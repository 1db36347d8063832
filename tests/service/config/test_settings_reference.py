"""Tests of config.yaml and of the reference of the settings."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from proxy import config
from proxy.config import base, loader

FILE = Path(__file__).parents[3] / "config.yaml"
PAGE = Path(__file__).parents[3] / "docs/settings.md"
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


def _settings(kind: type[base.Settings], prefix: str = "") -> Iterator[str]:
    """Yield the first columns of each setting's row: its name, what it accepts, and its default."""
    for field in msgspec.structs.fields(kind):
        block, default = base.block_of(field.type), field.default
        accepts = base.accepted(kind, (field.name,))
        if block is None or not (accepts.startswith("a block of ") or isinstance(default, base.Settings)):
            shown = default.shown if isinstance(default, config.StoreUrl) else str(default)
            ends = {"NODEFAULT": "; required", "None": "", "()": "", "False": "; default `false`"}
            yield f"| `{prefix}{field.name}` | {accepts}{ends.get(shown, f'; default `{shown}`')} |"
        if block is not None:
            yield from _settings(block, f"{prefix}{field.name}.{'NAME.' if field.name == 'applications' else ''}")


def test_documentation_has_every_setting_with_what_it_accepts_and_its_default() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("need a restart")[0]
    written = re.findall(r"(?m)^(\| `[\w.]+` \| .+? \|) .+ \|$", text)
    assert sorted(written) == sorted(_settings(config.Config))
    assert len(written) <= 50
