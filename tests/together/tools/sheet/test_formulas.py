"""Tests of `v3bridge sheet fill` for formulas: on the embedded sandbox, and with logins of workbooks on another."""

import json
import zipfile
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support import commands
from support.filled_formulas import LOGIN, X, book
from support.workbooks.builder import AnyCell, FormulaCell

import nexar_sandbox
from proxy.tools.sheet.package.cells import CellError, CellValue
from proxy.tools.sheet.package.workbook import open_package

RECORDED = "shared/recorded/workbooks/NexarSupplytAddInExample.xlsm"
SAMPLE = next((folder / RECORDED for folder in Path(__file__).parents if (folder / RECORDED).exists()), Path(RECORDED))

PARTS = {"A2": "SN74S74N", "A3": "NO-SUCH-PART"}
FORMULAS: dict[str, AnyCell] = {
    **PARTS,
    "B2": FormulaCell(f'{X}DISTRIBUTOR_PRICE(A2,"Texas Instruments",,100)', 9.9, array="B2", dynamic=True),
    "C2": FormulaCell(f"{X}DISTRIBUTOR_STOCK($A2)", "old"),
    "D2": FormulaCell(f"{X}DETAIL_URL(A2)", "old"),
    "E2": FormulaCell(f"{X}MANUFACTURER_NAME(A2)", "old"),
    "F2": FormulaCell(f'{X}DISTRIBUTOR_PRICE(A2,"Texas Instruments",,100,"NOK")', 9.9),
    "B3": FormulaCell(f"{X}DISTRIBUTOR_PRICE(A3)", 9.9),
}

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `sheet fill` in the test's folder, without LibreOffice unless PATH is given."""

    async def filled(*arguments: str, **environment: Any) -> commands.CommandResult:
        environment = {"PATH": str(tmp_path / "no programs"), **environment}
        return await commands.wait(await commands.start(tmp_path, "sheet", "fill", *arguments, **environment))

    return filled


@pytest.fixture
async def upstream() -> AsyncIterator[nexar_sandbox.Sandbox]:
    """A sandbox that stands for the real service."""
    async with nexar_sandbox.serve(nexar_sandbox.SandboxSettings()) as sandbox:
        yield sandbox


async def test_formula_that_names_unknown_distributors_alone_costs_nothing(run: Run, tmp_path: Path) -> None:
    cells: dict[str, AnyCell] = {
        "A2": "SN74S74N",
        "B2": FormulaCell(f'{X}DISTRIBUTOR_PRICE(A2,,"Nobody & Sons")', 9.9),
        "A3": "1N4007",
        "B3": FormulaCell(f'{X}DISTRIBUTOR_STOCK(A3,,{{"Nobody & Sons","Newark"}})', 9.9),
    }
    write(tmp_path, cells)
    found = await run("BOM.xlsx", "--json")
    assert (
        "note: no distributor is called 'Nobody & Sons': formulas that name no other have no value, and cost nothing"
        in found.err.splitlines()
    )
    assert "BOM.xlsx: 2 cells, 1 distinct query, 0 in the cache" in found.err
    summary = json.loads(found.out)
    assert summary["reasons"]["no value: no distributor is called 'Nobody & Sons'"] == 1
    assert summary["no_value"] == 1
    filled = values(tmp_path / "BOM.filled.xlsx")
    assert filled["B2"] == CellError("#N/A")
    assert isinstance(filled["B3"], Decimal)
    second = await run("BOM.xlsx", "--as-add-in", "--dry-run")  # the add-in spends the part
    assert "BOM.xlsx: 2 cells, 2 distinct queries" in second.err
    assert "formulas that name no other have no value\n" in second.err


def values(file: Path) -> dict[str, CellValue]:
    """The values of the first sheet, by address."""
    with open_package(file) as package:
        rows = list(package.rows(package.sheets[0]))
    return {f"{'ABCDEFGHIJKLM'[cell.column - 1]}{cell.row}": cell.value for _, row in rows for cell in row}


def write(folder: Path, cells: dict[str, AnyCell]) -> Path:
    return book(cells).write(folder / "BOM.xlsx")


