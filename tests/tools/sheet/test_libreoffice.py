"""Calculation by an installed LibreOffice. One conversion serves most tests: each takes seconds."""

import asyncio
import os
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from proxy import errors
from proxy.tools.sheet import libreoffice
from proxy.tools.sheet.libreoffice import CalculationFailed, CopiedCell, CopiedFormula, CopiedSheet, LibreOffice
from proxy.tools.sheet.package.cells import CellError, CellValue

SHEET = 'It\'s <one> & "two"'
FORMULAS: dict[str, CellValue] = {
    "A1*2": Decimal(3),
    "B1&C1": "=text & <b>x",
    'IFERROR(1/0,"none")': "none",
    "A1>1": True,
    "NA()": CellError("#N/A"),
    "1/0": CellError("#DIV/0!"),
    '""': "",
    '"007"': "007",
    "SUM(A1:A2,IF(D1,1,2))": Decimal("2.5"),
    "DATE(2026,11,22)": Decimal(46348),
    'INDIRECT("\'It\'\'s <one> & ""two""\'!A1")': Decimal("1.5"),
    'TEXT(A1,"0.00")': "1.50",
}


@pytest.fixture(scope="session")
def office(needs_program: Callable[[str], str]) -> LibreOffice:
    """The installed LibreOffice."""
    return LibreOffice(Path(needs_program("soffice")))


def sheets() -> list[CopiedSheet]:
    """Values in the first row, a formula in each further one, and a sheet that refers to the first."""
    row = [CopiedCell(1, Decimal("1.5")), CopiedCell(2, "=text & "), CopiedCell(3, "<b>x"), CopiedCell(4, True)]
    formulas = [(number, [CopiedCell(5, CopiedFormula(text))]) for number, text in enumerate(FORMULAS, 3)]
    quoted = "'" + SHEET.replace("'", "''") + "'"
    array = CopiedFormula(f"{quoted}!A1*{{1;2}}", "B7:B8")
    other = [(7, [CopiedCell(2, array)]), (9, [CopiedCell(1, CellError("#REF!")), CopiedCell(2, CopiedFormula("A9"))])]
    return [CopiedSheet(SHEET, [(1, row), *formulas]), CopiedSheet("Second", other)]


def test_a_program_that_writes_nothing_calculates_nothing(tmp_path: Path) -> None:
    office = LibreOffice(program(tmp_path, "exit 0"))
    with pytest.raises(CalculationFailed, match="wrote no file"):
        asyncio.run(office.calculate(sheets(), {}))


def test_a_file_that_is_no_workbook_is_named(tmp_path: Path) -> None:
    office = LibreOffice(program(tmp_path, 'mkdir "${10}" && echo x > "${10}/copy.xlsx"'))
    with pytest.raises(CalculationFailed, match="cannot be read"):
        asyncio.run(office.calculate(sheets(), {"Second": {(1, 1)}}))


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    office = LibreOffice(program(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; wait"), seconds=1.0)
    with pytest.raises(CalculationFailed, match="longer than 1 s"):
        asyncio.run(office.calculate(sheets(), {}))
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while _runs(child):
        assert time.monotonic() < deadline, "the child of the program still runs"


def test_a_chosen_program_must_exist(tmp_path: Path) -> None:
    assert libreoffice.find_program(program(tmp_path, "exit 0")) == tmp_path / "soffice"
    with pytest.raises(errors.SheetError, match="--libreoffice"):
        libreoffice.find_program(tmp_path / "nothing")


def test_without_a_program_on_path_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert libreoffice.find_program(None) is None


def program(folder: Path, script: str) -> Path:
    """A program with LibreOffice's name. Of its arguments ${10} is the folder to write to, ${11} the copy."""
    path = folder / "soffice"
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    return path


def _runs(process: int) -> bool:
    """True for a process that is neither gone nor waiting to be reaped."""
    try:
        status = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return status != "Z" and os.path.exists(f"/proc/{process}")
