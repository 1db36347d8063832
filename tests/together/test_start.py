"""Mistakes in mappings/ stop the start before it listens, and leave nothing open."""

import gc
import shutil
from pathlib import Path

import pytest
from together.environment import StartEnvironment

from proxy import errors
from proxy.kit import shipped


@pytest.mark.parametrize(
    "file, before, after, message",
    [
        ("part.yaml", "    mpn: mpn\n", "    mpn: mpnn\n", "Part.mpn: the service's type SupPart has no field 'mpnn'"),
        ("schema.graphql", "  aliases: [String!]!\n", "", "the service's type SupCompany has no field 'aliases'"),
    ],
)
async def test_mistake_in_the_mappings_stops_the_start(
    start: StartEnvironment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    before: str,
    after: str,
    message: str,
) -> None:
    shutil.copytree(shipped.path("mappings"), tmp_path / "mappings")
    text = (tmp_path / "mappings" / file).read_text(encoding="utf-8")
    assert text.count(before) == 1
    (tmp_path / "mappings" / file).write_text(text.replace(before, after), encoding="utf-8")
    found = shipped.path
    monkeypatch.setattr(shipped, "path", lambda name: tmp_path / name if name == "mappings" else found(name))
    with pytest.raises(errors.ConfigError, match=message):
        await start().__aenter__()
    gc.collect()  # what was left open is a warning, and so a failure
