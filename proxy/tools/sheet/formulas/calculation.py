"""What LibreOffice calculates for a workbook: formulas that depend on calls, and arguments that contain functions.

The copy that it gets has values everywhere else; calls are replaced by their values.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from openpyxl.formula.tokenizer import Token

from proxy.tools.sheet import libreoffice
from proxy.tools.sheet.formulas import calls, functions
from proxy.tools.sheet.formulas.calls import ParsedFormula, TokenSpan
from proxy.tools.sheet.formulas.dependencies import CellColumns
from proxy.tools.sheet.formulas.evaluation import CallEvaluation, UnknownArgument
from proxy.tools.sheet.formulas.references import CellPosition, WorkbookNames
from proxy.tools.sheet.formulas.workbook import CallCell, KnownCells, WorkbookFormulas, is_calculable
from proxy.tools.sheet.package.cells import Area, Cell
from proxy.tools.sheet.package.workbook import Package

_HELPER_SHEET = "v3bridge arguments"
_SECRET_MIN = 8  # characters: a shorter text may be a placeholder, and data in other cells


class CalculationPlan(NamedTuple):
    """Formulas and arguments to calculate, all of whose calls have values."""

    formulas: frozenset[CellPosition]
    arguments: tuple[UnknownArgument, ...]


class WorkbookCalculation:
    """The copy of one workbook for LibreOffice."""

    def __init__(
        self, workbook: Package, formulas: WorkbookFormulas, evaluation: CallEvaluation, known: KnownCells
    ) -> None:
        self._workbook = workbook
        self._formulas = formulas
        self._evaluation = evaluation
        self._known = known
        self._sheets = [sheet.name for sheet in workbook.sheets]
        self._secret: str | None = None
        self._secret_cells = {
            cell for call_cell in formulas.calls.values() for cell in _login_cells(call_cell, formulas)
        }

    def hide(self, secret: str) -> None:
        """Leave out all cells with this text: the login's argument may be a formula that gets it from another cell."""
        self._secret = secret if len(secret) >= _SECRET_MIN else None

    def plan(self, dirty: Collection[CellPosition]) -> CalculationPlan:
        """Return what can be calculated of the formulas that depend on calls."""
        uncertain = [
            cell for cell in dirty if cell in self._evaluation.pending or not self._formulas.links[cell].calculable
        ]
        unusable = self._formulas.dependencies.dependents(uncertain)
        formulas = frozenset(cell for cell in dirty if cell not in unusable and cell not in self._known.results)
        without_value = CellColumns(
            cell for formula in unusable for cell in self._formulas.links[formula].fills.cells()
        )
        arguments = [each for each in self._evaluation.unknown if self._is_calculable(each, without_value)]
        return CalculationPlan(formulas, tuple(arguments))

    def _is_calculable(self, argument: UnknownArgument, without_value: CellColumns) -> bool:
        cell = self._formulas.calls[argument.key.cell]
        if argument.key.target != argument.key.cell or self._argument_text(argument) is None:
            return False
        reads = (
            self._formulas.names.resolve(token.value, cell.position)
            for token in cell.parsed.tokens[argument.span.start : argument.span.end]
            if token.subtype == Token.RANGE
        )
        return not any(area is not None and without_value.intersects(area) for area in reads)

    async def run(self, program: libreoffice.LibreOffice, plan: CalculationPlan) -> None:
        """Calculate; the values become known. Raises CalculationFailed."""
        helpers = self._helpers(plan.arguments)
        wanted: dict[str, set[tuple[int, int]]] = defaultdict(set)
        for position in plan.formulas:
            for cell in self._formulas.links[position].fills.cells():
                wanted[cell.sheet].add((cell.row, cell.column))
        for sheet, arguments in helpers.items():
            wanted[sheet].update(arguments)
        copied = chain(self._copied(plan.formulas), self._copied_helpers(helpers))
        values = await program.calculate(copied, wanted, date_1904=self._workbook.date_1904)
        for (sheet, row, column), value in values.items():
            if sheet in helpers:
                self._evaluation.set_calculated(helpers[sheet][row, column], value)
            else:
                self._known.results[CellPosition(sheet, row, column)] = value

    def _copied(self, formulas: Collection[CellPosition]) -> Iterator[libreoffice.CopiedSheet]:
        for sheet in self._workbook.sheets:
            rows = (
                (number, [self._copied_cell(sheet.name, cell, formulas) for cell in row])
                for number, row in self._workbook.rows(sheet)
            )
            yield libreoffice.CopiedSheet(sheet.name, rows)

    def _copied_cell(self, sheet: str, cell: Cell, formulas: Collection[CellPosition]) -> libreoffice.CopiedCell:
        position = CellPosition(sheet, cell.row, cell.column)
        if position in formulas and cell.formula is not None:
            reference = str(Area(*self._formulas.links[position].fills[1:]))
            array = cell.formula.kind == "array"
            text = self._copied_formula(position, cell.formula.text)
            return libreoffice.CopiedCell(cell.column, libreoffice.CopiedFormula(text, reference if array else None))
        value = self._known.results.get(position, cell.value)
        # Nothing that is calculated needs a client secret: it is not written to another file, not even for seconds.
        is_secret = position in self._secret_cells or (isinstance(value, str) and self._secret == value.strip())
        return libreoffice.CopiedCell(cell.column, None if is_secret else value)

    def _copied_formula(self, position: CellPosition, text: str) -> str:
        call_cell = self._formulas.calls.get(position)
        parsed = calls.parse(text) if call_cell is None else call_cell.parsed
        texts = {} if call_cell is None else _call_texts(call_cell, self._evaluation)
        return _rewritten(parsed, parsed.whole, texts, self._formulas.names, position) or text

    def _helpers(self, arguments: Sequence[UnknownArgument]) -> dict[str, dict[tuple[int, int], UnknownArgument]]:
        """Give each argument a sheet and the place of its formula: there ROW() and references to whole columns mean the
        same. Arguments of one cell get sheets of their own."""
        helpers: dict[str, dict[tuple[int, int], UnknownArgument]] = {}
        for argument in arguments:
            place = argument.key.cell.row, argument.key.cell.column
            number = 1
            while place in helpers.get(name := f"{_HELPER_SHEET} {number}", ()) or name in self._sheets:
                number += 1
            helpers.setdefault(name, {})[place] = argument
        return helpers

    def _copied_helpers(
        self, helpers: Mapping[str, Mapping[tuple[int, int], UnknownArgument]]
    ) -> Iterator[libreoffice.CopiedSheet]:
        for sheet, arguments in helpers.items():
            rows: dict[int, list[libreoffice.CopiedCell]] = defaultdict(list)
            for (row, column), argument in sorted(arguments.items(), key=lambda item: item[0]):
                text = self._argument_text(argument) or "NA()"
                rows[row].append(libreoffice.CopiedCell(column, libreoffice.CopiedFormula(text)))
            yield libreoffice.CopiedSheet(sheet, rows.items())

    def _argument_text(self, argument: UnknownArgument) -> str | None:
        """Return an argument as a formula on a sheet of its own; None if it cannot be one."""
        cell = self._formulas.calls[argument.key.cell]
        texts = _call_texts(cell, self._evaluation)
        return _rewritten(cell.parsed, argument.span, texts, self._formulas.names, cell.position, qualified=True)


