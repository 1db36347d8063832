"""Tests of the start: mistakes in mappings/ stop it before it listens (ARCHITECTURE.md, decisions)."""

import gc
import shutil
from pathlib import Path
from typing import Any

import pytest
from together.environment import StartEnvironment

from proxy.kit import shipped


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the mappings that the service is made to read."""
    copy = tmp_path / "mappings"
    shutil.copytree(shipped.path("mappings"), copy)
    found = shipped.path
    monkeypatch.setattr(shipped, "path", lambda name: copy if name == "mappings" else found(name))
    return copy


def change(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1
    file.write_text(text.replace(before, after), encoding="utf-8")


async def outcome(start: StartEnvironment, **settings: Any) -> str:
    """Return the outcome of a start. A resource left open is a warning, and so a failure."""
    try:
        async with start(**settings):
            said = "started"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    gc.collect()
    return said


async def test_path_missing_in_the_schema_stops_the_start(start: StartEnvironment, folder: Path) -> None:
    change(folder / "part.yaml", "    mpn: mpn\n", "    mpn: mpnn\n")
    said = await outcome(start)
    assert said == "MappingError: part.yaml:9:5: Part.mpn: the service's type SupPart has no field 'mpnn'"


async def test_schema_without_fields_of_the_list_search_stops_the_start(start: StartEnvironment, folder: Path) -> None:
    change(folder / "schema.graphql", "  aliases: [String!]!\n", "")
    said = await outcome(start)
    assert said.startswith("MappingError: schema.graphql: the service's type SupCompany has no field 'aliases'")
