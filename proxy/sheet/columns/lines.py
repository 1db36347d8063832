"""Lines of a table that have a part number: the header row, the columns that are used, and the values of each line."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import NamedTuple

from proxy import bom_columns, errors
from proxy.sheet.package.cells import COLUMNS_MAX, column_name, column_number

LINES_MAX = 100_000  # a BOM is far shorter; without a limit a hostile file would fill the memory
NUMBER_MAX = 200  # characters of a part number
QUANTITY_DIGITS = 12  # a larger quantity is a mistake, such as a part number in the wrong column
NAME_MAX = 60  # characters of a heading in a message
OPTIONS = {
    "mpn": "--mpn-column",
    "brand": "--manufacturer-column",
    "sku": "--sku-column",
    "quantity": "--quantity-column",
}

# Stands for a cell whose text is unknown: a part number that Excel has converted to a date, an error, or a formula that
# was never calculated.
UNREADABLE = "…"
_UNREADABLE_CELLS = {
    "mpn": "part number: the line is left out",
    "sku": "SKU: the line is left out",
    "brand": "manufacturer: any is taken",
    "quantity": "quantity: 1 is taken",
}

# A line that begins with one of these adds up others, and what stands below the part numbers is no part.
TOTALS = frozenset(
    map(
        bom_columns.plain,
        (
            *("total", "totals", "grand total", "subtotal", "sub total", "sum", "Summe", "Gesamt", "Gesamtsumme"),
            *("Zwischensumme", "somme", "total général", "sous-total", "suma", "totale", "somma", "totaal", "soma"),
            *("razem", "łącznie", "celkem", "итого", "合计", "总计", "小计", "合計", "總計", "小計", "합계"),
        ),
    )
)
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:[.,'’\s]\d{3})+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_LETTERS = re.compile(r"[A-Za-z]{1,3}")

TableRow = tuple[int, Sequence[str]]


class TableHeader(NamedTuple):
    """Header row of a table. `places` are column indexes by v3's keys and `quantity`."""

    row: int
    cells: Sequence[str]
    places: Mapping[str, int]


class Line(NamedTuple):
    """Line with a part number. `quantity` is None where there is none; `width` is the number of its last column."""

    row: int
    mpn: str
    manufacturer: str
    sku: str
    quantity: int | None
    width: int


def read(
    rows: Iterable[TableRow], named: Mapping[str, str], place: str, problems: list[str]
) -> tuple[TableHeader, Iterator[tuple[Line, Sequence[str]]]]:
    """Find the header, and return it with the lines below it and their cells. `named` are columns by key: headings, or
    letters. Cells that cannot be read are added to `problems`.

    Raises SheetError, which begins with `place`, for a table without a column of part numbers.
    """
    filled = ((number, row) for number, row in rows if any(map(str.strip, row)))
    first = list(islice(filled, bom_columns.EXAMINED_ROWS))
    index, header = _header(first, named, place)
    return header, _lines(chain(first[index + 1 :], filled), header, place, problems)


def _header(first: Sequence[TableRow], named: Mapping[str, str], place: str) -> tuple[int, TableHeader]:
    cells = [row for _, row in first]
    searched = cells[: bom_columns.HEADER_ROWS]
    possible = bom_columns.possible_headers(searched, named) or _headers_by_letter(searched, named)
    if not possible:
        raise errors.SheetError(_no_column(first[: bom_columns.HEADER_ROWS], named, place))
    index, _ = bom_columns.best_header(cells, possible)
    return index, TableHeader(first[index][0], cells[index], possible[index])


def _headers_by_letter(rows: Sequence[Sequence[str]], named: Mapping[str, str]) -> dict[int, dict[str, int]]:
    by_letter = {key: column_number(text) - 1 for key, text in named.items() if _LETTERS.fullmatch(text.strip())}
    rest = {key: text for key, text in named.items() if key not in by_letter}
    possible = {}
    for index, cells in enumerate(rows if by_letter else ()):
        places = bom_columns.known_columns(cells, rest) | by_letter
        in_row = all(at < len(cells) and cells[at].strip() for at in by_letter.values())
        if in_row and rest.keys() <= places.keys() and any(key in places for key in bom_columns.NUMBERS):
            possible[index] = places
    return possible


