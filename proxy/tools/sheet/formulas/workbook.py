"""The formulas of a workbook, and the values of the cells that the add-ins' functions read.

Two passes over the file: one for formulas, one for values, of which only those in arguments' areas are kept.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from openpyxl.formula.tokenizer import Token
from openpyxl.utils import FORMULAE

from proxy import errors
from proxy.tools.sheet.formulas import calls, functions
from proxy.tools.sheet.formulas.dependencies import FormulaDependencies, FormulaLinks
from proxy.tools.sheet.formulas.references import CellArea, CellPosition, WorkbookNames
from proxy.tools.sheet.package.cells import Cell, CellValue, Formula

# What these read is known only when they are calculated.
_READ_ANYTHING = ("INDIRECT", "OFFSET")
# LibreOffice calculates a function that it does not have as #NAME?, which IFERROR hides: only formulas are given to it
# whose functions are these. What openpyxl lists stands in files as it is; newer functions have the prefix _xlfn. there,
# and LibreOffice knows them by nothing else. Tried with LibreOffice 7.4.
_NEWER = """
    ACOT ACOTH AGGREGATE ARABIC BASE BETA.DIST BETA.INV BINOM.DIST BINOM.INV BITAND BITLSHIFT BITOR BITRSHIFT BITXOR
    CEILING.MATH CEILING.PRECISE CHISQ.DIST CHISQ.DIST.RT CHISQ.INV CHISQ.INV.RT CHISQ.TEST COMBINA CONCAT
    CONFIDENCE.NORM CONFIDENCE.T COT COTH COVARIANCE.P COVARIANCE.S CSC CSCH DAYS DECIMAL ERF.PRECISE ERFC.PRECISE
    EXPON.DIST F.DIST F.DIST.RT F.INV F.INV.RT F.TEST FLOOR.MATH FLOOR.PRECISE FORECAST.LINEAR GAMMA GAMMA.DIST
    GAMMA.INV GAMMALN.PRECISE GAUSS HYPGEOM.DIST IFNA IFS ISOWEEKNUM LOGNORM.DIST LOGNORM.INV MAXIFS MINIFS MODE.MULT
    MODE.SNGL MUNIT NEGBINOM.DIST NORM.DIST NORM.INV NORM.S.DIST NORM.S.INV NUMBERVALUE PDURATION PERCENTILE.EXC
    PERCENTILE.INC PERCENTRANK.EXC PERCENTRANK.INC PERMUTATIONA PHI POISSON.DIST QUARTILE.EXC QUARTILE.INC RANK.AVG
    RANK.EQ RRI SEC SECH SKEW.P STDEV.P STDEV.S SWITCH T.DIST T.DIST.2T T.DIST.RT T.INV T.INV.2T T.TEST TEXTJOIN
    UNICHAR UNICODE VAR.P VAR.S WEIBULL.DIST XOR Z.TEST
"""
_MISSING = "BAHTTEXT ECMA.CEILING PHONETIC CUBEKPIMEMBER CUBEMEMBER CUBEMEMBERPROPERTY CUBERANKEDMEMBER CUBESET"
# These ask other programs or the network, or about the file, of which the copy has little.
_UNSAFE = "CALL CELL CUBESETCOUNT CUBEVALUE DDE GETPIVOTDATA INFO REGISTER.ID RTD WEBSERVICE"
_CALCULABLE = (FORMULAE - set(f"{_MISSING} {_UNSAFE}".split())) | {f"_XLFN.{name}" for name in _NEWER.split()}


def is_calculable(function: str) -> bool:
    """Return true if LibreOffice has a function, as the token of its opening parenthesis names it."""
    return function.rstrip("(").lstrip("@").upper() in _CALCULABLE


class CallCell(NamedTuple):
    """A cell with calls of the add-ins' functions. `fills`: its own cell, or an array formula's range. An array formula
    of one cell differs from another formula: it takes the first element of a range, not that of its own row."""

    position: CellPosition
    parsed: calls.ParsedFormula
    fills: CellArea
    cached: CellValue
    is_array: bool

    @property
    def targets(self) -> list[CellPosition]:
        """The cells that get a value, the formula's own first."""
        return [self.position] if self.fills.size == 1 else list(self.fills.cells())


