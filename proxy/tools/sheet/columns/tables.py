"""Opens the file to fill by what it is: a workbook, or else CSV."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proxy import errors
from proxy.tools.sheet.columns import csv_table, workbook_table
from proxy.tools.sheet.columns.lines import TableReading
from proxy.tools.sheet.package import workbook

WORKBOOKS = (".xlsx", ".xlsm")
OTHERS = (".xls", ".xlsb", ".ods", ".numbers")


@contextmanager
def opened(
    path: Path, sheet: str | None, reading: TableReading
) -> Iterator[csv_table.CsvTable | workbook_table.WorkbookTable]:
    """Open a file. Raises SheetError."""
    suffix = path.suffix.lower()
    if suffix in WORKBOOKS:
        with workbook.open_package(path) as package:
            yield workbook_table.choose(package, sheet, reading)
    elif suffix in OTHERS:
        raise errors.SheetError(f"{path}: cannot be filled; save it as .xlsx or .csv")
    elif sheet is not None:
        raise errors.SheetError(f"{path}: has no sheets; --sheet is for workbooks")
    else:
        yield csv_table.CsvTable(path, reading.named)