def configure(folder: Path, sandbox: nexar_sandbox.Sandbox, **application: str) -> None:
    """Write a configuration with a sandbox as upstream, and one application with other credentials."""
    entry = {"client_id": "other-id", "client_secret": "planted-other", "apikeys": ["planted-key"], **application}
    settings = {
        "upstream": {"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url},
        "store": f"sqlite:{folder / 'state.sqlite'}",
        "applications": {"own": entry},
    }
    (folder / "own.yaml").write_text(json.dumps(settings))


def login(sandbox: nexar_sandbox.Sandbox, secret: str = "") -> FormulaCell:
    account = sandbox.default_application
    return FormulaCell(f'{X}LOGIN("{account.client_id}","{secret or account.client_secret}")', "old")


async def test_values_of_the_add_in_replace_formulas_in_place(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path, FORMULAS)
    before = source.read_bytes()
    result = await run("BOM.xlsx", "--as-add-in", "--values", "--in-place", "--json")
    assert json.loads(result.out)["cells"] == 6, result
    (backup,) = tmp_path.glob("BOM.backup-*.xlsx")
    assert backup.read_bytes() == before
    with open_package(source) as package:
        cells = [cell for _, row in package.rows(package.sheets[0]) for cell in row]
    assert not any(cell.formula for cell in cells)
    filled = values(source)
    assert filled["B3"] == "ERROR: Query did not provide a result. Please widen your search criteria."
    assert filled["F2"] == filled["B3"]  # no offer has a price in NOK
    assert isinstance(filled["B2"], Decimal)
    assert filled["B2"] == round(filled["B2"], 5)


async def test_cells_that_need_libreoffice_are_listed_without_it(run: Run, tmp_path: Path) -> None:
    write(tmp_path, {**FORMULAS, "G2": FormulaCell(f"IFERROR({X}DISTRIBUTOR_PRICE(A2)*2,-1)", 7)})
    result = await run("BOM.xlsx", "--json")
    assert result.code == 1
    assert "not filled: BOM!G2: not calculated: LibreOffice is not installed" in result.err
    assert json.loads(result.out)["problems"] == ["BOM!G2: not calculated: LibreOffice is not installed"]
    assert values(tmp_path / "BOM.filled.xlsx")["G2"] == Decimal(7)


async def test_libreoffice_calculates_what_depends_on_functions(
    run: Run, tmp_path: Path, needs_program: Callable[[str], str]
) -> None:
    program = needs_program("soffice")
    cells = {**FORMULAS, "G2": FormulaCell(f"IFERROR({X}DISTRIBUTOR_PRICE(A3)*2,-1)", 7), "H2": FormulaCell("G2*3", 0)}
    write(tmp_path, cells)
    result = await run("BOM.xlsx", "--libreoffice", program, PATH="/usr/bin:/bin")
    assert "not filled: " not in result.err, result
    filled = values(tmp_path / "BOM.filled.xlsx")
    assert (filled["G2"], filled["H2"]) == (Decimal(-1), Decimal(-3))


async def test_workbook_s_login_pays_and_lasts_a_day(run: Run, tmp_path: Path, upstream: nexar_sandbox.Sandbox) -> None:
    configure(tmp_path, upstream)
    write(tmp_path, {**FORMULAS, "A1": login(upstream)})
    first = await run("BOM.xlsx", "--config", "own.yaml")
    assert (first.code, "--yes" in first.err) == (2, True), first
    first = await run("BOM.xlsx", "--config", "own.yaml", "--yes")
    assert first.code == 1, first
    assert values(tmp_path / "BOM.filled.xlsx")["A1"] == "The Nexar Supply Add-in is ready!"
    logins = tmp_path / "state" / "v3bridge" / "sheet" / "logins.json"
    times = json.loads(logins.read_text())
    assert upstream.request_counts.tokens == 1
    await run("BOM.xlsx", "--config", "own.yaml", "--yes", "--force-rerun-all")
    assert upstream.request_counts.tokens == 1
    logins.write_text(json.dumps({name: time - 86_400 for name, time in times.items()}))
    expired = await run("BOM.xlsx", "--config", "own.yaml", "--yes")
    assert expired.code == 2
    assert "BOM!A1: The access token has expired, please refresh login! Run again with --refresh-login" in expired.err
    renewed = await run("BOM.xlsx", "--config", "own.yaml", "--yes", "--refresh-login")
    assert (renewed.code, upstream.request_counts.tokens) == (1, 1), renewed  # the cache has every part
    renewed = await run("BOM.xlsx", "--config", "own.yaml", "--yes", "--force-rerun-all")
    assert renewed.code == 1, renewed
    assert upstream.request_counts.tokens == 2
    outputs = first.err + first.out + expired.err + renewed.err + renewed.out + logins.read_text()
    assert upstream.default_application.client_secret not in outputs


async def test_api_key_stands_in_for_the_login(run: Run, tmp_path: Path, upstream: nexar_sandbox.Sandbox) -> None:
    account = upstream.default_application
    configure(tmp_path, upstream, client_id=account.client_id, client_secret=account.client_secret)
    write(tmp_path, {**FORMULAS, "A1": 0})
    arguments = ("BOM.xlsx", "--config", "own.yaml", "--yes")
    result = await run(*arguments, "--api-key", "env:KEY", KEY="planted-key")
    assert result.code == 1, result
    assert "planted" not in result.err + result.out
    write(tmp_path, {**FORMULAS, "A1": FormulaCell('OCTOPART_SET_APIKEY("planted-key")', "")})
    assert (await run(*arguments)).code == 1
    assert values(tmp_path / "BOM.filled.xlsx")["A1"] == "Octopart Add-In is ready!"


@pytest.mark.parametrize(
    "cells, arguments, message",
    [
        ({"A1": 0}, (), "no login: BOM!B2, BOM!C2"),
        ({"Z9": LOGIN}, (), "two logins, in BOM!A1, BOM!Z9"),
        (
            {"A1": FormulaCell(f"{X}LOGIN(Y1,Y2)", "")},
            ("--config", "own.yaml"),
            "Please provide your Nexar application",
        ),
        ({"E2": FormulaCell(f"{X}DETAIL_URL(E2)", "")}, (), "circular reference: BOM!E2"),
        ({}, ("--distributors", "Digi-Key"), "--distributors: is for columns: add --columns"),
        ({}, ("--columns", "price", "--values"), "--values: is for formulas: leave out --columns"),
        ({}, ("--libreoffice", "nothing"), "--libreoffice nothing: is not a program"),
    ],
)
async def test_mistake_is_one_line_and_writes_nothing(
    run: Run, tmp_path: Path, cells: dict[str, AnyCell], arguments: tuple[str, ...], message: str
) -> None:
    write(tmp_path, {**FORMULAS, **cells})
    (tmp_path / "own.yaml").write_text(
        'upstream: {graphql_url: "http://127.0.0.1:9/g", token_url: "http://127.0.0.1:9/t"}\n'
        "store: 'memory:'\napplications: {own: {client_id: id, client_secret: planted, apikeys: [planted-key]}}\n"
    )
    result = await run("BOM.xlsx", *arguments)
    assert (result.code, result.out) == (2, ""), result
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert "planted" not in result.err
    assert not list(tmp_path.glob("*filled*"))


@pytest.mark.skipif(not SAMPLE.exists(), reason="the recorded sample workbook is not here")
async def test_official_sample_runs_on_the_sandbox_as_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sample.xlsm").write_bytes(SAMPLE.read_bytes())
    result = await run("sample.xlsm", "--json")
    summary = json.loads(result.out)
    assert summary["cells"] == 164, result
    assert summary["failed"] == summary["not_filled"] == summary["not_found"] == 0, summary
    filled = values(tmp_path / "sample.filled.xlsm")
    assert (filled["E7"], filled["F6"]) == ("https://octopart.com/1868783-dymo-64751523", "Lead Time")
    assert filled["B4"] == "The Nexar Supply Add-in is ready!"
    old, new = zipfile.ZipFile(SAMPLE), zipfile.ZipFile(tmp_path / "sample.filled.xlsm")
    assert [name for name in old.namelist() if old.read(name) != new.read(name)] == ["xl/worksheets/sheet1.xml"]
