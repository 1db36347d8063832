"""A sheet of a workbook, filled with columns in the style of its own."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from proxy import errors
from proxy.tools.sheet.columns import lines, offers_sheet, summary_sheet
from proxy.tools.sheet.columns.lines import UNREADABLE, TableReading, TableRow
from proxy.tools.sheet.columns.quantities import NumberText
from proxy.tools.sheet.package import layout, workbook
from proxy.tools.sheet.package.cells import (
    ROWS_MAX,
    Area,
    Cell,
    CellChange,
    CellError,
    CellValue,
    ColumnLook,
    NewSheet,
)
from proxy.tools.sheet.package.structure import Sheet

OFFERS, SUMMARY = "Offers", "Summary"
HEADINGS = {OFFERS: offers_sheet.HEADINGS, SUMMARY: summary_sheet.HEADINGS}
DIGITS_MAX = 25  # of a number that is written out

_ZEROS = re.compile("00+")
_LITERAL = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|General', re.IGNORECASE)
_DATE = re.compile("[dmyhs]", re.IGNORECASE)


class WorkbookTable:
    """A sheet: the one that is named, else the first one with part numbers below their heading, else the first one."""

    def __init__(self, package: workbook.Package, sheet: Sheet) -> None:
        self.place = f"{package.path}, sheet {sheet.name!r}"  # in messages
        self.sheet = sheet.name
        self._package = package
        self._sheet = sheet
        self._styles: dict[int, int] = {}  # of the last text of each row
        self._formats = package.number_formats()

    offers_max = ROWS_MAX - 1  # below the headings

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows with their numbers."""
        for number, cells in self._package.rows(self._sheet, formulas=False):
            texts = [cell for cell in cells if isinstance(cell.value, str) and cell.value]
            if texts:
                self._styles[number] = texts[-1].style
            yield number, _texts(cells, self._formats)

    def save(
        self,
        target: Path,
        changes: Mapping[int, Mapping[int, CellValue]],
        offers: Iterable[Sequence[CellValue]] | None,
        summary: Iterable[Sequence[CellValue]] | None,
        looks: Mapping[int, ColumnLook],
    ) -> None:
        """Write the workbook with the filled sheet, and sheets of offers and of the summary: those of an earlier run,
        or new ones."""
        header, last = min(changes), max(changes)
        cells = {
            (row, column + 1): self._change(row, value, ColumnLook(0) if row == header else looks[column])
            for row, values in changes.items()
            for column, value in values.items()
        }
        changed = {self._sheet.name: cells}
        widths = {column + 1: look.width for column, look in looks.items()}
        filtered = Area(header, 1, last, max(widths)) if last > header else None
        look = {self._sheet.name: layout.SheetLook(header, widths, filtered)}
        added: list[NewSheet] = []
        for name, rows, looks_of in (
            (SUMMARY, summary, summary_sheet.LOOKS),
            (OFFERS, offers, offers_sheet.LOOKS),
        ):
            if rows is None:
                continue
            new = NewSheet(name, iter(rows), looks_of)
            earlier = next((sheet for sheet in self._package.sheets if sheet.name == name), None)
            replaced = None if earlier is None else self._replaced(earlier, new)
            if replaced is None:
                added.append(new)
            else:
                changed[name] = replaced
        self._package.save(target, changed, added, look)

    def _change(self, row: int | None, value: CellValue, look: ColumnLook) -> CellChange:
        """Return the change of a cell, in the style of its row; None: in the default style."""
        base = 0 if row is None else self._styles.get(row)
        style = None if base is None else self._package.style(base, look)
        return CellChange(value, drop_formula=True, style=style, link=look.link)

    def _replaced(self, earlier: Sheet, new: NewSheet) -> dict[tuple[int, int], CellChange] | None:
        """Return the changes that make the new sheet of an earlier one; None if that is another's."""
        first = next(iter(self._package.rows(earlier, formulas=False)), (1, []))[1]
        if tuple(_texts(first)) != HEADINGS[new.name]:
            return None
        cells: dict[tuple[int, int], CellChange] = {}
        for number, row in self._package.rows(earlier, formulas=False):
            cells |= {
                (number, cell.column): CellChange(None, drop_formula=True)
                for cell in row
                if number > 1 and cell.value is not None
            }
        for number, values in enumerate(new.rows, 1):
            cells |= {
                (number, column): self._change(None, value, look)
                for column, (value, look) in enumerate(zip(values, new.looks, strict=True), 1)
                if number > 1
            }
        return cells


def choose(package: workbook.Package, name: str | None, reading: TableReading) -> WorkbookTable:
    """Return the sheet to fill. Raises SheetError for a name that is not there."""
    sheets = list(package.sheets)
    if name is not None:
        chosen = [sheet for sheet in sheets if sheet.name.casefold() == name.casefold()]
        if not chosen:
            there = ", ".join(repr(sheet.name) for sheet in sheets)
            raise errors.SheetError(f"{package.path}: has no sheet {name!r}; there are {there}")
        return WorkbookTable(package, chosen[0])
    if not sheets:
        raise errors.SheetError(f"{package.path}: has no worksheet")
    own = [sheet for sheet in sheets if sheet.name != OFFERS] or sheets
    tables = [WorkbookTable(package, sheet) for sheet in own if sheet.visible or not any(each.visible for each in own)]
    with_header: list[WorkbookTable] = []
    for table in tables:
        header = lines.find_header(table.rows(), reading)
        if header is not None and header.score:
            return table
        if header is not None:
            with_header.append(table)
    return (with_header or tables)[0]


def _texts(cells: Sequence[Cell], formats: Sequence[str] = ()) -> list[str]:
    """Return the row as texts from column A on; `formats` are number formats by style."""
    texts = [""] * (cells[-1].column if cells else 0)
    for cell in cells:
        number_format = formats[cell.style] if cell.style < len(formats) else ""
        is_calculated = cell.formula is None or cell.value is not None
        texts[cell.column - 1] = _text(cell.value, number_format) if is_calculated else UNREADABLE
    return texts


def _text(value: CellValue, number_format: str) -> str:
    """Return a value as text: a number as Excel shows it, but for its rounding."""
    match value:
        case None:
            return ""
        case CellError():
            return UNREADABLE
        case bool():
            return str(value).upper()
        case Decimal():
            return _number(value, number_format)
    return value


def _number(value: Decimal, number_format: str) -> str:
    if _DATE.search(_LITERAL.sub("", number_format)):
        return UNREADABLE
    if "%" in _LITERAL.sub("", number_format):
        return f"{(value * 100).normalize():f}%"
    whole = value == value.to_integral_value() and value.adjusted() < DIGITS_MAX
    text = f"{value.quantize(Decimal(1)) if whole else value.normalize():f}"
    return NumberText(text.zfill(len(number_format)) if _ZEROS.fullmatch(number_format) else text)
