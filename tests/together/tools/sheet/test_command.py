"""`v3bridge sheet fill` on the embedded sandbox: where results go, what is said before the cost, and mistakes."""

import csv
import json
from pathlib import Path

import openpyxl
import pytest
from support import cases
from support.running_commands import Run
from support.workbooks import workbook

BOM = "Ref;Hersteller-Teilenummer;Hersteller;Menge\nU1;SN74S74N;Texas Instruments;100\nU2;NO-SUCH-PART;;1\n"


def test_chosen_sheet_is_filled_in_place_after_a_backup(fill: Run, tmp_path: Path) -> None:
    table = [["MPN", "Manufacturer"], ["SN74S74N", "Texas Instruments"]]
    original = workbook(table, table)
    (tmp_path / "BOM.xlsx").write_bytes(original)
    found = fill("BOM.xlsx", "--columns", "price", "--read", "sheet=Third")
    assert (found.returncode, "Third" in found.stderr, "S1" in found.stderr) == (2, True, True)
    found = fill("BOM.xlsx", "--columns", "price,url", "--in-place", "--read", "sheet=S2")
    assert found.returncode == 0, found
    (backup,) = tmp_path.glob("BOM.backup-*.xlsx")
    assert backup.read_bytes() == original
    filled = openpyxl.load_workbook(tmp_path / "BOM.xlsx")
    assert (filled.sheetnames, filled["S1"].max_column) == (["S1", "S2"], 2)
    assert (filled["S2"]["C2"].value > 0, filled["S2"]["E2"].value) == (True, "found")
    widths = [filled["S2"].column_dimensions[letter].width for letter in "CD"]
    assert widths == [max(13, len(filled["S2"]["C1"].value) + 2), 40]  # of the heading, and of a long address


def test_copy_that_was_edited_or_linked_elsewhere_is_not_overwritten(fill: Run, tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("MPN,Manufacturer\nSN74S74N,Texas Instruments\n")
    (tmp_path / "other.csv").write_text("of somebody else")
    (tmp_path / "BOM.filled.csv").symlink_to(tmp_path / "other.csv")
    names = list[str]()
    for text in (None, "mine", None):
        if text:
            (tmp_path / names[-1]).write_text(text)
        found = fill("BOM.csv", "--columns", "price", "--offers", "none", "--json")
        names.append(json.loads(found.stdout)["output"])
    assert names == ["BOM.filled-2.csv", "BOM.filled-3.csv", "BOM.filled-3.csv"]
    assert (tmp_path / "other.csv").read_text() == "of somebody else"
    assert (tmp_path / "BOM.filled-2.csv").read_text() == "mine"


def test_what_was_recognized_is_said_before_the_cost(fill: Run, tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("Title\nMPN;Menge;Mfr\nA1;2.500;TI\nTBD;1;\nA2;;\nA3;;\n")
    quoted = fill("BOM.csv", "--columns", "price", "--budget", "0", "--json")
    assert (quoted.returncode, json.loads(quoted.stdout)["parts_at_most"]) == (0, 18)
    assert not list(tmp_path.glob("*filled*"))
    found = fill("BOM.csv", "--columns", "price", "--json")
    assert "headings: row 2\n  part number: A 'MPN'\n  manufacturer: C 'Mfr'\n  quantity: B 'Menge'\n" in found.stderr
    assert "left out: row 1: above the headings\nleft out: row 4: 'TBD' is not a part number\n" in found.stderr
    assert "not understood: B3: '2.500' is 2.5 or 2500" in found.stderr
    document = json.loads(found.stdout)
    assert document.items() >= {"lines": 3, "left_out": 1, "not_found": 3}.items()
    assert document["problems"][1:] == ["B5: is empty: 1 is taken", "B6: is empty: 1 is taken"]


def test_messages_beyond_twenty_are_counted(fill: Run, tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text("MPN,Qty\n" + "".join(f"NO-SUCH-PART,{number}.500\n" for number in range(1, 26)))
    done = fill("BOM.csv", "--columns", "price")
    assert "\nnot understood: 5 more; --json lists all\n" in done.stderr
    assert "\n  5 more reasons; --json lists all\n" in done.stdout


@cases.parametrize("arguments, message")
def test_mistake_is_one_line_and_writes_nothing(fill: Run, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "BOM.csv").write_text("MPN\nSN74S74N\n")
    (tmp_path / "BOM.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(9))
    found = fill(*arguments)
    assert (found.returncode, found.stdout) == (2, ""), found
    assert message in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert "S3CRET" not in found.stderr
    assert not list(tmp_path.glob("*filled*"))


def test_list_is_bought_for_a_number_of_boards(fill: Run, tmp_path: Path) -> None:
    bom = "MPN,Manufacturer,Total Qty,Qty\nSN74S74N,Texas Instruments,9,2\nLM358N,Texas Instruments,9,1\nNO-SUCH,,9,1\n"
    (tmp_path / "BOM.csv").write_text(bom)
    done = fill("BOM.csv", "--columns", "needed,total", "--boards", "50", "--json")
    _, *lines = [line.split(",") for line in (tmp_path / "BOM.filled.csv").read_text().splitlines()]
    assert [line[4] for line in lines] == ["100", "50", "50"]
    *sellers, everything, one_board, without = json.loads(done.stdout)["totals"]
    total = sum(float(line[5] or 0) for line in lines)
    assert float(everything["total"]) == pytest.approx(total, abs=1e-4)
    assert float(everything["total"]) == pytest.approx(sum(float(each["total"]) for each in sellers), abs=1e-4)
    assert float(one_board["total"]) == pytest.approx(total / 50, abs=1e-4)
    assert without == {"distributor": "Without price", "lines": 1, "total": None}
    shown = fill("BOM.csv", "--columns", "needed,total", "--boards", "50")
    assert ["All", "2", f"{total:,.2f}"] in [line.split() for line in shown.stdout.splitlines()]


def test_spec_that_nobody_knows_is_refused_before_it_costs(fill: Run, tmp_path: Path) -> None:
    (tmp_path / "BOM.csv").write_text(BOM)
    refused = fill("BOM.csv", "--columns", "spec:pin_cuont")
    assert refused.returncode == 2
    assert "v3bridge: no spec is called 'pin_cuont' (did you mean pin_count" in refused.stderr
    assert not (tmp_path / "BOM.filled.csv").exists()
    done = fill("BOM.csv", "--columns", "rohs,spec:Number of Pins", "--json")
    assert json.loads(done.stdout)["found"] == 1
    with (tmp_path / "BOM.filled.csv").open(newline="", encoding="utf-8") as stream:
        assert [*csv.reader(stream, delimiter=";")][1][4:] == ["Compliant", "14", "found"]
