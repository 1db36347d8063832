"""Rows of a worksheet as a stream: whatever the size of the sheet, memory holds a few rows."""

import datetime
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, cast

from proxy.tools.sheet.package import strings, xml_events
from proxy.tools.sheet.package.cells import (
    COLUMNS_MAX,
    ROWS_MAX,
    Cell,
    CellError,
    CellValue,
    Formula,
    parse_reference,
    reference,
)

FORMULA_MAX = 8_192  # characters; Excel's limit
# Characters that the shared formulas of a workbook become in all their cells: 80 000 calls of an add-in's function. A
# file of a few kilobytes can give each of a hundred thousand cells the longest formula.
EXPANDED_MAX = 1 << 22
# Characters of the rows that one chunk of the part completes: a short file can refer to the same long text thousands of
# times in one row.
PENDING_MAX = 1 << 26
_NUMBER_MAX = 308  # greatest exponent of a double
_DIGITS_MAX = 512  # characters of a number: the longest exact form that a program writes is shorter
_KINDS: dict[str, Literal["normal", "array", "shared", "table"]] = {
    "array": "array",
    "shared": "shared",
    "dataTable": "table",
}


class Positions:
    """Numbers rows and cells, which may leave out their references, and refuses what Excel would not open."""

    def __init__(self, fail: xml_events.Fail) -> None:
        self._fail = fail
        self.row = self.column = 0

    def enter_sheet(self, name: str) -> None:
        """Begin the part."""
        if name != "worksheet":
            self._fail("is not a worksheet")

    def enter_row(self, number: str | None) -> None:
        """Begin a row."""
        row = self.row + 1 if number is None else _whole(number)
        if not self.row < row <= ROWS_MAX:
            self._fail(
                f"has a row {(number or str(row))[:20]!r} that is out of order, or beyond the last row of a sheet"
            )
        self.row, self.column = row, 0

    def enter_cell(self, name: str | None) -> None:
        """Begin a cell of the row."""
        row, column = self.row, self.column + 1
        if name is not None:
            try:
                row, column = parse_reference(name)
            except ValueError as error:
                self._fail(f"has a wrong cell in row {self.row}: {error}")
        if row != self.row or not self.column < column <= COLUMNS_MAX:
            self._fail(f"has a cell {(name or '')[:20]!r} in row {self.row} that is out of order")
        self.column = column

    def __str__(self) -> str:
        return reference(self.row, self.column)


class SharedFormulas:
    """Shared formulas of one sheet, which may become `room` characters in their cells."""

    def __init__(self, fail: xml_events.Fail, room: int = EXPANDED_MAX) -> None:
        self._fail = fail
        self._room = room
        self._translators: dict[str, tuple[Any, int]] = {}  # with the length of the formula
        self.expanded = 0
        """Characters so far."""

    def __contains__(self, index: object) -> bool:
        return index in self._translators

    def define(self, index: str, text: str, cell: str) -> None:
        """Take the formula that stands in this cell."""
        from openpyxl.formula import tokenizer, translate

        if len(text) > FORMULA_MAX:
            self._fail(f"has a formula of more than {FORMULA_MAX} characters in cell {cell}")
        try:
            self._translators[index] = translate.Translator(f"={text}", cell), len(text)
        except (tokenizer.TokenizerError, IndexError):
            self._fail(f"has a shared formula in cell {cell} that cannot be read")

    def text(self, index: str, cell: str) -> str:
        """Return the formula as it reads in another cell."""
        from openpyxl.formula import translate

        translator, length = self._translators[index]
        self.expanded += length
        if self.expanded > self._room:
            self._fail(f"has too many shared formulas ({EXPANDED_MAX:,} characters at most); split the workbook")
        try:
            return cast(str, translator.translate_formula(cell))[1:]
        except translate.TranslatorError:  # a reference that leaves the sheet
            return "#REF!"


