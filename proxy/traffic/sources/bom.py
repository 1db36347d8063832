"""Parts lists (BOM) as parts/match requests: up to 20 queries each, with the row's number as reference.

A part number is sent with its manufacturer where there is a column for that, a seller's number with the seller. The
header is searched for in the first rows, because exports begin with titles.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple
from urllib.parse import quote

from proxy import model
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
