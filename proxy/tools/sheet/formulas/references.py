"""References in formulas: text to areas of cells. No I/O."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Self

from openpyxl.utils.cell import get_column_letter, quote_sheetname, range_boundaries

from proxy.tools.sheet.package.cells import COLUMNS_MAX, ROWS_MAX
from proxy.tools.sheet.package.names import NamedTable

_AREAS_MAX = 1000  # areas that are remembered: the formulas of one row read the same cells
_NAME_DEPTH = 8  # names that refer to names; deeper ones refer to themselves


class CellPosition(NamedTuple):
    """One cell of a workbook."""

    sheet: str
    row: int
    column: int

    @property
    def area(self) -> "CellArea":
        """The area of this cell alone."""
        return CellArea(self.sheet, self.row, self.column, self.row, self.column)

    def __str__(self) -> str:
        return f"{self.sheet}!{get_column_letter(self.column)}{self.row}"


class CellArea(NamedTuple):
    """A rectangle of cells, its bounds included. A whole column goes down to the last row that a sheet can have."""

    sheet: str
    top: int
    left: int
    bottom: int
    right: int

    @property
    def one_cell(self) -> CellPosition | None:
        """The cell, if it is one."""
        single = (self.top, self.left) == (self.bottom, self.right)
        return CellPosition(self.sheet, self.top, self.left) if single else None

    @property
    def size(self) -> int:
        """Number of cells."""
        return (self.bottom - self.top + 1) * (self.right - self.left + 1)

    def cells(self) -> Iterator[CellPosition]:
        """Yield all cells, row by row."""
        for row in range(self.top, self.bottom + 1):
            for column in range(self.left, self.right + 1):
                yield CellPosition(self.sheet, row, column)

    def overlaps(self, area: Self) -> bool:
        """Return true if a cell is in both areas."""
        return (
            self.sheet == area.sheet
            and self.top <= area.bottom
            and area.top <= self.bottom
            and self.left <= area.right
            and area.left <= self.right
        )

    def intersected(self, formula: CellPosition) -> CellPosition | None:
        """Return the one cell that a formula means where it needs a single value: of one column that of its row, of one
        row that of its column (implicit intersection)."""
        if (cell := self.one_cell) is not None:
            return cell
        if self.left == self.right and self.top <= formula.row <= self.bottom:
            return CellPosition(self.sheet, formula.row, self.left)
        if self.top == self.bottom and self.left <= formula.column <= self.right:
            return CellPosition(self.sheet, self.top, formula.column)
        return None


class WorkbookNames:
    """Sheets, defined names and tables of a workbook: what a reference may name. All are found in any case."""

    def __init__(
        self, sheets: Sequence[str], names: Mapping[tuple[str | None, str], str], tables: Iterable[NamedTable] = ()
    ) -> None:
        """`names` by sheet (None: those of the workbook) and name."""
        self._sheets = {sheet.casefold(): sheet for sheet in sheets}
        self._names = {(sheet and sheet.casefold(), name.casefold()): text for (sheet, name), text in names.items()}
        self._defined = {name for _, name in self._names}
        self._tables = {table.name.casefold(): table for table in tables}

    def resolve(self, text: str, formula: CellPosition) -> CellArea | None:
        """Return the area of a reference in the formula of a cell; None if it is not one area of this workbook."""
        sheet = formula.sheet
        for _ in range(_NAME_DEPTH):
            qualifier, _, reference = text.strip().rpartition("!")
            named_sheet = self._sheets.get(_unquoted(qualifier).casefold()) if qualifier else sheet
            if named_sheet is None:
                return None
            if (area := _area(named_sheet, reference)) is not None:
                return area
            if "[" in reference:
                return self._table_area(reference, formula)
            key = reference.casefold()
            definition = self._names.get((named_sheet.casefold(), key), self._names.get((None, key)))
            if definition is None:
                return None
            text, sheet = definition, named_sheet
        return None

    def constant(self, text: str, formula: CellPosition) -> str | None:
        """Return the definition of a name that is a number or a text, such as 1.19; None for any other."""
        key = text.casefold()
        definition = self._names.get((formula.sheet.casefold(), key), self._names.get((None, key)))
        if definition is None:
            return None
        literal = definition.removeprefix("-")
        return definition if literal.startswith('"') or literal[:1].isdigit() else None

    def rewritten(self, text: str, formula: CellPosition, *, qualified: bool) -> str | None:
        """Return a reference as cells, without names of tables, areas and constants; `qualified`: with its sheet. None
        if it is not one area of this workbook."""
        area = self.resolve(text, formula)
        if area is None:
            return self.constant(text, formula)
        qualifier, _, reference = text.rpartition("!")
        if _area(area.sheet, reference) is None:  # a name or a table
            reference = f"${get_column_letter(area.left)}${area.top}:${get_column_letter(area.right)}${area.bottom}"
        elif qualifier or not qualified:
            return text
        return f"{quote_sheetname(area.sheet)}!{reference}"

    def is_opaque(self, text: str, formula: CellPosition) -> bool:
        """Return true if a reference that is not one area of the workbook may nevertheless mean cells of it: those of
        several sheets, or a name whose definition is a formula. False for names of LET, and for other workbooks."""
        qualifier, _, reference = text.rpartition("!")
        if qualifier.lstrip("'").startswith("[") or self.constant(text, formula) is not None:
            return False
        key = reference.casefold()
        return bool(qualifier) or "[" in text or ":" in text or key in self._defined

    def _table_area(self, reference: str, formula: CellPosition) -> CellArea | None:
        name, _, specifier = reference.partition("[")
        table = self._tables.get(name.casefold())
        if table is None:
            return None
        area = data = CellArea(table.sheet, *table.data)
        for item in _specifiers(specifier.removesuffix("]")):
            lowered = item.casefold()
            if lowered == "#this row":
                area = area._replace(top=formula.row, bottom=formula.row)
            elif lowered in (columns := [column.casefold() for column in table.columns]):
                column = data.left + columns.index(lowered)
                area = area._replace(left=column, right=column)
            elif lowered != "#data":
                return None
        return area


def _specifiers(text: str) -> Iterator[str]:
    """Yield the items of a structured reference's outer bracket: `[#This Row],[MPN]` or `MPN`."""
    if not text.startswith("["):
        yield _unescaped(text)
        return
    for item in text.removeprefix("[").removesuffix("]").split("],["):
        yield _unescaped(item)


def _unescaped(column: str) -> str:
    # An apostrophe escapes brackets, # and itself in the names of columns.
    return column.replace("''", "\0").replace("'", "").replace("\0", "'")


def _unquoted(sheet: str) -> str:
    if sheet.startswith("'") and sheet.endswith("'"):
        return sheet[1:-1].replace("''", "'")
    return sheet


@lru_cache(_AREAS_MAX)
def _area(sheet: str, reference: str) -> CellArea | None:
    try:
        left, top, right, bottom = range_boundaries(reference)
    except ValueError:
        return None
    if ":" not in reference and None in (left, top):
        return None  # openpyxl takes MPN or QTY for a whole column, but in a formula they are names
    rows = sorted((top or 1, bottom or ROWS_MAX))
    columns = sorted((left or 1, right or COLUMNS_MAX))
    if rows[0] < 1 or rows[1] > ROWS_MAX or columns[1] > COLUMNS_MAX:
        return None  # XFE1 or TAX2024000 is no cell: a name may be called so
    return CellArea(sheet, rows[0], columns[0], rows[1], columns[1])
