"""Tests of config.yaml."""

import re
from pathlib import Path

from proxy import config
from proxy.config import loader

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
