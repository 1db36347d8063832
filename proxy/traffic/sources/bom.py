"""Parts lists (BOM) as parts/match requests: up to 20 queries each, with the row's number as reference.

A part number is sent with its manufacturer where there is a column for that, a seller's number with the seller. The
header is searched for in the first rows, because exports begin with titles.

They are read from CSV, with any usual delimiter and encoding, and from workbooks (.xlsx, .xlsm), of which the first
sheet with a column of part numbers is read. Blank rows are not stored: a stray cell in the last row of a sheet costs no
memory.
"""

import csv
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, time, timedelta
from io import BufferedReader
from itertools import chain, islice
from typing import Any, NamedTuple
from urllib.parse import quote

from proxy import model
from proxy.kit import extras
from proxy.redaction import Redaction
from proxy.traffic import bom_columns
from proxy.traffic.bom_columns import NUMBERS
from proxy.traffic.sources.entries import Item, RequestEntry, Skipped, Unreadable

TARGET_MAX = 8000  # characters; v3 rejected longer ones (contract v3-rest.md §6)
NUMBER_MAX = 200  # characters per cell

KEYS = {"mpn": "mpn", "sku": "sku", "manufacturer": "brand", "seller": "seller"}  # as people request v3's keys
NAMES_SHOWN = 8  # of known headings of a kind, in a message
HEADER_MAX = 60  # characters of a column's name in a message
BESIDE = {"mpn": "brand", "sku": "seller"}
PATH = "/v3/parts/match?queries="

NO_NUMBER = "has no part number"
LONG = f"has a part number of more than {NUMBER_MAX} characters"
BROKEN = "has a line break in its part number: a quote may not be closed"
AGAIN = "requests the same part as an earlier row"

TableRow = tuple[int, Sequence[str]]


class _Query(NamedTuple):
    row: int
    text: str


def read(rows: Iterable[TableRow], named: bom_columns.Names = bom_columns.NONE) -> Iterator[Item]:
    """Yield requests for the rows of a table; blank rows are skipped. `named` are columns by v3's keys."""
    filled = ((number, row) for number, row in rows if any(map(str.strip, row)))
    first = list(islice(filled, bom_columns.EXAMINED_ROWS))
    cells = [row for _, row in first]
    headers = bom_columns.possible_headers(cells, named)
    if not headers:
        yield _no_column(first[: bom_columns.HEADER_ROWS], named)
        return
    header, _ = bom_columns.best_header(cells, headers)
    waiting: list[_Query] = []
    for entry in _queries(chain(first[header + 1 :], filled), headers[header]):
        if not isinstance(entry, _Query):
            yield entry
            continue
        if len(waiting) == model.MATCH_QUERIES_MAX or len(_target([*waiting, entry])) > TARGET_MAX:
            yield _request(waiting)
            waiting = []
        waiting.append(entry)
    if waiting:
        yield _request(waiting)


def _no_column(first: list[TableRow], named: bom_columns.Names) -> Unreadable:
    """List the columns in an error message, because the missing one may be among them under another name."""
    if not first:
        return Unreadable(1, "has no rows")
    number, row = max(first, key=lambda each: sum(bool(cell.strip()) for cell in each[1]))
    there = ", ".join(repr(_visible(cell.strip())) for cell in row if cell.strip())
    lacking = [name for name in named.values() if bom_columns.plain(name) not in map(bom_columns.plain, row)]
    if lacking:
        missing = f"no column {', '.join(map(repr, lacking))}"
    else:
        known = ", ".join(name for key in NUMBERS for name in bom_columns.HEADINGS[key][:NAMES_SHOWN])
        missing = f"no column of part numbers, which are named like {known}, or in another language"
        missing += "; --column mpn=NAME names another"
    return Unreadable(number, f"{missing}; the columns are {there}")


def _visible(cell: str) -> str:
    """Truncate and redact a cell: a file that is no parts list may hold requests with API keys."""
    return Redaction().text(cell)[:HEADER_MAX]


def _queries(rows: Iterable[TableRow], places: dict[str, int]) -> Iterator[_Query | Unreadable | Skipped]:
    earlier = set[tuple[str, ...]]()
    for number, row in rows:
        cells = {key: row[at].strip() for key, at in places.items() if at < len(row)}
        key = next((key for key in NUMBERS if _is_number(cells.get(key, ""))), None)
        wrong = NO_NUMBER if key is None else _wrong(cells[key])
        if key is None or wrong:
            yield Unreadable(number, wrong or NO_NUMBER)
            continue
        query = {key: cells[key]}
        if (beside := cells.get(BESIDE[key], "")) and not bom_columns.is_placeholder(beside):
            query[BESIDE[key]] = beside
        if (numbers := tuple(query.values())) in earlier:
            yield Skipped(number, AGAIN)
            continue
        earlier.add(numbers)
        yield _Query(number, json.dumps({**query, "reference": str(number)}, separators=(",", ":"), ensure_ascii=False))


def _is_number(cell: str) -> bool:
    return any(map(str.isalnum, cell)) and not bom_columns.is_placeholder(cell)


def _wrong(cell: str) -> str | None:
    if "\n" in cell or "\r" in cell:
        return BROKEN
    return LONG if len(cell) > NUMBER_MAX else None


def _target(queries: list[_Query]) -> str:
    return PATH + quote(f"[{','.join(each.text for each in queries)}]", safe="", errors="replace")


def _request(queries: list[_Query]) -> RequestEntry:
    rows = sorted({queries[0].row, queries[-1].row})
    return RequestEntry("-".join(map(str, rows)), _target(queries))


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
    yield from read(_csv_rows(text, broken, named), named)
    yield from broken


def _csv_rows(text: str, broken: list[Unreadable], named: bom_columns.Names) -> Iterator[TableRow]:
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
        yield from read(rows, named)
    if wrong:
        yield Unreadable(rows[-1][0] + 1 if rows else 1, wrong)


def _unpacked(data: bytes) -> int:
    """Return the unpacked size that the archive declares; 0 for a file that is no archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return 0


def _sheet_with_parts(data: bytes, has_parts: Callable[[list[TableRow]], bool]) -> tuple[list[TableRow], str | None]:
    """Return the rows of the first sheet with a column of part numbers, else of the first sheet, and an error message
    if reading stopped early."""
    try:
        import openpyxl
    except ImportError:
        return [], OPENPYXL_MISSING
    sheets: list[list[TableRow]] = []
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


def _read_into(rows: list[TableRow], sheet: Any) -> None:
    """Append the non-blank rows with their numbers."""
    sheet.reset_dimensions()  # the dimensions that a sheet declares may be wrong
    for number, row in enumerate(sheet.iter_rows(max_row=ROWS_MAX, max_col=COLUMNS_MAX, values_only=True), 1):
        if any(row):  # checked before the conversion: a stray cell at the end of a sheet makes a million rows
            rows.append((number, [_text(cell) for cell in row]))


def _has_parts(rows: list[TableRow], named: bom_columns.Names) -> bool:
    return any(bom_columns.columns(row, named) for _, row in rows[: bom_columns.HEADER_ROWS])


def _text(cell: Any) -> str:
    """Format a cell as displayed. A cell that Excel has converted to a date is no usable part number, and is blank."""
    if cell is None or isinstance(cell, date | time | timedelta):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
