"""The pages about spreadsheets work as written: its commands run on the workbook of its picture."""

import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest
from support.workbooks import samples

from proxy.tools.sheet.columns import specs

from .conftest import Page

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def page(pages: dict[str, Page]) -> Page:
    return pages["docs/how-to/parts-list.md"]


@pytest.fixture
def bom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(ROOT))
    file = tmp_path / "BOM.xlsx"
    importlib.import_module("docs.workbook_picture").write_bom(file)
    return file


def _run(folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    environ = {**os.environ, "NO_COLOR": "1", "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "proxy", *shlex.split(command)[1:]]
    return subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True, timeout=100, check=False)


def test_first_command_prints_what_the_page_shows(page: Page, bom: Path) -> None:
    first = page.blocks("sh")[1].text
    result = _run(bom.parent, first)
    assert result.returncode == 1  # a line has no part
    assert result.stderr == page.blocks("text", "progress")[0].text
    shown = page.blocks("text", "summary")[0].text
    assert [line.rstrip() for line in result.stdout.splitlines()] == shown.splitlines()
    sheets = openpyxl.load_workbook(bom.with_name("BOM.filled.xlsx")).sheetnames
    assert sheets == ["BOM", "Offers"]


def test_totals_are_what_the_page_shows(page: Page, bom: Path) -> None:
    (command,) = (line for block in page.blocks("sh") for line in block.text.splitlines() if "--boards" in line)
    result = _run(bom.parent, command)
    assert result.stdout.endswith(page.blocks("text", "totals")[0].text)
    assert "Summary" in openpyxl.load_workbook(bom.with_name("BOM.filled.xlsx")).sheetnames


def test_every_other_command_runs(pages: dict[str, Page], page: Page, bom: Path) -> None:
    """One after the other, in one folder: a filled copy may be written again. The configuration is the shipped one."""
    folder = bom.parent
    (folder / "columns.yaml").write_text(page.blocks("yaml", "columns.yaml")[0].text)
    (folder / "our.yaml").write_bytes((ROOT / "config.yaml").read_bytes())
    samples.official(["SN74S74N", 1141]).write(folder / "prices.xlsm")
    blocks = [*page.blocks("sh"), *pages["docs/how-to/add-in-formulas.md"].blocks("sh")]
    commands = [line for block in blocks if block.word != "install" for line in block.text.splitlines()]
    for command in commands[1:]:
        result = _run(folder, command)
        assert result.returncode in (0, 1), (command, result.stderr)
        assert "Traceback" not in result.stderr
    assert {file.name for file in folder.glob("*.xls*")} == {
        *("BOM.xlsx", "BOM.filled.xlsx", "prices.xlsm", "prices.filled.xlsm")
    }


def test_templates_of_the_page_load(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "columns.yaml"
    file.write_text(page.blocks("yaml", "columns.yaml")[0].text)
    assert specs.load_template(f"{file}:purchasing").rules.authorized_only
    assert specs.load_template(f"{file}:engineering").currency == "USD"
