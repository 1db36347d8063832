"""Tests of `v3bridge compare --learn-uids` on files, and of the setting `uids` with its output."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml
from support.running_commands import Run, run_in_this_process

SELLER = {"__class__": "Seller", "uid": "1" * 16, "name": 'Zoro "Tools"', "id": "8284"}
KNOWN = {"__class__": "Seller", "uid": "fbaa3ea0de71286d", "name": "RS Components", "id": "3261"}
BRANDS = [{"__class__": "Brand", "uid": digit * 16, "name": "Twice"} for digit in "23"]
CONFIG = 'applications: {demo: {apikeys: ["EXAMPLE_KEY"]}}\n'


@pytest.fixture
def recording_file(tmp_path: Path) -> str:
    """The name of a file of stored responses."""
    lines = [
        {"url": "/v3/sellers/search?q=z&apikey=SECRET_KEY", "body": {"results": [{"item": SELLER}, {"item": KNOWN}]}},
        {"url": "/v3/brands/search?q=t", "body": {"results": [{"item": each} for each in BRANDS]}},
        {"url": "/v3/brands/search?q=u", "status": 403, "body": {"item": {**BRANDS[0], "name": "Refused"}}},
    ]
    (tmp_path / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return "old.jsonl"


@pytest.fixture
def learn(tmp_path: Path) -> Run:
    return partial(run_in_this_process, "compare", "--learn-uids", folder=tmp_path)


def test_learning_prints_table_and_summary(recording_file: str, learn: Run) -> None:
    found = learn(recording_file)
    assert found.returncode == 0, found
    assert yaml.safe_load(found.stdout) == {
        "Seller": [{"uid": "1" * 16, "name": 'Zoro "Tools"', "id": "8284", "source": "learnt"}]
    }
    assert "uids: 1 learnt, 1 already known, 2 conflicting." in found.stderr
    assert "1 line is skipped: no response, an error, or no JSON" in found.stderr
    assert f"Brand twice has the uids {'2' * 16}, {'3' * 16}" in found.stderr
    assert "SECRET_KEY" not in found.stdout + found.stderr


def test_table_is_valid_for_the_uids_setting(recording_file: str, learn: Run, tmp_path: Path) -> None:
    (tmp_path / "uids.yaml").write_text(learn(recording_file).stdout, encoding="utf-8")
    (tmp_path / "config.yaml").write_text(CONFIG + "uids: uids.yaml\n", encoding="utf-8")
    again = learn(recording_file, "--config", "config.yaml")
    assert "uids: 0 learnt, 2 already known, 2 conflicting." in again.stderr
    assert again.stdout == ""


def test_file_without_responses_is_named(learn: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("{}\n", encoding="utf-8")
    for name in ("empty.jsonl", "nowhere.jsonl"):
        found = learn(name)
        assert (found.returncode, name in found.stderr) == (3, True)


@pytest.mark.parametrize(
    "table, message",
    [
        ('Seller:\n  - {uid: "xyz", name: Zoro}\n', "v3bridge: ours.yaml:2:6: uid 'xyz' is not 16 hex digits"),
        (None, "v3bridge: config.yaml:2:1: uids: the file "),
    ],
)
def test_invalid_uid_table_stops_the_start(run_command: Run, tmp_path: Path, table: str | None, message: str) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG + "uids: ours.yaml\n", encoding="utf-8")
    if table:
        (tmp_path / "ours.yaml").write_text(table, encoding="utf-8")
    found = run_command("serve", "--port", "0", "--config", str(tmp_path / "config.yaml"))
    assert (found.returncode, message in found.stderr) == (2, True), found
