"""Values of arguments."""

import itertools
from decimal import Decimal
from typing import Any

import pytest
from support import cases

from proxy.tools.sheet.formulas import arguments, calls, workbook
from proxy.tools.sheet.formulas.references import CellArea, CellPosition, WorkbookNames
from proxy.tools.sheet.package.cells import Cell, CellError, CellValue

HERE = CellPosition("BOM", 2, 5)
CELLS: dict[tuple[int, int], CellValue] = {
    (1, 1): "text",
    (1, 2): Decimal(1868783),
    (2, 1): Decimal("0.1"),
    (2, 2): True,
    (2, 3): CellError("#N/A"),
    (3, 1): "12.5",
}


def known() -> workbook.KnownCells:
    """Cells of one sheet; D1 is outdated."""
    names = WorkbookNames(["BOM"], {(None, "Factor"): "-1.5", (None, "Part"): "BOM!$A$1"})
    loaded = workbook.LoadedCells([CellArea("BOM", 1, 1, 9, 9)])
    rows = itertools.groupby(CELLS.items(), lambda item: item[0][0])
    loaded.load("BOM", ((row, [Cell(*place, value) for place, value in cells]) for row, cells in rows))
    return workbook.KnownCells(loaded, names, [CellPosition("BOM", 1, 4)])


def value(text: str, target: CellPosition | None = None) -> CellValue:
    """The single value of an argument of a formula in E2."""
    parsed = calls.parse(text)
    context = arguments.ArgumentContext(HERE, known(), {}, target or HERE, is_array=target is not None)
    return context.scalar(arguments.evaluate(parsed, parsed.whole, context))


def cell_value(data: Any) -> CellValue:
    """The value of a cell from data: a number, an error by its code, or what it is."""
    if isinstance(data, dict):
        return CellError(data["error"])
    is_number = isinstance(data, int | float) and not isinstance(data, bool)
    return Decimal(str(data)) if is_number else data


@cases.parametrize("text, expected")
def test_literals_references_and_simple_operations_have_a_value(text: str, expected: Any) -> None:
    result, expected = value(text), cell_value(expected)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "text",
    ["TRIM(A1)", "2^3", "1<2", "A1:B2 B2:C3", "(A1,B1)", "1E300*1E300", "[1]BOM!A1", "unknown", "A1:INDEX(B:B,2)"],
)
def test_everything_else_needs_calculation(text: str) -> None:
    with pytest.raises(arguments.NeedsCalculation):
        value(text)


def test_a_cell_without_a_new_value_is_waited_for() -> None:
    with pytest.raises(workbook.OutdatedCell):
        value('D1&""')


@cases.parametrize("number, expected")
def test_numbers_are_texts_as_excel_shows_them(number: str, expected: str) -> None:
    assert arguments.as_text(Decimal(number)) == expected
