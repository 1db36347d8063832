"""Tests of `v3bridge sheet` on the embedded sandbox, and on a sandbox of its own with a quota."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from support import cases, commands

BOM = "Ref;Hersteller-Teilenummer;Hersteller;Menge\nU1;SN74S74N;Texas Instruments;100\nU2;NO-SUCH-PART;;1\n"


@pytest.fixture
def sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the command in the test's folder, with a state folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    async def run(*arguments: str) -> commands.CommandResult:
        return await commands.wait(await commands.start(tmp_path, "sheet", *arguments))

    return run


def rows_of(file: Path) -> list[list[str]]:
    """The cells of a CSV file with semicolons."""
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream, delimiter=";"))


async def test_workbook_is_filled_in_place_after_a_backup(sheet: Callable[..., Any], tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["MPN", "Manufacturer"], ["SN74S74N", "Texas Instruments"]):
        book.active.append(row)
    book.save(tmp_path / "BOM.xlsx")
    original = (tmp_path / "BOM.xlsx").read_bytes()
    found = await sheet("fill", "BOM.xlsx", "--columns", "price,url", "--in-place")
    assert found.code == 0, found
    assert "found" in found.out
    (backup,) = tmp_path.glob("BOM.backup-*.xlsx")
    assert backup.read_bytes() == original
    filled = openpyxl.load_workbook(tmp_path / "BOM.xlsx")
    assert filled.sheetnames == ["Sheet"]
    assert filled["Sheet"]["C2"].value > 0
    assert filled["Sheet"]["E2"].value == "found"


async def test_chosen_sheet_is_filled_and_an_unknown_one_is_refused(sheet: Callable[..., Any], tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for name in ("First", "Second"):
        table = book.create_sheet(name)
        table.append(["MPN", "Manufacturer"])
        table.append(["SN74S74N", "Texas Instruments"])
    book.save(tmp_path / "BOM.xlsx")
    found = await sheet("fill", "BOM.xlsx", "--columns", "price", "--read", "sheet=Second")
    assert found.code == 0, found
    filled = openpyxl.load_workbook(tmp_path / "BOM.filled.xlsx")
    assert [filled[name].max_column > 2 for name in ("First", "Second")] == [False, True]
    found = await sheet("fill", "BOM.xlsx", "--columns", "price", "--read", "sheet=Third")
    assert found.code == 2
    assert "Third" in found.err
    assert "First" in found.err


async def test_copy_that_was_edited_is_not_overwritten(sheet: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("MPN,Manufacturer\nSN74S74N,Texas Instruments\n")
    names = list[str]()
    for text in ("mine", "of mine again", None, None):
        if text:
            (tmp_path / (names or ["BOM.filled.csv"])[-1]).write_text(text)
        found = await sheet("fill", "BOM.csv", "--columns", "price", "--offers", "none", "--json")
        names.append(json.loads(found.out)["output"])
    assert names == ["BOM.filled-2.csv", "BOM.filled-3.csv", "BOM.filled-3.csv", "BOM.filled-3.csv"]
    assert (tmp_path / "BOM.filled.csv").read_text() == "mine"
    assert (tmp_path / "BOM.filled-2.csv").read_text() == "of mine again"


async def test_what_was_recognized_is_said_before_the_cost(sheet: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("Title\nMPN;Menge;Mfr\nA1;2.500;TI\nTBD;1;\nA2;;\nA3;;\n")
    found = await sheet("fill", "BOM.csv", "--columns", "price", "--json")
    assert "headings: row 2\n  part number: A 'MPN'\n  manufacturer: C 'Mfr'\n  quantity: B 'Menge'\n" in found.err
    assert "left out: 1 row, above the headings: 1\nleft out: 1 row, 'TBD' is not a part number: 4\n" in found.err
    assert "not understood: B3: '2.500' is 2.5 or 2500" in found.err
    document = json.loads(found.out)
    assert document.items() >= {"lines": 3, "left_out": 1, "not_found": 3}.items()
    assert document["problems"][1:] == ["B5: is empty: 1 is taken", "B6: is empty: 1 is taken"]


@cases.parametrize("arguments, message")
async def test_mistake_is_one_line_and_writes_nothing(
    sheet: Callable[..., Any], tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "BOM.csv").write_text("MPN\nSN74S74N\n")
    (tmp_path / "BOM.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(9))
    found = await sheet("fill", *arguments)
    assert (found.code, found.out) == (2, ""), found
    assert message in found.err
    assert len(found.err.splitlines()) == 1
    assert "S3CRET" not in found.err
    assert not list(tmp_path.glob("*filled*"))


async def test_list_is_bought_for_a_number_of_boards(sheet: Callable[..., Any], tmp_path: Path) -> None:
    bom = "MPN,Manufacturer,Total Qty,Qty\nSN74S74N,Texas Instruments,9,2\nLM358N,Texas Instruments,9,1\nNO-SUCH,,9,1\n"
    (tmp_path / "BOM.csv").write_text(bom)
    done = await sheet("fill", "BOM.csv", "--columns", "needed,total", "--boards", "50", "--json")
    _, *lines = [line.split(",") for line in (tmp_path / "BOM.filled.csv").read_text().splitlines()]
    assert [line[4] for line in lines] == ["100", "50", "50"]
    *sellers, everything, one_board, without = json.loads(done.out)["totals"]
    total = sum(float(line[5] or 0) for line in lines)
    assert float(everything["total"]) == pytest.approx(total, abs=1e-4)
    assert float(everything["total"]) == pytest.approx(sum(float(each["total"]) for each in sellers), abs=1e-4)
    assert float(one_board["total"]) == pytest.approx(total / 50, abs=1e-4)
    assert without == {"distributor": "Without price", "lines": 1, "total": None}
    shown = await sheet("fill", "BOM.csv", "--columns", "needed,total", "--boards", "50")
    assert ["All", "2", f"{total:,.2f}"] in [line.split() for line in shown.out.splitlines()]


async def test_spec_that_nobody_knows_is_refused_before_it_costs(sheet: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text(BOM)
    refused = await sheet("fill", "BOM.csv", "--columns", "spec:pin_cuont")
    assert refused.code == 2
    assert "v3bridge: no spec is called 'pin_cuont' (did you mean pin_count" in refused.err
    assert not (tmp_path / "BOM.filled.csv").exists()
    done = await sheet("fill", "BOM.csv", "--columns", "rohs,spec:Number of Pins", "--json")
    assert json.loads(done.out)["found"] == 1
    assert rows_of(tmp_path / "BOM.filled.csv")[1][4:] == ["Compliant", "14", "found"]
