"""Defined names and tables of workbooks."""

from pathlib import Path

import pytest
from support.workbooks import features, sheet_features
from support.workbooks.builder import WorkbookBuilder

from proxy import errors
from proxy.tools.sheet.package.cells import Area
from proxy.tools.sheet.package.names import DefinedName, NamedTable
from proxy.tools.sheet.package.workbook import open_package


def test_names_belong_to_the_workbook_or_to_a_sheet(tmp_path: Path) -> None:
    book = WorkbookBuilder()
    book.sheet("First").append(1)
    sheet_features.chart_sheet(book.sheets[0])
    book.sheet("Last").append(1)
    features.defined_names(book, {"Factor": "1.19", "Text": '"a&amp;b"'})
    features.defined_names(book, {"Own": "Last!$A$1"}, ' localSheetId="2"')
    features.defined_names(book, {"Lost": "Last!$A$1"}, ' localSheetId="9999999999"')
    with open_package(book.write(tmp_path / "book.xlsx")) as package:
        assert list(package.defined_names()) == [
            DefinedName("Factor", None, "1.19"),
            DefinedName("Text", None, '"a&b"'),
            DefinedName("Own", "Last", "Last!$A$1"),
            DefinedName("Lost", None, "Last!$A$1"),
        ]


def test_tables_have_their_data_and_columns(tmp_path: Path) -> None:
    book = WorkbookBuilder()
    sheet = book.sheet("List")
    sheet.append("MPN", "Quantity")
    sheet.append("LM317", 1)
    sheet_features.table(sheet, "A1:B2", ["MPN", "Quantity"])
    with open_package(book.write(tmp_path / "book.xlsx")) as package:
        assert list(package.named_tables()) == [
            NamedTable("Parts", "List", Area(1, 1, 1, 2), Area(2, 1, 2, 2), ("MPN", "Quantity"))
        ]


def test_a_table_without_an_area_is_refused(tmp_path: Path) -> None:
    book = WorkbookBuilder()
    sheet = book.sheet("List")
    sheet.append("MPN")
    sheet_features.table(sheet, "somewhere", ["MPN"])
    with open_package(book.write(tmp_path / "book.xlsx")) as package, pytest.raises(errors.SheetError, match="area"):
        list(package.named_tables())