def _login_cells(cell: CallCell, formulas: WorkbookFormulas) -> Iterator[CellPosition]:
    """Yield the cells that the arguments of a cell's logins refer to."""
    for call in cell.parsed.calls:
        for token in cell.parsed.tokens[call.span.start : call.span.end] if call.function.logs_in else ():
            area = formulas.names.resolve(token.value, cell.position) if token.subtype == Token.RANGE else None
            if area is not None and area.one_cell is not None:
                yield area.one_cell


def _call_texts(cell: CallCell, evaluation: CallEvaluation) -> dict[int, str]:
    """Return the values of a cell's calls as literals; those of an array formula as an array constant."""
    by_target = [evaluation.call_values(cell, target) for target in cell.targets]
    columns = cell.fills.right - cell.fills.left + 1
    texts = {}
    for call in cell.parsed.calls:
        start = call.span.start
        if any(start not in values for values in by_target):
            continue
        literals = [calls.literal(values[start]) for values in by_target]
        rows = [",".join(literals[begin : begin + columns]) for begin in range(0, len(literals), columns)]
        texts[start] = literals[0] if len(literals) == 1 else "{" + ";".join(rows) + "}"
    return texts


def _rewritten(
    parsed: ParsedFormula,
    span: TokenSpan,
    texts: Mapping[int, str],
    names: WorkbookNames,
    position: CellPosition,
    *,
    qualified: bool = False,
) -> str | None:
    """Return the tokens of a span with calls replaced, and references to cells instead of names. None where a function
    is not calculable."""
    ends = {call.span.start: call.span.end for call in parsed.calls if call.span.start in texts}
    parts: list[str] = []
    at = span.start
    while at < span.end:
        token = parsed.tokens[at]
        text: str | None = token.value
        if at in ends:
            text = texts[at]
        elif token.type == Token.OPERAND and token.subtype == Token.RANGE:
            text = names.rewritten(token.value, position, qualified=qualified)
        elif token.type == Token.FUNC and token.subtype == Token.OPEN:
            # INDIRECT("A1") means a cell of the sheet that it stands on.
            elsewhere = qualified and functions.plain_name(token.value) == "INDIRECT"
            text = token.value.lstrip("@") if is_calculable(token.value) and not elsewhere else None
        if text is None:
            return None
        parts.append(text)
        at = ends.get(at, at + 1)
    return "".join(parts)