_TARGETS_MAX = 1 << 16  # cells of an array formula's range that get values


class WorkbookFormulas:
    """Formulas of a workbook: those with calls, and what all others read."""

    def __init__(self, names: WorkbookNames) -> None:
        self.names = names
        self.calls: dict[CellPosition, CallCell] = {}
        self.unreadable: dict[CellPosition, str] = {}
        """Cells whose formulas are missing, cannot be parsed, or call functions that no add-in has, and why."""
        self.links: dict[CellPosition, FormulaLinks] = {}
        self._parser = calls.FormulaParser()

    @cached_property
    def dependencies(self) -> FormulaDependencies:
        """What reads what, after all cells have been added."""
        return FormulaDependencies(self.links)

    def add(self, sheet: str, cell: Cell) -> None:
        """Take one cell."""
        if cell.formula is None or cell.formula.kind == "table":
            return
        position = CellPosition(sheet, cell.row, cell.column)
        if not cell.formula.text:
            if cell.formula.kind == "shared":
                self.unreadable[position] = "the cell that this formula is shared with is missing; enter it again"
            return
        has_calls = functions.may_contain(cell.formula.text)
        try:
            parsed = self._parser.parse(cell.formula.text)
        except calls.FormulaError as error:
            if has_calls:
                self.unreadable[position] = str(error)
            return
        fills = self._filled_area(position, cell.formula)
        self.links[position] = self._linked(parsed, position, fills)
        if parsed.unknown:
            self.unreadable[position] = f"no add-in has the function {parsed.unknown[0]}"
        elif cell.formula.kind == "array" and fills.size == 1 and self._repeats_a_call(parsed, position):
            self.unreadable[position] = (
                "the array formula needs a function for each cell of a range: give each a cell of its own"
            )
        elif parsed.calls:
            self.calls[position] = CallCell(position, parsed, fills, cell.value, cell.formula.kind == "array")

    def _filled_area(self, position: CellPosition, formula: Formula) -> CellArea:
        own = position.area
        if formula.kind != "array" or formula.reference is None:
            return own
        area = self.names.resolve(formula.reference, position)
        if area is None or (area.top, area.left) != (position.row, position.column):
            return own
        if area.size > _TARGETS_MAX:
            raise errors.SheetError(f"{position}: the array formula fills more than {_TARGETS_MAX:,} cells")
        return area

    def _repeats_a_call(self, parsed: calls.ParsedFormula, position: CellPosition) -> bool:
        """Return true if Excel evaluates a call for each cell of a range, as in SUM(price of A2:A9): a call has one
        value here for each cell that the formula fills."""
        for call in parsed.calls if not parsed.is_one_call else ():
            for parameter, span in zip(call.function.parameters, call.arguments, strict=False):
                start, end = parsed.stripped(span)
                if parameter == "distributors" or end != start + 1:
                    continue
                area = self.names.resolve(parsed.tokens[start].value, position)
                if parsed.tokens[start].subtype == Token.RANGE and area is not None and area.one_cell is None:
                    return True
        return False

    def _linked(self, parsed: calls.ParsedFormula, position: CellPosition, fills: CellArea) -> FormulaLinks:
        reads, of_all, calculable = [], False, True
        for token in parsed.tokens:
            if token.type == Token.OPERAND and token.subtype == Token.RANGE:
                area = self.names.resolve(token.value, position)
                if area is not None:
                    reads.append(area)
                elif self.names.constant(token.value, position) is None:
                    calculable = False
                    of_all |= self.names.is_opaque(token.value, position)
            elif token.type == Token.FUNC and token.subtype == Token.OPEN:
                name = functions.plain_name(token.value)
                calculable &= name in functions.FUNCTIONS or is_calculable(token.value)
                of_all |= name in _READ_ANYTHING or ":" in name
        return FormulaLinks(tuple(reads), fills, of_all, calculable)


