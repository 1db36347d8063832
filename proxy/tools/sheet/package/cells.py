"""Cells of a worksheet: values, formulas, changes, references such as B7. No I/O."""

import functools
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

# Excel's own limits. A file beyond them is refused when it is read, and never written.
ROWS_MAX = 1_048_576
COLUMNS_MAX = 16_384
TEXT_MAX = 32_767  # characters of a cell

_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?([1-9][0-9]{0,6})", re.ASCII)


class CellError(NamedTuple):
    """Error value of a cell, such as `#N/A`. No string, so that text "#N/A" stays text."""

    code: str


CellValue = str | Decimal | bool | CellError | None
"""Dates are numbers, as Excel stores them: days since the workbook's epoch."""


class Formula(NamedTuple):
    """Formula of a cell, without the leading "=".

    `reference` is the range of an array formula, of a data table, or of the cell that defines a shared formula. A
    shared formula whose defining cell is missing has no text.
    """

    text: str
    kind: Literal["normal", "array", "shared", "table"] = "normal"
    reference: str | None = None


class Cell(NamedTuple):
    """One cell as it stands in the file. `row` and `column` count from 1; `style` is an index into the cell formats."""

    row: int
    column: int
    value: CellValue
    style: int = 0
    formula: Formula | None = None


class CellChange(NamedTuple):
    """New content of a cell. A formula stays, with `value` as its cached result, unless `drop_formula`.

    Without `style` the cell's own is kept; a cell that is not in the file yet gets that of its row or column. The
    text of a `link` is an address that opens on a click.
    """

    value: CellValue
    drop_formula: bool = False
    style: int | None = None
    link: bool = False


class ColumnLook(NamedTuple):
    """Look of a column: its width in characters, how its numbers are shown (empty: as its neighbours), and whether its
    texts are addresses to open."""

    width: int
    number_format: str = ""
    link: bool = False


class NewSheet(NamedTuple):
    """Sheet to be added behind the others. `rows` are written as they are iterated; the first one is bold, stays in
    view, and has a filter. `looks` are those of its columns."""

    name: str
    rows: Iterable[Sequence[CellValue]]
    looks: Sequence[ColumnLook] = ()


class Area(NamedTuple):
    """Rectangle of cells; both ends belong to it."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int

    def covers(self, position: tuple[int, int]) -> bool:
        """Say whether a cell (row, column) is in the area."""
        row, column = position
        return self.first_row <= row <= self.last_row and self.first_column <= column <= self.last_column

    def __str__(self) -> str:
        first = reference(self.first_row, self.first_column)
        last = reference(self.last_row, self.last_column)
        return first if first == last else f"{first}:{last}"


def column_name(column: int) -> str:
    """Return the letters of a column: 1 is A, 27 is AA."""
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


@functools.lru_cache(maxsize=COLUMNS_MAX)  # each cell of a sheet has its letters parsed
def column_number(letters: str) -> int:
    """Return the number of a column: A is 1, AA is 27."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def reference(row: int, column: int) -> str:
    """Return the A1 reference of a cell."""
    return f"{column_name(column)}{row}"


def parse_reference(text: str) -> tuple[int, int]:
    """Return row and column of an A1 reference. Raises ValueError, also beyond the last row or column."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:20]!r} is not a cell reference")
    row, column = int(match[2]), column_number(match[1])
    if row > ROWS_MAX or column > COLUMNS_MAX:
        raise ValueError(f"{text[:20]!r} is beyond the last cell of a sheet")
    return row, column


def parse_area(text: str) -> Area:
    """Return the rectangle of a reference such as A1:C7 or B2. Raises ValueError."""
    first, _, last = text.partition(":")
    top, left = parse_reference(first)
    bottom, right = parse_reference(last or first)
    return Area(min(top, bottom), min(left, right), max(top, bottom), max(left, right))
