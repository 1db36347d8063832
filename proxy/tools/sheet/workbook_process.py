"""The process that reads and writes workbooks: a task on standard input, its result on standard output.

Values and formulas are two passes: openpyxl has either the one or the other.
"""

import re
import resource
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from itertools import islice, product
from typing import Any

import msgspec
import openpyxl
from openpyxl.cell import MergedCell
from openpyxl.comments import Comment
from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError
from openpyxl.utils.cell import range_boundaries

from proxy import errors
from proxy.tools.sheet import lines, workbook
from proxy.tools.sheet.cell_texts import A_DATE, AN_ERROR, NOT_CALCULATED, Cell
from proxy.tools.sheet.lines import Reading, Row, column_name
from proxy.tools.sheet.workbook import Call, ReadTask, WorkbookContent, WriteTask
from proxy.traffic import bom_columns

COLUMNS_MAX = 256
CELLS_MAX = 400_000  # of all sheets: what a copy keeps in memory
MEMORY_MAX = 1 << 30  # bytes of address space
_ZEROS = re.compile("00+")
WIDTH_MAX = 40  # characters of a new column
LENGTH_MAX = 16_384  # characters; Excel allows 8192 as they are typed
AREA_MAX = 1000  # cells of a range of distributors

# What Excel writes before the names of add-ins' functions.
_FILE_PREFIXES = re.compile(r"^(?:(?:_XLL|_XLFN|_XLUDF)\.)+")
_REFERENCE = re.compile(r"\$?[A-Za-z]{1,3}\$?\d{1,7}(?::\$?[A-Za-z]{1,3}\$?\d{1,7})?")

A_CALL = "\0call"  # stands for the value of a cell that is a call itself
Place = tuple[str, int, int]
"""Sheet, row and column of a cell, both from 1."""


class FormulaError(Exception):
    """A formula cannot be filled. The message says why, without the formula: it may contain a client secret."""


def main() -> int:
    """Do one task; return the exit code."""
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=ReadTask | WriteTask)
    result: Any
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            code, result = 0, _read(task) if isinstance(task, ReadTask) else _write(task)
        said = {str(each.message).partition(" is not supported and will be removed") for each in warned}
        result.extensions = sorted(name for name, found, _ in said if found)
    except errors.SheetError as error:
        code, result = workbook.REFUSED, error.message
    except Exception:  # openpyxl and its XML and ZIP libraries raise many kinds of errors for damaged files
        code, result = workbook.REFUSED, workbook.NO_WORKBOOK
    sys.stdout.buffer.write(msgspec.msgpack.encode(result))
    return code


def _read(task: ReadTask) -> WorkbookContent:
    written = openpyxl.load_workbook(task.path, read_only=True)
    values = openpyxl.load_workbook(task.path, read_only=True, data_only=True)
    found = WorkbookContent([sheet.title for sheet in written.worksheets])
    cells = 0
    texts: dict[Place, str] = {}
    others = set[Place]()
    for sheet in (*written.worksheets, *values.worksheets):
        sheet.reset_dimensions()  # what a sheet states of itself may be wrong
    for sheet in written.worksheets:
        for row in sheet.iter_rows():
            filled = [cell for cell in row if cell.value is not None]
            cells += len(filled)
            if cells > CELLS_MAX:
                raise errors.SheetError(f"has more than {CELLS_MAX:,} cells; split it, or save the list as CSV")
            for cell in (cell for cell in filled if cell.data_type == "f"):
                text, fills = getattr(cell.value, "text", cell.value), getattr(cell.value, "ref", "")
                place = (sheet.title, cell.row, cell.column)
                if isinstance(text, str) and workbook.PREFIX in text.upper():
                    texts[place] = text if len({*fills.split(":")}) == 1 else ""
                else:
                    others.add(place)
    found.formulas = len(others)
    if task.calls:
        _read_calls(texts, others, values, found)
        return found
    _choose(task, written, values, found)
    found.rows = [(row, [*cells]) for row, cells in _rows(written[found.sheet], values[found.sheet])]
    return found