class LoadedCells:
    """Values of the cells in some areas."""

    def __init__(self, areas: Iterable[CellArea]) -> None:
        self.areas: dict[str, set[tuple[int, int, int, int]]] = defaultdict(set)  # by sheet
        self._rows: dict[str, dict[int, dict[int, CellValue]]] = defaultdict(lambda: defaultdict(dict))
        for area in areas:
            self.areas[area.sheet].add((area.left, area.right, area.top, area.bottom))

    def load(self, sheet: str, rows: Iterable[tuple[int, Sequence[Cell]]]) -> None:
        """Take the cells of one sheet that stand in its areas. Rows ascend."""
        # Areas that are open at the current row, by column: a long column is one, and rows come in order.
        starting = sorted(self.areas[sheet], key=lambda bounds: bounds[2], reverse=True)
        last_rows: dict[int, int] = {}
        wide: list[tuple[int, int, int]] = []
        for number, cells in rows:
            while starting and starting[-1][2] <= number:
                left, right, _, bottom = starting.pop()
                if right - left > 64:  # whole rows
                    wide.append((left, right, bottom))
                    continue
                for column in range(left, right + 1):
                    last_rows[column] = max(bottom, last_rows.get(column, 0))
            wide = [bounds for bounds in wide if bounds[2] >= number]
            for cell in cells:
                if last_rows.get(cell.column, 0) >= number or any(
                    left <= cell.column <= right for left, right, _ in wide
                ):
                    self._rows[sheet][number][cell.column] = cell.value

    def value(self, cell: CellPosition) -> CellValue:
        """Return the value of one cell; None if it is empty."""
        rows = self._rows.get(cell.sheet, {})
        return rows.get(cell.row, {}).get(cell.column)

    def used(self, area: CellArea) -> Iterator[CellPosition]:
        """Yield the cells of an area that stand in the file, row by row."""
        rows = self._rows.get(area.sheet, {})
        numbers: Iterable[int] = range(area.top, area.bottom + 1)
        if area.bottom - area.top > len(rows):
            numbers = sorted(number for number in rows if area.top <= number <= area.bottom)
        for number in numbers:
            columns = rows.get(number, {})
            for column in sorted(columns):
                if area.left <= column <= area.right:
                    yield CellPosition(area.sheet, number, column)


class OutdatedCell(Exception):  # noqa: N818  (no error: a signal to wait)
    """The value of a cell is not known yet: it depends on calls that have no value yet."""


class KnownCells:
    """Values of cells as of now: those in the file, where no call changes them, and new ones."""

    def __init__(self, loaded: LoadedCells, names: WorkbookNames, outdated: Collection[CellPosition]) -> None:
        """`outdated`: cells whose values in the file are not to be used."""
        self._loaded = loaded
        self._outdated = outdated
        self.names = names
        self.results: dict[CellPosition, CellValue] = {}

    def value(self, cell: CellPosition) -> CellValue:
        """Return the value of a cell. Raises OutdatedCell."""
        if cell in self.results:
            return self.results[cell]
        if cell in self._outdated:
            raise OutdatedCell
        return self._loaded.value(cell)

    def values(self, area: CellArea) -> list[CellValue]:
        """Return the values of an area's cells that are in the file, row by row. Raises OutdatedCell."""
        return [self.value(cell) for cell in self._loaded.used(area)]


def argument_areas(cells: Mapping[CellPosition, CallCell], names: WorkbookNames) -> Iterator[CellArea]:
    """Yield the areas that the arguments of all calls refer to."""
    for position, cell in cells.items():
        for call in cell.parsed.calls:
            for token in cell.parsed.tokens[call.span.start : call.span.end]:
                if token.type == Token.OPERAND and token.subtype == Token.RANGE:
                    area = names.resolve(token.value, position)
                    if area is not None:
                        yield area
