"""Parts lists (BOM) in CSV as parts/match requests: up to 20 queries each, with the row's number as reference.

A part number is sent with its manufacturer where there is a column for that, a seller's number with the seller. The
header is searched for in the first rows, because exports begin with titles.
"""

import csv
import io
import json
from collections.abc import Iterator
from io import BufferedReader
from itertools import chain, islice
from typing import NamedTuple
from urllib.parse import quote

from proxy import model
from proxy.redaction import Redaction
from proxy.traffic import bom_columns
from proxy.traffic.logs import Entry, Item, Unreadable

SIZE_MAX = 1 << 26  # bytes; a list is read whole, because its encoding is known only then
TARGET_MAX = 8000  # characters; v3 rejected longer ones (contract v3-rest.md §6)
NUMBER_MAX = 200  # characters per cell
NAMES_SHOWN = 8  # of known headings of a kind, in a message
HEADER_MAX = 60  # characters of a column's name in a message
BESIDE = {"mpn": "brand", "sku": "seller"}
PATH = "/v3/parts/match?queries="

NO_NUMBER = "has no part number"
LONG = f"has a part number of more than {NUMBER_MAX} characters"
BROKEN = "has a line break in its part number: a quote may not be closed"
AGAIN = "requests the same part as an earlier row"
TOO_LARGE = f"is larger than a list of parts can be ({SIZE_MAX >> 20} MiB)"
NO_CSV = "is not valid CSV from here on: a quote may be unclosed"

TableRow = tuple[int, list[str]]


class _Query(NamedTuple):
    row: int
    text: str


def read(stream: BufferedReader) -> Iterator[Item]:
    """Yield parts/match requests for the rows of a table; blank rows are skipped."""
    data = stream.read(SIZE_MAX + 1)
    if len(data) > SIZE_MAX:
        yield Unreadable(1, TOO_LARGE)
        return
    broken: list[Unreadable] = []
    filled = _rows(bom_columns.decoded(data), broken)
    first = list(islice(filled, bom_columns.EXAMINED_ROWS))
    cells = [row for _, row in first]
    headers = bom_columns.possible_headers(cells)
    if not headers:
        yield _no_column(first[: bom_columns.HEADER_ROWS])
        return
    header, _ = bom_columns.best_header(cells, headers)
    waiting: list[_Query] = []
    for entry in _queries(chain(first[header + 1 :], filled), headers[header]):
        if isinstance(entry, Unreadable):
            yield entry
            continue
        if len(waiting) == model.MATCH_QUERIES_MAX or len(_target([*waiting, entry])) > TARGET_MAX:
            yield _request(waiting)
            waiting = []
        waiting.append(entry)
    if waiting:
        yield _request(waiting)
    yield from broken


def _rows(text: str, broken: list[Unreadable]) -> Iterator[TableRow]:
    """Yield the rows that are not blank, with the numbers of their first lines, up to a syntax error."""
    begin = 1
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=bom_columns.delimiter(text))
    try:
        for row in reader:
            if any(map(str.strip, row)):
                yield begin, row
            begin = reader.line_num + 1
    except csv.Error:
        broken.append(Unreadable(begin, NO_CSV))


def _no_column(first: list[TableRow]) -> Unreadable:
    """List the columns in an error message, because the missing one may be among them under another name."""
    if not first:
        return Unreadable(1, "has no rows")
    number, row = max(first, key=lambda each: sum(bool(cell.strip()) for cell in each[1]))
    # A file that is no parts list may hold requests with API keys.
    there = ", ".join(repr(Redaction().text(cell.strip())[:HEADER_MAX]) for cell in row if cell.strip())
    known = ", ".join(name for key in bom_columns.NUMBERS for name in bom_columns.HEADINGS[key][:NAMES_SHOWN])
    missing = f"no column of part numbers, which are named like {known}, or in another language"
    return Unreadable(number, f"{missing}; the columns are {there}")


def _queries(rows: Iterator[TableRow], places: dict[str, int]) -> Iterator[_Query | Unreadable]:
    earlier = set[tuple[str, ...]]()
    for number, row in rows:
        cells = {key: row[at].strip() for key, at in places.items() if at < len(row)}
        key = next((key for key in bom_columns.NUMBERS if _is_number(cells.get(key, ""))), None)
        if key is None:
            yield Unreadable(number, NO_NUMBER)
            continue
        if "\n" in cells[key] or "\r" in cells[key] or len(cells[key]) > NUMBER_MAX:
            yield Unreadable(number, LONG if len(cells[key]) > NUMBER_MAX else BROKEN)
            continue
        query = {key: cells[key]}
        if (beside := cells.get(BESIDE[key], "")) and not bom_columns.is_placeholder(beside):
            query[BESIDE[key]] = beside
        if (numbers := tuple(query.values())) in earlier:
            yield Unreadable(number, AGAIN)
            continue
        earlier.add(numbers)
        yield _Query(number, json.dumps({**query, "reference": str(number)}, separators=(",", ":"), ensure_ascii=False))


def _is_number(cell: str) -> bool:
    return any(map(str.isalnum, cell)) and not bom_columns.is_placeholder(cell)


def _target(queries: list[_Query]) -> str:
    return PATH + quote(f"[{','.join(each.text for each in queries)}]", safe="", errors="replace")


def _request(queries: list[_Query]) -> Entry:
    rows = sorted({queries[0].row, queries[-1].row})
    return Entry("-".join(map(str, rows)), _target(queries))