def _choose(task: ReadTask, written: Any, values: Any, found: WorkbookContent) -> None:
    """Choose the sheet that is named, or else the first visible one with part numbers below their heading."""
    lists: list[str] = []
    for name in found.sheets:
        first = islice(_rows(written[name], values[name]), bom_columns.EXAMINED_ROWS)
        header = lines.find_header([*first], Reading(task.named))
        if header is not None and header[2]:
            lists.append(name)
    possible = [name for name in found.sheets if written[name].sheet_state == "visible"] or found.sheets
    if task.sheet is not None:
        possible = [name for name in found.sheets if name.casefold() == task.sheet.casefold()]
    if not possible:
        named = f"{task.sheet!r}; there are {', '.join(map(repr, found.sheets))}" if found.sheets else "with cells"
        raise errors.SheetError(f"has no sheet {named}")
    found.sheet = next((name for name in possible if name in lists), possible[0])
    found.others = [name for name in lists if name != found.sheet]


def _rows(written: Any, values: Any) -> Iterator[Row]:
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


def _read_calls(texts: Mapping[Place, str], others: Collection[Place], values: Any, found: WorkbookContent) -> None:
    """Parse the formulas of the add-ins, and put the values of cells into their arguments."""
    names = {sheet.title.casefold(): sheet.title for sheet in values.worksheets}
    parsed: dict[Place, tuple[str, list[list[Cell | Place]]]] = {}
    for (sheet, row, column), text in texts.items():
        try:
            parsed[sheet, row, column] = _parse(sheet, text, names)
        except FormulaError as error:
            found.problems.append(f"{sheet}!{column_name(column - 1)}{row}: {error}")
    arguments = [argument for _, arguments in parsed.values() for argument in arguments]
    wanted = {value for argument in arguments for value in argument if isinstance(value, tuple)}
    known: dict[Place, Cell] = {
        place: _cell(cell, cell)
        for sheet in values.worksheets
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None and (place := (sheet.title, cell.row, cell.column)) in wanted
    }
    known = {place: NOT_CALCULATED for place in others} | known | {place: A_CALL for place in texts}
    for place, (function, stated) in parsed.items():
        call, problems = Call(*place, function, texts[place]), []
        for number, argument in enumerate(stated, 1):
            call.arguments.append([known.get(each, "") if isinstance(each, tuple) else each for each in argument])
            if A_CALL in call.arguments[-1]:
                problems.append(f"argument {number} is the result of another call")
            elif NOT_CALCULATED in call.arguments[-1]:
                problems.append(f"argument {number} was not calculated: open the file and save it once")
        if problems:
            found.problems.append(f"{call.place}: {problems[0]}")
        else:
            found.calls.append(call)


def _parse(sheet: str, formula: str, sheets: Mapping[str, str]) -> tuple[str, list[list[Cell | Place]]]:
    """Return the name, without its prefix, of the function that a formula is one call of, and its arguments; `sheets`
    are the names of sheets by their lower case. Raises FormulaError."""
    if not formula or len(formula) > LENGTH_MAX:
        raise FormulaError("an array formula of several cells, or longer than Excel allows")
    try:
        tokens = [token for token in Tokenizer(formula).items if token.type != Token.WSPACE]
    except (TokenizerError, IndexError):  # an IndexError where a closing parenthesis is too much
        raise FormulaError("the formula cannot be read") from None  # its message has the formula
    names: list[str] = []  # in upper case, of tokens such as `@_xll.NAME(` and `[1]!Name(`
    for token in (token for token in tokens if token.type == Token.FUNC and token.subtype == Token.OPEN):
        name = token.value.rstrip("(").rpartition("!")[2].lstrip("@").upper()
        names.append(_FILE_PREFIXES.sub("", name).removeprefix(workbook.PREFIX))
    is_one = len(names) == 1 and tokens[0].subtype == Token.OPEN and tokens[-1].subtype == Token.CLOSE
    if not is_one or names[0] not in workbook.FUNCTIONS:
        raise FormulaError("the formula is not one call of a function of the add-in")
    groups: list[list[Token]] = [[]]  # tokens of each argument: none of NAME(), two empty ones of NAME(,)
    for token in tokens[1:-1]:
        if token.type == Token.SEP:
            groups.append([])
        else:
            groups[-1].append(token)
    groups = [] if groups == [[]] else groups
    parameters = workbook.FUNCTIONS[names[0]]
    if len(groups) > len(parameters):
        raise FormulaError(f"{names[0]} has {len(parameters)} arguments at most")
    arguments: list[list[Cell | Place]] = []
    for index, group in enumerate(groups):
        found = _argument(group, sheet, sheets)
        if found is None or (len(found) > 1 and parameters[index] != "distributors"):
            raise FormulaError(f"argument {index + 1} is neither a literal nor a cell")
        arguments.append(found)
    return names[0], arguments


