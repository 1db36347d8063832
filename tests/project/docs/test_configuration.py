"""Examples and error messages of docs/reference/configuration.md match proxy/config."""

from pathlib import Path
from typing import Any

import pytest

from proxy import config, errors
from proxy.config import loader

SECRETS = {"NEXAR_CLIENT_ID": "an-id", "NEXAR_CLIENT_SECRET": "a-secret"}


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/reference/configuration.md"]


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Loads a configuration as a user's file."""
    (tmp_path / "nexar-secret").write_text("a-secret\n")

    def load_text(text: Any) -> Any:
        file = tmp_path / "config.yaml"
        file.write_text(text)
        return loader.load(file, SECRETS)

    return load_text


def test_every_example_is_valid(pages: Any, load: Any) -> None:
    blocks = [
        block for name in ("README.md", "docs/reference/configuration.md") for block in pages[name].blocks("yaml", "")
    ]
    assert blocks
    assert all(load(block.text).applications for block in blocks)


def test_every_credential_form_of_the_examples_is_resolved(page: Any, load: Any) -> None:
    example = next(block for block in page.blocks("yaml") if "file:" in block.text)
    found = {name: one.client_secret.reveal() for name, one in load(example.text).applications.items()}
    assert found == {
        "from-the-environment": "a-secret",
        "from-a-file": "a-secret",
        "in-the-file": "the secret, in quotes",
    }


def test_documented_digest_matches_the_documented_key(page: Any, load: Any) -> None:
    key = next(block.text for block in page.blocks("sh") if "sha256sum" in block.text).split("'")[1]
    example = next(block for block in page.blocks("yaml") if "sha256:" in block.text)
    assert config.ApiKeySettings(config.digest(key)) in load(example.text).applications["demo"].apikeys


def test_every_mistake_gives_its_documented_message(page: Any, load: Any) -> None:
    blocks = page.blocks()
    pairs = [(block, blocks[n + 1]) for n, block in enumerate(blocks) if block.word == "mistake"]
    assert pairs
    for mistake, message in pairs:
        with pytest.raises(errors.ConfigError) as caught:
            load(mistake.text)
        assert "".join(f"v3bridge: {line}\n" for line in caught.value.message.splitlines()) == message.text
