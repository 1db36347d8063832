"""References in formulas."""

from typing import Any

from support import cases

from proxy.tools.sheet.formulas.references import CellArea, CellPosition, WorkbookNames
from proxy.tools.sheet.package.cells import ROWS_MAX, Area
from proxy.tools.sheet.package.names import NamedTable

HERE = CellPosition("BOM", 7, 3)
NAMES = WorkbookNames(
    ["BOM", "It's (2), here", "A-1"],
    {
        (None, "Part"): "BOM!$A$7",
        (None, "Sellers"): "'It''s (2), here'!$A$1:$A$3",
        ("A-1", "Part"): "'A-1'!$B$2",
        (None, "Same"): "Part",
        (None, "Circle"): "Circle",
        (None, "QTY"): "BOM!$B$3",
        (None, "Factor"): "1.19",
        (None, "Title"): '"x"',
        (None, "Shifted"): "OFFSET(BOM!$A$1,1,1)",
    },
    [NamedTable("Parts", "BOM", Area(1, 1, 1, 3), Area(2, 1, 9, 3), ("MPN", "Qty [pcs]", "#"))],
)


@cases.parametrize("text, expected")
def test_references_are_areas_of_the_workbook(text: str, expected: Any) -> None:
    assert NAMES.resolve(text, HERE) == (expected and CellArea(*expected))


@cases.parametrize("text, expected")
def test_a_copy_needs_neither_names_nor_tables(text: str, expected: str | None) -> None:
    assert NAMES.rewritten(text, HERE, qualified=False) == expected


def test_a_reference_can_name_its_sheet() -> None:
    assert NAMES.rewritten("A1", CellPosition("It's (2), here", 1, 1), qualified=True) == "'It''s (2), here'!A1"
    assert NAMES.rewritten("BOM!A1", HERE, qualified=True) == "BOM!A1"


@cases.parametrize("text, opaque")
def test_what_may_mean_any_cell_is_known(text: str, opaque: bool) -> None:
    assert NAMES.is_opaque(text, HERE) is opaque


def test_one_cell_of_a_row_or_column_is_meant_where_one_is_needed() -> None:
    assert CellArea("BOM", 1, 1, ROWS_MAX, 1).intersected(HERE) == CellPosition("BOM", 7, 1)
    assert CellArea("BOM", 2, 1, 2, 9).intersected(HERE) == CellPosition("BOM", 2, 3)
    assert CellArea("BOM", 1, 1, 3, 1).intersected(HERE) is None
    assert CellArea("BOM", 1, 1, 9, 9).intersected(HERE) is None
