"""Parts lists as CSV, with any usual delimiter and encoding, and as workbooks (.xlsx, .xlsm).

Of a workbook, the first sheet with a column of part numbers is read. Blank rows are not stored: a stray cell in the
last row of a sheet costs no memory.
"""

import csv
import io
import warnings
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from io import BufferedReader
from typing import Any

from proxy.kit import extras
from proxy.traffic import bom_columns
from proxy.traffic.sources import bom
from proxy.traffic.sources.entries import Item, Unreadable

SIZE_MAX = 1 << 26  # bytes; a parts list is read whole, because its encoding is known only then

CSV_TOO_LARGE = f"is larger than a list of parts can be ({SIZE_MAX >> 20} MiB)"
CSV_BROKEN = "is not valid CSV from here on: a quote may be unclosed"


def read_csv(stream: BufferedReader, named: bom_columns.Names = bom_columns.NONE) -> Iterator[Item]:
    """Yield parts/match requests for the rows; `named` are columns by v3's keys."""
    data = stream.read(SIZE_MAX + 1)
    if len(data) > SIZE_MAX:
        yield Unreadable(1, CSV_TOO_LARGE)
        return
    text = bom_columns.decoded(data)
    broken: list[Unreadable] = []
    yield from bom.read(_csv_rows(text, broken, named), named)
    yield from broken


def _csv_rows(text: str, broken: list[Unreadable], named: bom_columns.Names) -> Iterator[bom.TableRow]:
    """Yield the rows with the numbers of their first lines, up to a syntax error."""
    begin = 1
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=bom_columns.delimiter(text, named))
    try:
        for row in reader:
            yield begin, row
            begin = reader.line_num + 1
    except csv.Error:
        broken.append(Unreadable(begin, CSV_BROKEN))


SIZE_MAX = 1 << 26  # bytes of the file
UNPACKED_MAX = 1 << 28  # bytes of the unpacked content, as protection against zip bombs
ROWS_MAX = 1 << 20  # Excel's limit
COLUMNS_MAX = 1 << 8

WORKBOOK_TOO_LARGE = f"is larger than a list of parts can be ({SIZE_MAX >> 20} MiB, {UNPACKED_MAX >> 20} MiB unpacked)"
OPENPYXL_MISSING = (
    f"is a workbook, and openpyxl, which reads them, is missing; save it as CSV, or {extras.install_line('xlsx')}"
)
WORKBOOK_BROKEN = "is not a readable workbook: damaged, locked, or of another program; save it as .xlsx or CSV"


def read_workbook(stream: io.BufferedReader, named: bom_columns.Names = bom_columns.NONE) -> Iterator[Item]:
    """Yield parts/match requests for the rows of a sheet; `named` are columns by v3's keys."""
    data = stream.read(SIZE_MAX + 1)
    if len(data) > SIZE_MAX or _unpacked(data) > UNPACKED_MAX:
        yield Unreadable(1, WORKBOOK_TOO_LARGE)
        return
    rows, wrong = _sheet_with_parts(data, lambda rows: _has_parts(rows, named))
    if rows or not wrong:
        yield from bom.read(rows, named)
    if wrong:
        yield Unreadable(rows[-1][0] + 1 if rows else 1, wrong)


def _unpacked(data: bytes) -> int:
    """Return the unpacked size that the archive declares; 0 for a file that is no archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return 0


def _sheet_with_parts(
    data: bytes, has_parts: Callable[[list[bom.TableRow]], bool]
) -> tuple[list[bom.TableRow], str | None]:
    """Return the rows of the first sheet with a column of part numbers, else of the first sheet, and an error message
    if reading stopped early."""
    try:
        import openpyxl
    except ImportError:
        return [], OPENPYXL_MISSING
    sheets: list[list[bom.TableRow]] = []
    try:
        with warnings.catch_warnings(action="ignore"):  # warnings about unsupported styles and extensions
            book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            for sheet in book.worksheets:
                sheets.append([])
                _read_into(sheets[-1], sheet)
                if has_parts(sheets[-1]):
                    return sheets[-1], None
    except Exception:  # openpyxl and its XML and ZIP libraries raise many kinds of errors for damaged files
        return next(filter(has_parts, sheets), []), WORKBOOK_BROKEN
    return sheets[0] if sheets else [], None


def _read_into(rows: list[bom.TableRow], sheet: Any) -> None:
    """Append the non-blank rows with their numbers."""
    sheet.reset_dimensions()  # the dimensions that a sheet declares may be wrong
    for number, row in enumerate(sheet.iter_rows(max_row=ROWS_MAX, max_col=COLUMNS_MAX, values_only=True), 1):
        if any(row):  # checked before the conversion: a stray cell at the end of a sheet makes a million rows
            rows.append((number, [_text(cell) for cell in row]))


def _has_parts(rows: list[bom.TableRow], named: bom_columns.Names) -> bool:
    return any(bom_columns.columns(row, named) for _, row in rows[: bom_columns.HEADER_ROWS])


def _text(cell: Any) -> str:
    """Format a cell as displayed. A cell that Excel has converted to a date is no usable part number, and is blank."""
    if cell is None or isinstance(cell, date | time | timedelta):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