class RowReader:
    """Collects rows from the events of a sheet. Without `formulas`, shared formulas have no text."""

    def __init__(
        self,
        shared: strings.SharedStrings | None,
        fail: xml_events.Fail,
        formulas: SharedFormulas | None,
        *,
        date_1904: bool,
    ) -> None:
        self._fail = fail
        self._strings = shared
        self._epoch = datetime.datetime(1904, 1, 1) if date_1904 else datetime.datetime(1899, 12, 30)  # noqa: DTZ001
        self._rows: list[tuple[int, list[Cell]]] = []
        self._cells: list[Cell] = []
        self._positions = Positions(fail)
        self._depth = 0
        self._in_data = False
        self._collecting = ""  # f, v or is
        self._text: list[str] = []
        self._rich = strings.RichText(fail)
        self._cell: dict[str, str] = {}
        self._value: str | None = None
        self._formula: dict[str, str] | None = None
        self._formula_text = ""
        self._shared_formulas = formulas
        self._pending = 0  # characters of the rows that are not yielded yet

    def rows(self, chunks: Iterable[bytes]) -> Iterator[tuple[int, list[Cell]]]:
        """Yield (number, cells) of each row that stands in the sheet."""
        parser = xml_events.XmlParser(self, self._fail)
        for chunk in chunks:
            parser.feed(chunk)
            yield from self._rows
            self._rows.clear()
            self._pending = 0
        parser.feed(b"", final=True)
        yield from self._rows

    def start(self, name: str, attributes: dict[str, str], _: int) -> None:
        """Begin an element."""
        self._depth += 1
        if self._depth == 1:
            self._positions.enter_sheet(name)
        elif self._depth == 2:
            self._in_data = name == "sheetData"
        elif not self._in_data:
            return
        elif self._depth == 3 and name == "row":
            self._positions.enter_row(attributes.get("r"))
            self._cells = []
        elif self._depth == 4 and name == "c":
            self._positions.enter_cell(attributes.get("r"))
            self._cell, self._value, self._formula = attributes, None, None
        elif self._depth == 5 and name in ("f", "v", "is"):
            self._collecting = name
            self._text.clear()
            if name == "f":
                self._formula = attributes
        elif self._depth > 5 and self._collecting == "is":
            self._rich.start(name)

    def end(self, name: str, _: int) -> None:
        """End an element."""
        if self._in_data:
            if self._depth == 4 and name == "c":
                self._cells.append(self._finished_cell())
            elif self._depth == 5:
                self._finish_content()
            elif self._depth == 3 and name == "row":
                self._rows.append((self._positions.row, self._cells))
            elif self._depth > 5 and self._collecting == "is":
                self._rich.end(name)
        self._depth -= 1

    def text(self, data: str) -> None:
        """Text."""
        if self._collecting == "is":
            self._rich.add(data)
        elif self._collecting:
            self._text.append(data)
            if sum(map(len, self._text)) > strings.TEXT_READ_MAX:
                self._fail(f"has a text of more than {strings.TEXT_READ_MAX} characters in cell {self._positions}")

    def _finish_content(self) -> None:
        match self._collecting:
            case "v":
                self._value = "".join(self._text)
            case "is":
                self._value = self._rich.take()
            case "f":
                self._formula_text = strings.unescaped("".join(self._text))
        self._collecting = ""

    def _finished_cell(self) -> Cell:
        row, column = self._positions.row, self._positions.column
        style = _whole(self._cell.get("s", "0"))
        formula = None if self._formula is None else self._parsed_formula(self._formula)
        value = self._parsed_value()
        if isinstance(value, str):
            self._pending += len(value)
            if self._pending > PENDING_MAX:
                self._fail(f"has more text in row {row} and those before it than a workbook has in practice")
        return Cell(row, column, value, max(style, 0), formula)

    def _parsed_value(self) -> CellValue:
        text, kind = self._value, self._cell.get("t", "n")
        if text is None or (kind not in ("str", "inlineStr") and not text.strip()):
            return None
        try:
            return self._converted(text, kind)
        except (ValueError, InvalidOperation, LookupError):
            self._fail(f"has a wrong value in cell {self._positions} for its type {kind[:20]!r}")

    def _converted(self, text: str, kind: str) -> CellValue:
        value: CellValue = text  # of an inline string
        match kind:
            case "n":
                value = number(text)
            case "s":
                if self._strings is None:
                    raise IndexError(text)
                value = self._strings[int(text)]
            case "str":
                value = strings.unescaped(text)
            case "b":
                value = text.strip() in ("1", "true")
            case "e":
                value = CellError(text)
            case "d":
                value = self._serial(text)
        return value

    def _serial(self, text: str) -> Decimal:
        """Return days since the epoch of an ISO 8601 date, as which strict workbooks store dates."""
        passed = datetime.datetime.fromisoformat(text.strip()).replace(tzinfo=None) - self._epoch
        return Decimal(passed.days) + Decimal(passed.seconds) / 86_400

    def _parsed_formula(self, attributes: dict[str, str]) -> Formula:
        kind = _KINDS.get(attributes.get("t", ""), "normal")
        text = self._formula_text
        if kind == "shared":
            text = self._expanded(attributes.get("si", ""), text)
        return Formula(text, kind, attributes.get("ref"))

    def _expanded(self, index: str, text: str) -> str:
        """Return a shared formula as it reads in this cell; empty if the first of its cells, which alone has the text,
        is gone: libraries that remove rows leave such files."""
        shared = self._shared_formulas
        if shared is not None and text:
            shared.define(index, text, str(self._positions))
        elif shared is not None and index in shared:
            return shared.text(index, str(self._positions))
        return text


def number(text: str) -> Decimal:
    """Return the number of a cell. Raises ValueError for what is none, or beyond a double."""
    if len(text) > _DIGITS_MAX or "_" in text or not text.isascii():
        raise ValueError(text[:20])
    value = Decimal(text.strip())
    if not value.is_finite() or value.adjusted() > _NUMBER_MAX:
        raise ValueError(text[:20])
    return value if value.adjusted() >= -_NUMBER_MAX - 20 else Decimal(0)


def _whole(text: str) -> int:
    """Return a count; -1 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
