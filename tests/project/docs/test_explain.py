"""docs/how-to/explain.md works as written: its commands run, and print what it shows."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, Page

OUR = """\
applications:
  erp: {apikeys: ["A_KEY"], features: [TECH_SPECS], country: DE, currency: EUR}
"""
URL = "https://octopart.com/api/v3/parts/match?queries=[%7B%22mpn%22:%22SN74S74N%22%7D]"


@pytest.fixture(scope="module")
def page(pages: dict[str, Page]) -> Page:
    return pages["docs/how-to/explain.md"]


def _run(folder: Path, command: str) -> str:
    words, _, file = command.partition(" < ")
    environ = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-m", "proxy", *shlex.split(words)[1:]],
        cwd=folder,
        env=environ,
        input=(folder / file).read_text() if file else None,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, ""), command
    return result.stdout


def test_every_command_runs_and_prints_what_the_page_shows(page: Page, tmp_path: Path) -> None:
    (tmp_path / "command.sh").write_text(f"curl -s \\\n  -H 'Accept: application/json' \\\n  '{URL}'\n")
    entry = {"request": {"method": "GET", "url": URL}}
    (tmp_path / "recorded.har").write_text(json.dumps({"log": {"entries": [entry]}}))
    (tmp_path / "our.yaml").write_text(OUR)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = [line for block in page.blocks("sh") for line in block.text.splitlines()]
    printed = [_run(tmp_path, command) for command in commands]

    first, file, trace = (block.text for block in page.blocks("text"))
    assert first in printed[0]
    assert file in printed[commands.index("v3bridge explain examples/access.log")]
    assert "query supMultiMatch(" in printed[4]
    assert json.loads(printed[5])["kinds"][0]["endpoint"] == "/parts/match"
    assert "executed as erp/1 (DE, EUR, features TECH_SPECS)" in printed[7]
    assert "no feature" in printed[7]
    assert _without_times(trace) in _without_times(printed[10])
    assert printed[8] == "programs/parts_match.py: /parts/match, 1 request\n"
    assert printed[9].startswith("programs/parts_match.sh: /parts/match, 4 requests\n")


def _without_times(text: str) -> str:
    """Return text without what differs between runs: milliseconds, and the width of their columns."""
    return re.sub(r" +", " ", re.sub(r"[\d,]*\d\.\d+|[\d,]+ s$", "N", text, flags=re.MULTILINE))


def test_every_step_of_a_trace_is_described(page: Page) -> None:
    reported = re.compile(r'\b(?:steps\.(?:step|lap)|_trace)\((?:self(?:\._quota)?, )?"([a-z ]+)"')
    names = {name for file in (ROOT / "proxy").rglob("*.py") for name in reported.findall(file.read_text("utf-8"))}
    assert {name for row in page.table("step") for name in re.findall("`([a-z ]+)`", row[0])} == names
