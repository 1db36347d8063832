"""Formulas that LibreOffice calculates: one workbook, filled once, for all tests."""

import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from support import cases
from support.filled_formulas import Filled, X, book, fill
from support.workbooks import features
from support.workbooks.builder import AnyCell, FormulaCell

from proxy.tools.sheet.libreoffice import LibreOffice
from proxy.tools.sheet.package.cells import CellError, CellValue, Formula

CELLS: dict[str, AnyCell] = {
    "A2": "LM317",
    "A3": "  NE555 ",
    "A4": "nothing",
    "B2": FormulaCell(f"IFERROR({X}DISTRIBUTOR_PRICE(A2)*2,-1)", 9),
    "B4": FormulaCell(f"IFERROR({X}DISTRIBUTOR_PRICE(A4)*2,-1)", 9),
    "C2": FormulaCell("B2+B4", 9),
    "D2": FormulaCell('IF(C2<1,"cheap","dear")', "old"),
    "E2": FormulaCell("ISERROR(B4)", True),
    "F2": FormulaCell(f"{X}DISTRIBUTOR_SKU(TRIM(A3))", "old"),
    "F3": FormulaCell(f"{X}DETAIL_URL(SUBSTITUTE(F4,CHAR(33),REPT(1,0)))", "old"),
    "F4": FormulaCell(f'LEFT({X}DISTRIBUTOR_SKU(A2),5)&"!"', "old"),
    "G2": FormulaCell("A2&LOWER(A2)", "unconcerned"),
    "H2": FormulaCell("Prices*Factor", 9, array="H2:H3"),
    "H3": 9,
    "I2": FormulaCell(f"{X}SHORT_DESCRIPTION(A2)", ""),
    "J2": FormulaCell("_xlfn.XLOOKUP(A2,A2:A3,B2:B3)", 9),
    "J3": FormulaCell("IFERROR(J2,0)", 9),
    "K2": FormulaCell("[1]Sheet1!A1+B2", 9),
    "L2": FormulaCell("I2&1", "old"),
    "J4": FormulaCell('IFERROR(IFNA(B2,0),"no prefix")', 9),
    "N2": FormulaCell('_xlfn.CONCAT(B2,"/",_xlfn.IFS(B2>0,"some",TRUE,"none"))', "old"),
    "M2": FormulaCell(f'{X}DISTRIBUTOR_STOCK(A2,,{{"Digi-Key","x"}})+SUM(1,2)', 0),
}


@pytest.fixture(scope="session")
def filled(needs_program: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """The workbook, filled."""
    office = LibreOffice(Path(needs_program("soffice")))
    workbook = book(dict(CELLS), {"Sum 'of' all": {"A1": FormulaCell("SUM(BOM!B:C)", 9)}})
    features.defined_names(workbook, {"Prices": "BOM!$B$2:$B$3", "Factor": "1.5"})
    return fill(workbook, tmp_path_factory.mktemp("calculated"), office=office)


@cases.parametrize("cell, expected")
def test_what_depends_on_functions_is_calculated(filled: Filled, cell: str, expected: CellValue) -> None:
    assert filled[cell] == expected


def test_formulas_stay_as_they_are(filled: Filled) -> None:
    for address, cell in CELLS.items():
        if isinstance(cell, FormulaCell):
            formula = filled.cells[address][1]
            assert isinstance(formula, Formula)
            assert formula.text == cell.text


def test_functions_that_libreoffice_lacks_keep_their_values_and_are_listed(filled: Filled) -> None:
    assert [filled[cell] for cell in ("J2", "J3", "J4", "K2")] == [Decimal(9)] * 4
    assert {problem.partition(":")[0] for problem in filled.problems} == {"BOM!J2", "BOM!J3", "BOM!J4", "BOM!K2"}
    assert filled["B4"] != CellError("#NAME?")


def test_the_copy_for_libreoffice_has_no_secret(tmp_path: Path) -> None:
    program = tmp_path / "soffice"
    program.write_text(f'#!/bin/bash\ncp "${{11}}" {tmp_path}/copy.xlsx\n')
    program.chmod(0o755)
    cells: dict[str, AnyCell] = {
        "A1": FormulaCell(f'IFERROR({X}LOGIN(C1,C2,"planted-flag"),"")', ""),
        "C1": "planted-id",
        "C2": FormulaCell("D2", "planted-secret"),
        "D2": "planted-secret",
        "B2": FormulaCell(f'{X}DISTRIBUTOR_PRICE("LM317")+1', 9),
    }
    result = fill(book(cells), tmp_path, office=LibreOffice(program))
    assert any("wrote no file" in problem for problem in result.problems)
    with zipfile.ZipFile(tmp_path / "copy.xlsx") as archive:
        text = "".join(archive.read(name).decode() for name in archive.namelist())
    assert "0.5+1" in text
    assert "planted" not in text
