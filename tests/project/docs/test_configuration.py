"""docs/reference/configuration.md matches proxy/config: keys, defaults, accepted values and error messages."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
import yaml

from proxy import config, errors
from proxy.config import loader, mistakes
from proxy.stores import sqlite_schema

SECRETS = {"NEXAR_CLIENT_ID": "an-id", "NEXAR_CLIENT_SECRET": "a-secret"}


def _settings(kind: Any = config.Config, prefix: str = "") -> Any:
    """Every dotted key → its struct and its own name; the blocks themselves are no rows, but two have a meaning."""
    for field in msgspec.structs.fields(kind):
        name = f"{prefix}{field.name}"
        block = _block(kind, field.name)
        if block is None or field.name in (
            "upstream",
            "applications",
            "apikeys",
            "reconcile",
            "sunset",
            "webhooks",
            "commands",
        ):
            yield name, field, kind
        if block is not None:
            yield from _settings(block, f"{name}.NAME." if field.name == "applications" else f"{name}.")


def _block(kind: Any, name: Any) -> Any:
    """The struct that a setting is a block of, where it is one."""
    hint = get_type_hints(kind)[name]
    choices = [hint, *get_args(hint), *(inner for each in get_args(hint) for inner in get_args(each))]
    return next((c for c in choices if isinstance(c, type) and issubclass(c, msgspec.Struct)), None)


SETTINGS = {name: (field, kind) for name, field, kind in _settings()}


@pytest.fixture(scope="module")
def page(pages: Any) -> Any:
    return pages["docs/reference/configuration.md"]


@pytest.fixture(scope="module")
def rows(page: Any) -> Any:
    return {row[0].strip("`"): row[1:] for row in page.table("key")}


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Loads a configuration as a user's file."""
    (tmp_path / "nexar-secret").write_text("a-secret\n")

    def load_text(text: Any) -> Any:
        file = tmp_path / "config.yaml"
        file.write_text(text)
        return loader.load(file, SECRETS)

    return load_text


def test_documented_keys_are_exactly_those_of_the_settings(rows: Any) -> None:
    assert set(rows) == set(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_documented_default_is_that_of_the_code(rows: Any, name: Any) -> None:
    field, _ = SETTINGS[name]
    stated = rows[name][0]
    if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
        assert stated == "required"
    elif field.default is None:
        assert stated == "none"
    elif isinstance(field.default, config.Secret):
        assert stated.strip("`") == field.default.reveal()
    else:
        value = yaml.safe_load(stated.strip("`"))
        value = tuple(value) if isinstance(value, list) else value
        assert (value, type(value)) == (field.default, type(field.default))


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("upstream", "applications")])
def test_documented_values_equal_the_error_message(rows: Any, name: Any) -> None:
    field, kind = SETTINGS[name]
    assert rows[name][1] == mistakes.accepted(kind, field.name)


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


def test_documented_sqlite_version_is_that_of_the_store(page: Any) -> None:
    assert f"needs SQLite {'.'.join(map(str, sqlite_schema.LIBRARY))} or later" in page.text


def test_every_mistake_gives_its_documented_message(page: Any, load: Any) -> None:
    blocks = page.blocks()
    pairs = [(block, blocks[n + 1]) for n, block in enumerate(blocks) if block.word == "mistake"]
    assert pairs
    for mistake, message in pairs:
        with pytest.raises(errors.ConfigError) as caught:
            load(mistake.text)
        assert "".join(f"v3bridge: {line}\n" for line in caught.value.message.splitlines()) == message.text
