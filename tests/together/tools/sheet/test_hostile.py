"""`v3bridge sheet fill` on files that no program wrote: one clear line or a bounded run, and the file as it was."""

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest
from support import commands
from support.running_commands import Run
from support.workbooks import workbook


def changed(name: str, change: Callable[[bytes], bytes]) -> bytes:
    """A workbook with one part changed, and the checksums that belong to it."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook([["MPN"], ["SN74S74N"]]))) as whole,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
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
    "\x1b[2J[red]cut.xlsx": lambda: workbook([["MPN"]])[:-99],
    "zip bomb.xlsx": lambda: changed(SHEET, lambda _: b" " * (65 << 20)),
    "sheet cut inside.xlsx": lambda: changed(SHEET, lambda sheet: sheet[: len(sheet) // 2]),
    "entities.xlsx": lambda: changed(SHEET, lambda sheet: DTD + sheet.replace(b"</sheetData>", ROW)),
    "sheet without a cell.xlsx": lambda: workbook([]),
    "no workbook.xlsx": lambda: changed("xl/workbook.xml", lambda _: b"<x/>"),
    "no column.csv": lambda: b"Pos,Designator\n1,R1\n",
    "utf-7.csv": lambda: b"+/v8-MPN\nSN74S74N\n",
    "zeros.csv": lambda: b"MPN\n\0\0\n",
    "open quote.csv": lambda: b'MPN,Qty\nSN74S74N,1\n"1N4007,2\nNE555P,3\n',
    "cut utf-16.csv": lambda: "MPN\nX".encode("utf-16")[:-1],
}


@pytest.mark.parametrize("name", REFUSED)
def test_useless_file_is_refused_in_one_line(fill: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(content := REFUSED[name]())
    result = fill(name, "--columns", "price@100,stock")
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert name.replace("\x1b", "\\x1b") in line
    assert line.isprintable()
    assert ("row 3 is not valid CSV from here on: a quote" in line) is ("quote" in name)
    assert ("is larger than a parts list can be (64 MiB unpacked)" in line) is ("bomb" in name)
    assert (tmp_path / name).read_bytes() == content
    assert {each.name for each in tmp_path.iterdir()} <= {name, "state"}


ROWS, MEGABYTES = 500_000, 150  # of a file that is mostly blank, and of each of the two processes
MEASURE = """
import resource, subprocess, sys
code = subprocess.call([sys.executable, "-m", "proxy", *sys.argv[1:]], stdout=subprocess.DEVNULL)
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
"""


def with_many_cells(sheet: bytes) -> bytes:
    rows = b"".join(b'<row r="%d">%b</row>' % (row, b"<c><v>1</v></c>" * 20) for row in range(1, 20_002))
    return sheet.partition(b"<sheetData>")[0] + b"<sheetData>" + rows + b"</sheetData></worksheet>"


def with_blank_rows() -> bytes:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for address, text in {"A1": "MPN", "A2": "SN74S74N", f"A{ROWS}": "Total"}.items():
        book.active[address] = text
    book.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "name, make, expected, said",
    [
        ("long.xlsx", lambda: changed(SHEET, with_many_cells), 2, "has more than 400,000 cells; split it, or save"),
        ("blank.xlsx", with_blank_rows, 1, "1 line, 1 distinct query"),
        ("blank.csv", lambda: b"MPN\nSN74S74N\n" + b",\n" * ROWS, 1, "1 line, 1 distinct query"),
    ],
)
def test_long_file_needs_little_memory(
    tmp_path: Path, name: str, make: Callable[[], bytes], expected: int, said: str
) -> None:
    (tmp_path / name).write_bytes(make())
    command = [sys.executable, "-c", MEASURE, "sheet", "fill", name, "--columns", "price", "--offers", "none"]
    environment = commands.environment(tmp_path)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    code, used = map(int, done.stdout.split())
    assert (code, said in done.stderr) == (expected, True), done.stderr
    assert used < MEGABYTES
