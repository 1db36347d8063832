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
    assert filled.sheetnames == ["Sheet", "Offers"]
    assert filled["Sheet"]["C2"].value > 0
    assert filled["Sheet"]["E2"].value == "found"


@pytest.mark.parametrize("mark", [".~lock.BOM.xlsx#", "~$BOM.xlsx"])
async def test_workbook_that_is_open_in_another_program_is_named(
    sheet: Callable[..., Any], tmp_path: Path, mark: str
) -> None:
    book = openpyxl.Workbook()
    book.active.append(["MPN"])
    book.save(tmp_path / "BOM.xlsx")
    (tmp_path / mark).touch()
    found = await sheet("fill", "BOM.xlsx", "--columns", "price", "--in-place")
    assert (
        "note: BOM.xlsx is open in another program: if it saves the file meanwhile, the result is a copy" in found.err
    )


async def test_chosen_sheet_is_filled_and_an_unknown_one_is_refused(sheet: Callable[..., Any], tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for name in ("First", "Second"):
        table = book.create_sheet(name)
        table.append(["MPN", "Manufacturer"])
        table.append(["SN74S74N", "Texas Instruments"])
    book.save(tmp_path / "BOM.xlsx")
    found = await sheet("fill", "BOM.xlsx", "--columns", "price", "--sheet", "Second", "--output", "out.xlsx")
    assert found.code == 0, found
    filled = openpyxl.load_workbook(tmp_path / "out.xlsx")
    assert [filled[name].max_column > 2 for name in ("First", "Second")] == [False, True]
    found = await sheet("fill", "BOM.xlsx", "--columns", "price", "--sheet", "Third")
    assert found.code == 2
    assert "Third" in found.err
    assert "First" in found.err


async def test_output_that_was_edited_is_not_overwritten(sheet: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("MPN\nSN74S74N\n")
    (tmp_path / "BOM.filled.csv").write_text("mine")
    found = await sheet("fill", "BOM.csv", "--columns", "price")
    assert found.code == 2
    assert "BOM.filled.csv: exists, and was changed since it was filled" in found.err
    assert (tmp_path / "BOM.filled.csv").read_text() == "mine"
    found = await sheet("fill", "BOM.csv", "--columns", "package", "--output", "other.csv", "--json")
    assert found.code in {0, 1}, found
    assert (tmp_path / "other.csv").exists()


async def test_dry_run_prints_the_cost_and_writes_nothing(sheet: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("MPN\nA1\nA2\nA1\n")
    found = await sheet("fill", "BOM.csv", "--columns", "price", "--dry-run")
    assert (found.code, found.out) == (0, "")
    assert "BOM.csv: 3 lines, 2 distinct queries, 0 in the cache" in found.err
    assert {file.name for file in tmp_path.iterdir()} <= {"BOM.csv", "state"}


async def test_dry_run_says_what_was_recognized(sheet: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("Title\nMPN;Menge;Mfr\nA1;2.500;TI\nTBD;1;\nA2;;\nA3;;\n")
    found = await sheet("fill", "BOM.csv", "--columns", "price", "--dry-run", "--json")
    assert "headings: row 2\n  part number: A 'MPN'\n  manufacturer: C 'Mfr'\n  quantity: B 'Menge'\n" in found.err
    assert "not read: B3: '2.500' is 2.5 or 2500" in found.err
    assert "note: 2 lines without a quantity, 1 is taken: 5-6\n" in found.err
    document = json.loads(found.out)
    assert document.items() >= {"lines": 3, "queries": 3, "parts_at_most": 3, "from_cache": 0}.items()
    assert document["recognized"] == {
        "sheet": None,
        "header_row": 2,
        "columns": [
            {"column": "A", "heading": "MPN", "role": "part number"},
            {"column": "B", "heading": "Menge", "role": "quantity"},
            {"column": "C", "heading": "Mfr", "role": "manufacturer"},
        ],
        "unused_quantities": [],
        "without_quantity": [5, 6],
        "numbers_from_values": False,
        "counts_designators": False,
        "left_out": [
            {"reason": "above the headings", "rows": [1]},
            {"reason": "'TBD' is not a part number", "rows": [4]},
        ],
    }
    found = await sheet("fill", "BOM.csv", "--columns", "price", "--dry-run", "--json", "--decimal", "comma")
    assert json.loads(found.out)["problems"] == []
    found = await sheet("fill", "BOM.csv", "--columns", "price", "--header-row", "1")
    assert (found.code, "the columns of row 1 are A 'Title'" in found.err) == (2, True)


@cases.parametrize("arguments, message")
async def test_mistake_is_one_line_and_writes_nothing(
    sheet: Callable[..., Any], tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "BOM.csv").write_text("MPN\nSN74S74N\n")
    (tmp_path / "BOM.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    found = await sheet("fill", *arguments)
    assert (found.code, found.out) == (2, ""), found
    assert message in found.err
    assert len(found.err.splitlines()) == 1
    assert "S3CRET" not in found.err
    assert not list(tmp_path.glob("*filled*"))


async def test_list_is_bought_for_a_number_of_boards(sheet: Callable[..., Any], tmp_path: Path) -> None:
    bom = "MPN,Manufacturer,Qty,Attrition\nSN74S74N,Texas Instruments,2,10%\nLM358N,,1,\nNO-SUCH,,1,\n"
    (tmp_path / "BOM.csv").write_text(bom)
    options = ("--columns", "needed,total", "--boards", "50", "--attrition", "2%")
    done = await sheet("fill", "BOM.csv", *options, "--json")
    assert "note: quantities are those of 50 boards, with an attrition of 2% unless stated" in done.err
    _, *lines = [line.split(",") for line in (tmp_path / "BOM.filled.csv").read_text().splitlines()]
    assert [line[4] for line in lines] == ["110", "51", "51"]
    totals = json.loads(done.out)["totals"]
    *sellers, everything, one_board, without = totals["amounts"]
    total = sum(float(line[5] or 0) for line in lines)
    assert totals["currency"] == "USD"
    assert float(everything["total"]) == pytest.approx(total, abs=1e-4)
    assert float(everything["total"]) == pytest.approx(sum(float(each["total"]) for each in sellers), abs=1e-4)
    assert float(one_board["total"]) == pytest.approx(total / 50, abs=1e-4)
    assert without == {"distributor": "Without price", "lines": 1, "total": None}
    shown = await sheet("fill", "BOM.csv", *options)
    assert "│ All" in shown.out
    refused = await sheet("fill", "BOM.csv", "--columns", "total", "--attrition", "0.02")
    assert refused.code == 2
    assert "'0.02' is neither a share such as 3% nor a number of pieces" in " ".join(refused.err.split())


async def test_spec_that_nobody_knows_is_refused_before_it_costs(sheet: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text(BOM)
    refused = await sheet("fill", "BOM.csv", "--columns", "spec:pin_cuont")
    assert refused.code == 2
    assert "v3bridge: no spec is called 'pin_cuont' (did you mean pin_count" in refused.err
    assert not (tmp_path / "BOM.filled.csv").exists()
    done = await sheet("fill", "BOM.csv", "--columns", "rohs,spec:Number of Pins", "--json")
    assert json.loads(done.out)["found"] == 1
    assert rows_of(tmp_path / "BOM.filled.csv")[1][4:] == ["Compliant", "14", "found"]