def _no_column(first: Sequence[TableRow], named: Mapping[str, str], place: str) -> str:
    """List the headings that are there, because the missing one may be among them under another name."""
    if not first:
        return f"{place}: is empty"
    number, row = max(first, key=lambda each: sum(bool(cell.strip()) for cell in each[1]))
    headings = list(map(bom_columns.plain, row))
    missing = [f"{OPTIONS[key]} {text!r}" for key, text in named.items() if bom_columns.plain(text) not in headings]
    there = ", ".join(
        f"{column_name(index + 1)} {cell.strip()[:NAME_MAX]!r}"
        for index, cell in enumerate(row[:COLUMNS_MAX])
        if cell.strip()
    )
    if missing:
        return f"{place}: no column {', '.join(missing)}; the columns of row {number} are {there}"
    names = ", ".join(bom_columns.HEADINGS["mpn"][:4])
    return (
        f"{place}: no column of part numbers, which are named like {names}, in many languages; "
        f"--mpn-column names another, by heading or letter; the columns of row {number} are {there}"
    )


def _lines(
    rows: Iterable[TableRow], header: TableHeader, place: str, problems: list[str]
) -> Iterator[tuple[Line, Sequence[str]]]:
    count = 0
    for number, row in rows:
        line = _line(number, row, header)
        unreadable = _unreadable(number, row, header, line)
        problems += unreadable
        count += line is not None or bool(unreadable)
        if count > LINES_MAX:
            raise errors.SheetError(f"{place}: has more than {LINES_MAX} lines with a part number; split the file")
        if line is not None:
            yield line, row


def _unreadable(number: int, row: Sequence[str], header: TableHeader, line: Line | None) -> list[str]:
    """Describe the cells of a line that cannot be read, or the number that would have made it one."""
    keys = bom_columns.NUMBERS if line is None else ("brand", "quantity")
    places = {key: header.places[key] for key in keys if key in header.places}
    return [
        f"{column_name(at + 1)}{number}: a date, an error or a formula without a value is no {_UNREADABLE_CELLS[key]}"
        for key, at in places.items()
        if at < len(row) and row[at] == UNREADABLE
    ]


def _line(number: int, row: Sequence[str], header: TableHeader) -> Line | None:
    cells = {key: row[at].strip() for key, at in header.places.items() if at < len(row)}
    mpn, sku = (_part_number(cells.get(key, "")) for key in bom_columns.NUMBERS)
    first = next(cell for cell in row if cell.strip())
    if not (mpn or sku) or {bom_columns.plain(first), bom_columns.plain(mpn)} & TOTALS:
        return None
    # A second block of the sheet begins with the same headings.
    if "mpn" in header.places and bom_columns.plain(mpn) == bom_columns.plain(header.cells[header.places["mpn"]]):
        return None
    width = max(index + 1 for index, cell in enumerate(row) if cell.strip())
    return Line(number, mpn, cells.get("brand", "") if mpn else "", "" if mpn else sku, _quantity(cells), width)


def _part_number(text: str) -> str:
    """Return a part number; empty for text that cannot be one, such as a dash or a paragraph."""
    usable = any(map(str.isalnum, text)) and len(text) <= NUMBER_MAX and "\n" not in text and "\r" not in text
    return text if usable else ""


def _quantity(cells: Mapping[str, str]) -> int | None:
    """Return the quantity of a line: `1,000`, `2.5 m` and `10 pcs` are 1000, 3 and 10. None for no number, and 0."""
    text = cells.get("quantity", "")
    if grouped := _GROUPED.match(text):
        digits = "".join(filter(str.isdecimal, grouped[0]))
    else:
        match = _NUMBER.match(text)
        digits = match[0].replace(",", ".") if match else ""
    whole = digits.partition(".")[0]
    return math.ceil(Decimal(digits)) or None if 0 < len(whole) <= QUANTITY_DIGITS else None
