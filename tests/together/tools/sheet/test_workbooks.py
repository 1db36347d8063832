"""Workbooks: filled in a copy, with columns or by the formulas of the add-in."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.chart import BarChart
from openpyxl.styles import PatternFill
from support.running_commands import Run
from support.workbooks import workbook
from together.browser.background import Background

import nexar_sandbox

X = "=_xll.NEXAR_SUPPLY_"
LOGIN = f'{X}LOGIN("id","planted-secret")'
CELLS = {"A1": LOGIN, "A2": "SN74S74N", "B2": f'{X}DISTRIBUTOR_PRICE(A2,"Texas Instruments",,100)'}


@pytest.fixture
def upstream(catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey) -> Iterator[nexar_sandbox.Sandbox]:
    settings = nexar_sandbox.SandboxSettings()
    with Background() as running:
        yield running.enter(nexar_sandbox.serve(settings, catalog=catalog, key=signing_key))


def write(file: Path, cells: dict[str, Any], title: str = "BOM") -> Any:
    book = openpyxl.Workbook()
    book.active.title = title
    for address, value in cells.items():
        book.active[address] = value
    book.save(file)
    return book


def sheet(file: Path) -> Any:
    return openpyxl.load_workbook(file).worksheets[0]


LIST = {"A1": "MPN", "B1": "Manufacturer", "C1": "Qty", "A2": "SN74S74N", "B2": "Texas Instruments", "C2": 2}


def test_copy_has_the_columns_in_the_style_of_the_sheet(fill: Run, tmp_path: Path) -> None:
    book = write(tmp_path / "BOM.xlsx", {**LIST, "A3": 1868783, "B3": "Dymo", "C3": 1})
    book.active["C1"].fill = PatternFill("solid", fgColor="DCE6F1")
    book.save(tmp_path / "BOM.xlsx")
    before = (tmp_path / "BOM.xlsx").read_bytes()
    done = fill("BOM.xlsx", "--columns", "price,needed,description", "--json")
    assert done.returncode == 0, done
    assert (tmp_path / "BOM.xlsx").read_bytes() == before
    filled = sheet(tmp_path / "BOM.filled.xlsx")
    assert [cell.value for cell in filled[1]][3:] == [
        *("Nexar price USD", "Nexar needed", "Nexar description", "Nexar status")
    ]
    assert {filled[f"{column}1"].fill.fgColor.rgb for column in "CDEFG"} == {"00DCE6F1"}
    assert {filled[f"{column}2"].fill.fill_type for column in "CDEFG"} == {None}
    assert (filled["D2"].number_format, filled["E2"].value, filled["G2"].value) == ("#,##0.00###", 2, "found")
    header, *offers = (tmp_path / "BOM.offers.csv").read_text(encoding="utf-8-sig").splitlines()
    assert header.startswith("Line,Part number,Manufacturer,Distributor")
    assert {line.split(",")[0] for line in offers} == {"2", "3"}


def test_sheet_that_is_read_is_named_and_others_with_part_numbers(fill: Run, tmp_path: Path) -> None:
    file, command = tmp_path / "BOM.xlsx", ("BOM.xlsx", "--columns", "price", "--budget", "0")
    file.write_bytes(workbook([["Cover"]], [["MPN"], ["SN74S74N"]], [["MPN"], ["1N4007"]]))
    found = fill(*command)
    assert "headings: row 1 of sheet 'S2'\n" in found.stderr
    assert "note: other sheets with part numbers: 'S3'; --read sheet=NAME reads one\n" in found.stderr
    book = openpyxl.load_workbook(file)
    book["S2"].sheet_state = book["S3"].sheet_state = "hidden"
    book.save(file)
    found = fill(*command)
    assert "sheet 'S1' (other sheets with part numbers: 'S2', 'S3'; --read sheet=NAME reads one)" in found.stderr
    assert found.returncode == 2


def test_quantity_that_is_a_formula_without_a_value_is_named(fill: Run, tmp_path: Path) -> None:
    write(tmp_path / "BOM.xlsx", {**LIST, "C2": "=1+1", "A3": "=A2", "C3": 1})
    done = fill("BOM.xlsx", "--columns", "price,stock", "--offers", "none", "--json")
    text = (
        "C2: the quantity is a formula that was not calculated: open the file in a spreadsheet program and save it once"
    )
    assert f"not understood: {text}" in done.stderr
    assert "left out: row 3: the part number is a formula that was not calculated" in done.stderr
    assert "note: the copy's other formulas show values when a spreadsheet program opens it" in done.stderr
    filled = sheet(tmp_path / "BOM.filled.xlsx")
    assert filled["F2"].value == f"found, not priced: {text.partition(': ')[2]}"
    assert filled["C2"].value == "=1+1"
    assert (done.returncode, json.loads(done.stdout)["not_priced"]) == (1, 1)


SPARKLINES = b'<extLst><ext uri="{05C60535-1F16-4FD2-B633-F4F36F0B64E0}" xmlns:x14="http://x"><x14:sparklineGroups/></ext></extLst>'
ADDED = [  # parts that a program may put into a workbook
    *("xl/ctrlProps/ctrlProp1.xml", "xl/slicers/slicer1.xml", "xl/threadedComments/threadedComment1.xml"),
    *("docMetadata/LabelInfo.xml", "xl/connections.xml"),
]
LOST = [  # what is said of them, and of a chart, a formula and sparklines
    *("form controls", "slicers", "threaded comments", "docMetadata/LabelInfo.xml", "xl/connections.xml"),
    *("charts", "drawings", "the values of formulas", "Sparkline Group extension"),
]


def test_what_a_copy_would_lose_is_named_and_not_replaced(fill: Run, tmp_path: Path) -> None:
    book = write(tmp_path / "BOM.xlsx", {**LIST, "C9": "=C2*2"})
    book.active.add_chart(BarChart(), "H2")
    book.save(tmp_path / "BOM.xlsx")
    with zipfile.ZipFile(tmp_path / "BOM.xlsx") as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(tmp_path / "BOM.xlsx", "w") as archive:
        for name, content in (members | dict.fromkeys(ADDED, b"<x/>")).items():
            archive.writestr(name, content.replace(b"<drawing", SPARKLINES + b"<drawing"))
    before = (tmp_path / "BOM.xlsx").read_bytes()
    done = fill("BOM.xlsx", "--columns", "stock", "--offers", "none", "--in-place")
    (note,) = [line for line in done.stderr.splitlines() if line.startswith("note: a copy lacks or changes ")]
    assert note.endswith(", so that the file is not filled in place")
    assert [each for each in LOST if each not in note] == []
    assert done.stderr.index(note) < done.stderr.index("to fetch: ")
    assert (tmp_path / "BOM.xlsx").read_bytes() == before
    assert sheet(tmp_path / "BOM.filled.xlsx")["D2"].value > 0


def test_text_of_the_service_is_no_formula(fill: Run, tmp_path: Path) -> None:
    write(tmp_path / "BOM.xlsx", {"A1": "MPN", "A2": '=HYPERLINK("http://x")', "A3": "-1+1"})
    (tmp_path / "list.csv").write_text("MPN,Maker\n=1+1,@SUM(1)\n")
    assert fill("BOM.xlsx", "--columns", "stock", "--offers", "none").returncode == 3
    assert sheet(tmp_path / "BOM.filled.xlsx")["A3"].data_type == "s"
    assert fill("list.csv", "--columns", "stock", "--offers", "none").returncode == 3
    assert (tmp_path / "list.filled.csv").read_text().splitlines()[1].endswith(",not found: no part has this number")


def test_calls_with_literals_and_cells_are_filled_and_the_rest_is_left(fill: Run, tmp_path: Path) -> None:
    others = {
        "C2": f"=IFERROR({X[1:]}DISTRIBUTOR_PRICE(A2)*2,-1)",
        "D2": f"{X}DISTRIBUTOR_STOCK(UPPER(A2))",
        "E2": f"{X}DETAIL_URL(B2)",
        "F2": f"{X}NO_SUCH(A2)",
        "G2": f"{X}DISTRIBUTOR_PRICE(A2,,,Z9)",
        "Z9": "=1+1",
    }
    filled = {
        "H2": f'{X}DISTRIBUTOR_STOCK("SN74S74N",,J2:J3)',
        "I2": f"{X}DISTRIBUTOR_MOQ($A$2,Other!A1)",
        "J2": "Mouser",
        "J3": 459,
        "K2": f'{X}DISTRIBUTOR_PRICE(A2,,"Nobody & Sons")',
        "L2": f'{X}AVERAGE_PRICE(A2,,"many")',
        "A3": "NO-SUCH-PART",
        "B3": f"{X}MANUFACTURER_NAME(A3)",
    }
    book = write(tmp_path / "BOM.xlsx", {**CELLS, **others, **filled})
    book.create_sheet("Other")["A1"] = "Texas Instruments"
    book.save(tmp_path / "BOM.xlsx")
    done = fill("BOM.xlsx", "--json")
    copy = sheet(tmp_path / "BOM.filled.xlsx")
    assert (copy["A1"].value, copy["A1"].comment.text) == (
        "The Nexar Supply Add-in is ready!",
        "=NEXAR_SUPPLY_LOGIN(…)",
    )
    assert (copy["B2"].value, copy["B2"].comment.text) == (0.32897, CELLS["B2"])
    assert {address: copy[address].value for address in others} == others
    assert copy["H2"].value > 0
    assert copy["I2"].value == 1
    assert [copy[address].value for address in ("K2", "L2", "B3")] == ["#N/A", "#VALUE!", "#N/A"]
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["cells"], summary["left_out"], summary["not_found"]) == (1, 6, 5, 1)
    for address, reason in {
        "C2": "the formula is not one call of a function of the add-in",
        "D2": "the formula is not one call of a function of the add-in",
        "E2": "argument 1 is the result of another call",
        "F2": "the formula is not one call of a function of the add-in",
        "G2": "argument 4 was not calculated: open the file and save it once",
    }.items():
        assert f"left as it is: BOM!{address}: {reason}\n" in done.stderr
    assert "no distributor is called 'Nobody & Sons': formulas that name no other have no value" in done.stderr
    assert "planted-secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "cells, arguments, message",
    [
        ({"A1": 0}, (), "no login: BOM!B2 use the add-in's functions"),
        ({"Z9": LOGIN}, (), "two logins, in BOM!A1, BOM!Z9"),
        ({"A1": f"{X}LOGIN(Y1,Y2)"}, ("--config", "own.yaml"), "Please provide your Nexar application"),
        ({}, ("--only-distributors", "Digi-Key"), "--only-distributors: is for columns: add --columns"),
        (
            {"A1": 0, "B2": 0},
            (),
            "no formula has a function of the add-in; to add columns to a parts list, use --columns",
        ),
    ],
)
def test_mistake_is_one_line_and_writes_nothing(
    fill: Run, tmp_path: Path, cells: dict[str, Any], arguments: tuple[str, ...], message: str
) -> None:
    write(tmp_path / "BOM.xlsx", {**CELLS, **cells})
    (tmp_path / "own.yaml").write_text(
        'upstream: {graphql_url: "http://127.0.0.1:9/g", token_url: "http://127.0.0.1:9/t"}\n'
        "store: 'memory:'\napplications: {own: {client_id: id, client_secret: planted, apikeys: [planted-key]}}\n"
    )
    result = fill("BOM.xlsx", *arguments)
    assert (result.returncode, result.stdout) == (2, ""), result
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "planted" not in result.stderr
    assert not list(tmp_path.glob("*filled*"))


def test_workbook_s_login_pays_and_lasts_a_day(fill: Run, tmp_path: Path, upstream: nexar_sandbox.Sandbox) -> None:
    own = {"client_id": "other-id", "client_secret": "planted-other", "apikeys": ["planted-key"]}
    settings = {
        "upstream": {"graphql_url": upstream.graphql_url, "token_url": upstream.token_url},
        "store": f"sqlite:{tmp_path / 'state.sqlite'}",
        "applications": {"own": own},
    }
    (tmp_path / "own.yaml").write_text(json.dumps(settings))
    write(tmp_path / "BOM.xlsx", {**CELLS, "A1": f'{X}LOGIN("{upstream.client_id}","{upstream.client_secret}")'})
    command = ("BOM.xlsx", "--config", "own.yaml", "--yes")
    refused = fill(*command[:3])
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True), refused
    first = fill(*command)
    assert (first.returncode, upstream.request_counts.tokens) == (0, 1), first
    file = tmp_path / "state" / "v3bridge" / "sheet.json"
    state = json.loads(file.read_text())
    state["logins"] = {name: time - 86_400 for name, time in state["logins"].items()}
    file.write_text(json.dumps(state))
    expired = fill(*command)
    message = "BOM!A1: The access token has expired, please refresh login! Run again with --refresh-login"
    assert (expired.returncode, message in expired.stderr) == (2, True), expired
    renewed = fill(*command, "--refresh-login")
    assert (renewed.returncode, upstream.request_counts.tokens) == (0, 1), renewed  # the store has every part
    for _ in range(2):  # the token of the first one is kept
        anew = fill(*command, "--force-rerun-all")
        assert (anew.returncode, upstream.request_counts.tokens) == (0, 2), anew
    shown = (refused, first, expired, renewed, anew, file.read_text())
    assert upstream.client_secret not in "".join(map(str, shown))
    key = fill(*command, "--api-key", "env:KEY", KEY="planted-key")
    assert "planted" not in key.stderr + key.stdout
