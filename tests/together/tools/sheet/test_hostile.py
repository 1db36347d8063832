"""`v3bridge sheet fill` on files that no program wrote: one clear line or a bounded run, and the file as it was."""

import hashlib
import io
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.running_commands import Run
from support.workbooks import workbook

Fill = Run


def changed(name: str, change: Callable[[bytes], bytes]) -> bytes:
    """A workbook with one part changed, and the checksums that belong to it."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook([["MPN"], ["SN74S74N"]]))) as whole,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for member in whole.namelist():
            content = whole.read(member)
            archive.writestr(member, change(content) if member == name else content)
    return stream.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
ENTITIES = "".join(f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 12))
DTD = f'<!DOCTYPE worksheet [<!ENTITY l0 "ha">{ENTITIES}]>'.encode()
ROW = b'<row r="3"><c r="A3" t="inlineStr"><is><t>&l11;</t></is></c></row></sheetData>'
REFUSED: dict[str, Callable[[], bytes]] = {
    "empty.xlsx": lambda: b"",
    "old.xlsx": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000),
    "cut.xlsx": lambda: workbook([["MPN"]])[:-99],
    "zip bomb.xlsx": lambda: changed(SHEET, lambda _: b" " * (65 << 20)),
    "sheet cut inside.xlsx": lambda: changed(SHEET, lambda sheet: sheet[: len(sheet) // 2]),
    "entities.xlsx": lambda: changed(SHEET, lambda sheet: DTD + sheet.replace(b"</sheetData>", ROW)),
    "sheet without a cell.xlsx": lambda: workbook([]),
    "no workbook.xlsx": lambda: changed("xl/workbook.xml", lambda _: b"<x/>"),
    "no column.csv": lambda: b"Pos,Designator\n1,R1\n",
    "utf-7.csv": lambda: b"+/v8-MPN\nSN74S74N\n",
    "zeros.csv": lambda: b"MPN\n\0\0\n",
    "cut utf-16.csv": lambda: "MPN\nX".encode("utf-16")[:-1],
}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def fill(run_command: Fill, tmp_path: Path) -> Fill:
    """Runs the command on a file; the file must be what it was."""

    def run(file: Path, *options: str) -> "subprocess.CompletedProcess[str]":
        before = _digest(file)
        result = run_command("sheet", "fill", str(file), *(options or ("--columns", "price@100,stock")))
        assert _digest(file) == before
        assert "Traceback" not in result.stderr
        return result

    return run


def _refused(result: "subprocess.CompletedProcess[str]", file: Path) -> str:
    """The only line of an error that names the file."""
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert file.name in line
    assert line.isprintable()
    return line


@pytest.mark.parametrize("name", REFUSED)
def test_useless_file_is_refused_in_one_line(fill: Fill, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(REFUSED[name]())
    _refused(fill(file), file)
    assert {each.name for each in tmp_path.iterdir()} <= {file.name, "state"}


def test_copy_that_somebody_changed_or_linked_elsewhere_is_not_overwritten(fill: Fill, tmp_path: Path) -> None:
    file, other = tmp_path / "bom.csv", tmp_path / "other.csv"
    file.write_text("MPN,Manufacturer\nSN74S74N,Texas Instruments\n")
    other.write_text("of somebody else")
    (tmp_path / "bom.filled.csv").symlink_to(other)
    assert fill(file).returncode == 0
    assert "found" in (tmp_path / "bom.filled-2.csv").read_text()
    assert other.read_text() == "of somebody else"


def test_control_characters_of_a_name_do_not_reach_the_terminal(fill: Fill, tmp_path: Path) -> None:
    file = tmp_path / "\x1b[2J[red]bom.xlsx"
    file.write_bytes(REFUSED["cut.xlsx"]())
    result = fill(file)
    assert result.returncode == 2
    assert result.stderr.rstrip("\n").isprintable()
    assert "\\x1b[2J[red]bom.xlsx" in result.stderr
