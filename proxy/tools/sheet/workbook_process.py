"""The process that reads and writes workbooks: a task on standard input, its result on standard output.

Values and formulas are two passes: openpyxl has either the one or the other.
"""

import re
import resource
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from itertools import islice
from typing import Any

import msgspec
import openpyxl
from openpyxl.cell import MergedCell
from openpyxl.comments import Comment

from proxy.tools.sheet import formula_parsing, formulas, lines
from proxy.tools.sheet.lines import Reading, Row, column_name
from proxy.tools.sheet.quantities import A_DATE, AN_ERROR, NOT_CALCULATED, Cell
from proxy.tools.sheet.workbook import REFUSED, NewCell, ReadTask, WorkbookContent, WriteTask
from proxy.traffic import bom_columns

COLUMNS_MAX = 256
CELLS_MAX = 400_000  # of all sheets: what a copy keeps in memory
MEMORY_MAX = 1 << 30  # bytes of address space
_ZEROS = re.compile("00+")
_DAMAGED = "is not a readable workbook: damaged, locked, or of another program; save it as .xlsx or CSV"


class _RefusedError(Exception):
    """The workbook cannot be read or written; the message says why."""


def main() -> int:
    """Do one task; return the exit code."""
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=ReadTask | WriteTask)
    try:
        with warnings.catch_warnings(action="ignore"):  # about extensions that are not supported
            done = _read(task) if isinstance(task, ReadTask) else _write(task)
    except _RefusedError as error:
        return _end(str(error), REFUSED)
    except Exception:  # openpyxl and its XML and ZIP libraries raise many kinds of errors for damaged files
        return _end(_DAMAGED, REFUSED)
    return _end(done, 0)


def _end(result: Any, code: int) -> int:
    sys.stdout.buffer.write(msgspec.msgpack.encode(result))
    return code


def _read(task: ReadTask) -> WorkbookContent:
    written = openpyxl.load_workbook(task.path, read_only=True)
    values = openpyxl.load_workbook(task.path, read_only=True, data_only=True)
    found = WorkbookContent()
    cells = 0
    texts: dict[formulas.Place, str] = {}
    others = set[formulas.Place]()
    for sheet in (*written.worksheets, *values.worksheets):
        sheet.reset_dimensions()  # what a sheet states of itself may be wrong
    for sheet in written.worksheets:
        for row in sheet.iter_rows():
            filled = [cell for cell in row if cell.value is not None]
            cells += len(filled)
            if cells > CELLS_MAX:
                raise _RefusedError(f"has more than {CELLS_MAX:,} cells; split it, or save the list as CSV")
            for cell in (cell for cell in filled if cell.data_type == "f"):
                text, fills = getattr(cell.value, "text", cell.value), getattr(cell.value, "ref", "")
                place = (sheet.title, cell.row, cell.column)
                if isinstance(text, str) and formulas.may_contain(text):
                    texts[place] = text if len({*fills.split(":")}) == 1 else ""
                else:
                    others.add(place)
    found.formulas = len(others)
    if task.calls:
        _read_calls(texts, others, values, found)
        return found
    chosen = _chosen(task, written, values)
    found.sheet, found.rows = chosen, [(row, [*cells]) for row, cells in _rows(written[chosen], values[chosen])]
    return found


def _chosen(task: ReadTask, written: Any, values: Any) -> str:
    """Return the sheet that is named, or else the first with part numbers below their heading."""
    names: list[str] = [sheet.title for sheet in written.worksheets]
    if task.sheet is not None:
        name = next((name for name in names if name.casefold() == (task.sheet or "").casefold()), None)
        if name is None:
            raise _RefusedError(f"has no sheet {task.sheet!r}; there are {', '.join(map(repr, names))}")
        return name
    reading = Reading(task.named, task.header_row)
    visible = [name for name in names if written[name].sheet_state == "visible"] or names
    if not visible:
        raise _RefusedError("has no sheet with cells")
    with_header: list[str] = []
    for name in visible:
        first = islice(_rows(written[name], values[name]), bom_columns.EXAMINED_ROWS)
        header = lines.find_header([row for row in first if row[0] >= (task.header_row or 0)], reading)
        if header is not None and header[2]:
            return name
        if header is not None:
            with_header.append(name)
    return (with_header or visible)[0]


def _rows(written: Any, values: Any) -> Iterator[Row]:
    """Yield the rows that are not blank."""
    rows = (sheet.iter_rows() for sheet in (written, values))
    for number, both in enumerate(zip(*rows, strict=True), 1):
        cells = [_cell(formula, value) for formula, value in islice(zip(*both, strict=True), COLUMNS_MAX)]
        while cells and cells[-1] == "":
            cells.pop()
        if cells:
            yield number, cells


def _cell(formula: Any, value: Any) -> Cell:
    found = value.value
    if found is None or found == "":
        return NOT_CALCULATED if formula.value is not None and formula.data_type == "f" else ""
    if value.data_type == "e":
        return AN_ERROR
    if isinstance(found, bool):
        return str(found).upper()
    if isinstance(found, int | float):
        shown = value.number_format
        return str(int(found)).zfill(len(shown)) if _ZEROS.fullmatch(shown) and found == int(found) else found
    return found if isinstance(found, str) else A_DATE


def _read_calls(
    texts: Mapping[formulas.Place, str], others: Collection[formulas.Place], values: Any, found: WorkbookContent
) -> None:
    """Parse the formulas of the add-ins, and put the values of cells into their arguments."""
    names = {sheet.title.casefold(): sheet.title for sheet in values.worksheets}
    parsed: list[formulas.Call] = []
    for (sheet, row, column), text in texts.items():
        try:
            parsed.append(formula_parsing.parse(sheet, row, column, text, names))
        except formulas.FormulaError as error:
            found.problems.append(f"{sheet}!{column_name(column - 1)}{row}: {error}")
    wanted = {cell for call in parsed for cell in call.cells()}
    known: dict[formulas.Place, Cell] = {
        place: _cell(cell, cell)
        for sheet in values.worksheets
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None and (place := (sheet.title, cell.row, cell.column)) in wanted
    }
    known = {place: NOT_CALCULATED for place in others} | known | {place: formulas.A_CALL for place in texts}
    for call in parsed:
        try:
            found.calls.append(call.with_values(known))
        except formulas.FormulaError as error:
            found.problems.append(f"{call.place}: {error}")


def _write(task: WriteTask) -> WorkbookContent:
    book = openpyxl.load_workbook(task.path, keep_vba=task.path.lower().endswith(".xlsm"), rich_text=True)
    for new in task.cells:
        _write_cell(book[new.sheet], new)
    book.save(task.target)
    return WorkbookContent()


def _write_cell(sheet: Any, new: NewCell) -> None:
    cell = sheet.cell(new.row, new.column)
    if isinstance(cell, MergedCell):
        raise _RefusedError(f"{sheet.title}!{cell.coordinate} is hidden by merged cells")
    cell.value = new.value
    if isinstance(new.value, str) and new.value.startswith("="):
        cell.data_type = "s"  # a text of the service is no formula
    beside = sheet.cell(new.row, max(1, new.column - 1))
    if new.is_new and beside.has_style:
        cell.font, cell.fill, cell.border = copy(beside.font), copy(beside.fill), copy(beside.border)
    if new.number_format and not isinstance(new.value, str):
        cell.number_format = new.number_format
    if new.comment:
        cell.comment = Comment(new.comment, "v3bridge")


if __name__ == "__main__":
    sys.exit(main())