def _argument(group: list[Token], sheet: str, sheets: Mapping[str, str]) -> list[Cell | Place] | None:
    """Return the value of an argument as a list, or the cells that it refers to, or an empty list where it is left out;
    None for whole columns, names, other workbooks and expressions."""
    if not group:
        return []
    [token, *more] = group
    if more or token.type != Token.OPERAND:
        return None
    if token.subtype != Token.RANGE:
        text = token.value[1:-1].replace('""', '"') if token.subtype == Token.TEXT else token.value
        return [text] if token.subtype in (Token.TEXT, Token.NUMBER, Token.LOGICAL) else None
    qualifier, _, reference = token.value.rpartition("!")
    if qualifier.startswith("'") and qualifier.endswith("'"):
        qualifier = qualifier[1:-1].replace("''", "'")
    own = sheets.get(qualifier.casefold()) if qualifier else sheet
    if own is None or not _REFERENCE.fullmatch(reference):
        return None
    left, top, right, bottom = range_boundaries(reference.replace("$", ""))
    rows = range(min(top, bottom), max(top, bottom) + 1)
    columns = range(min(left, right), max(left, right) + 1)
    return [*product((own,), rows, columns)] if len(rows) * len(columns) <= AREA_MAX else None


def _write(task: WriteTask) -> WorkbookContent:
    book = openpyxl.load_workbook(task.path, keep_vba=task.path.lower().endswith(".xlsm"), rich_text=True)
    last = min((new.column for new in task.cells if new.is_new), default=2) - 1  # of the columns that were there
    styles: dict[int, tuple[Any, Any, Any]] = {}  # copied once each: to copy those of each cell takes 6 s of 8
    for new in task.cells:
        sheet = book[new.sheet]
        cell, beside = sheet.cell(new.row, new.column), sheet.cell(new.row, max(1, last))
        if isinstance(cell, MergedCell):
            raise errors.SheetError(f"{sheet.title}!{cell.coordinate} is hidden by merged cells")
        cell.value = new.value
        if isinstance(new.value, str) and new.value.startswith("="):
            cell.data_type = "s"  # a text of the service is no formula
        if new.number_format not in ("", "General") and not isinstance(new.value, str):
            cell.number_format = new.number_format
        if new.comment:
            cell.comment = Comment(new.comment, "v3bridge")
        if new.is_new and beside.has_style:
            if beside.style_id not in styles:
                styles[beside.style_id] = copy(beside.font), copy(beside.fill), copy(beside.border)
            cell.font, cell.fill, cell.border = styles[beside.style_id]
        if new.is_new and isinstance(new.value, str):
            width = sheet.column_dimensions[cell.column_letter]
            width.width = max(width.width, min(len(new.value) + 2, WIDTH_MAX))
    book.save(task.target)
    return WorkbookContent()


if __name__ == "__main__":
    sys.exit(main())
