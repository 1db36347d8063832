"""References in formulas."""

import pytest

from proxy.tools.sheet.formulas.references import CellArea, CellPosition, WorkbookNames
from proxy.tools.sheet.package.cells import COLUMNS_MAX, ROWS_MAX, Area
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
    [NamedTable("Parts", "BOM", Area(2, 1, 9, 3), ("MPN", "Qty [pcs]", "#"))],
)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A1", CellArea("BOM", 1, 1, 1, 1)),
        ("$B$7:c9", CellArea("BOM", 7, 2, 9, 3)),
        ("C9:B7", CellArea("BOM", 7, 2, 9, 3)),
        ("$A:$B", CellArea("BOM", 1, 1, ROWS_MAX, 2)),
        ("2:$3", CellArea("BOM", 2, 1, 3, COLUMNS_MAX)),
        ("bom!A1", CellArea("BOM", 1, 1, 1, 1)),
        ("'It''s (2), here'!A1:B2", CellArea("It's (2), here", 1, 1, 2, 2)),
        ("part", CellArea("BOM", 7, 1, 7, 1)),
        ("'A-1'!Part", CellArea("A-1", 2, 2, 2, 2)),
        ("SAME", CellArea("BOM", 7, 1, 7, 1)),
        ("Sellers", CellArea("It's (2), here", 1, 1, 3, 1)),
        ("Parts[MPN]", CellArea("BOM", 2, 1, 9, 1)),
        ("Parts[[#This Row],[Qty '[pcs']]]", CellArea("BOM", 7, 2, 7, 2)),
        ("Parts[[#Data],[MPN]]", CellArea("BOM", 2, 1, 9, 1)),
        ("Circle", None),
        ("Factor", None),
        ("Shifted", None),
        ("unknown", None),
        ("VAT", None),
        ("Qty", CellArea("BOM", 3, 2, 3, 2)),
        ("Missing!A1", None),
        ("[1]BOM!A1", None),
        ("BOM:A-1!A1", None),
        ("XFE1", None),
        ("A1048577", None),
        ("Parts[Unknown]", None),
        ("Other[MPN]", None),
        ("#REF!", None),
    ],
)
def test_references_are_areas_of_the_workbook(text: str, expected: CellArea | None) -> None:
    assert NAMES.resolve(text, HERE) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A1", "A1"),
        ("Part", "'BOM'!$A$7:$A$7"),
        ("Parts[[#This Row],[MPN]]", "'BOM'!$A$7:$A$7"),
        ("Factor", "1.19"),
        ("unknown", None),
    ],
)
def test_a_copy_needs_neither_names_nor_tables(text: str, expected: str | None) -> None:
    assert NAMES.rewritten(text, HERE, qualified=False) == expected


def test_a_reference_can_name_its_sheet() -> None:
    assert NAMES.rewritten("A1", CellPosition("It's (2), here", 1, 1), qualified=True) == "'It''s (2), here'!A1"
    assert NAMES.rewritten("BOM!A1", HERE, qualified=True) == "BOM!A1"


@pytest.mark.parametrize(
    "text, opaque",
    [
        ("Shifted", True),
        ("BOM:A-1!A1", True),
        ("Other[MPN]", True),
        ("[1]BOM!A1", False),
        ("x", False),
        ("Factor", False),
    ],
)
def test_what_may_mean_any_cell_is_known(text: str, opaque: bool) -> None:
    assert NAMES.is_opaque(text, HERE) is opaque


def test_one_cell_of_a_row_or_column_is_meant_where_one_is_needed() -> None:
    assert CellArea("BOM", 1, 1, ROWS_MAX, 1).intersected(HERE) == CellPosition("BOM", 7, 1)
    assert CellArea("BOM", 2, 1, 2, 9).intersected(HERE) == CellPosition("BOM", 2, 3)
    assert CellArea("BOM", 1, 1, 3, 1).intersected(HERE) is None
    assert CellArea("BOM", 1, 1, 9, 9).intersected(HERE) is None
