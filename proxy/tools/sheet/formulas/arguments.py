"""Values of arguments: literals, references, array constants, and simple operations on them. No I/O.

Whatever needs more, above all other functions, is NeedsCalculation: LibreOffice calculates it. Operators are evaluated
with two stacks, without recursion.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal, DecimalException
from typing import NamedTuple

from openpyxl.formula.tokenizer import Token

from proxy.tools.sheet.formulas.calls import ParsedFormula, TokenSpan, parse
from proxy.tools.sheet.formulas.functions import plain_name
from proxy.tools.sheet.formulas.references import CellArea, CellPosition
from proxy.tools.sheet.formulas.workbook import KnownCells
from proxy.tools.sheet.package.cells import CellError, CellValue

VALUE_ERROR = CellError("#VALUE!")

_DIGITS_MAX = 300  # of numbers in operations; a larger one is left to LibreOffice, which calculates with doubles


class NeedsCalculation(Exception):  # noqa: N818  (no error: a signal to calculate elsewhere)
    """Arguments cannot be evaluated here. `spans` are their tokens, in the exception for a whole call."""

    def __init__(self, *spans: TokenSpan) -> None:
        super().__init__()
        self.spans = spans


class ArrayConstant(NamedTuple):
    """Values of `{1,2;3,4}`, row by row."""

    rows: tuple[tuple[CellValue, ...], ...]


Operand = CellValue | CellArea | ArrayConstant


class ArgumentContext(NamedTuple):
    """Where an argument stands: the cell of its formula, the workbook, the values of calls in it by their first token,
    the cell of an array formula's range that the value is for, and whether it is one."""

    formula: CellPosition
    cells: KnownCells
    calls: Mapping[int, CellValue]
    target: CellPosition
    is_array: bool = False

    def scalar(self, operand: Operand) -> CellValue:
        """Return the single value of an operand where a function or operator needs one."""
        if isinstance(operand, CellArea):
            cell = self._element(operand) if self.is_array else operand.intersected(self.formula)
            return VALUE_ERROR if cell is None else self.cells.value(cell)
        if isinstance(operand, ArrayConstant):
            return operand.rows[0][0]
        return operand

    def _element(self, area: CellArea) -> CellPosition | None:
        """Return the cell of an area that an array formula takes for the cell of its range that `target` is."""
        row = area.top if area.top == area.bottom else area.top + self.target.row - self.formula.row
        column = area.left if area.left == area.right else area.left + self.target.column - self.formula.column
        cell = CellPosition(area.sheet, row, column)
        return cell if area.overlaps(cell.area) else None


def evaluate(parsed: ParsedFormula, span: TokenSpan, context: ArgumentContext) -> Operand:
    """Evaluate the tokens of one argument. An empty one is None. Raises NeedsCalculation and OutdatedCell."""
    span = parsed.stripped(span)
    if span.start == span.end:
        return None
    evaluator = _Evaluator(parsed, context)
    evaluator.run(span)
    return evaluator.result()


class _Evaluator:
    """Operator precedence with a stack of operands and one of operators."""

    def __init__(self, parsed: ParsedFormula, context: ArgumentContext) -> None:
        self._parsed = parsed
        self._context = context
        self._operands: list[Operand] = []
        self._operators: list[Token] = []
        self._call_ends = {call.span.start: call.span.end for call in parsed.calls}

    def run(self, span: TokenSpan) -> None:
        position = span.start
        while position < span.end:
            position = self._step(position)

    def result(self) -> Operand:
        while self._operators:
            self._apply(self._operators.pop())
        if len(self._operands) != 1:
            raise NeedsCalculation  # intersections (a space) and unions
        return self._operands[0]

    def _step(self, position: int) -> int:
        """Take the token at a position; return the next position."""
        token = self._parsed.tokens[position]
        if token.type == Token.OPERAND:
            self._operands.append(self._operand(token))
        elif token.type == Token.ARRAY:
            return self._array(position)
        elif token.type == Token.FUNC:
            return self._function(position)
        elif token.type == Token.PAREN:
            self._parenthesis(token)
        elif token.type == Token.OP_POST:
            self._apply(token)
        elif token.type == Token.OP_PRE:
            self._operators.append(token)
        elif token.type == Token.OP_IN:
            self._infix(token)
        elif token.type != Token.WSPACE:
            raise NeedsCalculation
        return position + 1

    def _operand(self, token: Token) -> Operand:
        if token.subtype != Token.RANGE:
            return _literal(token)
        area = self._context.cells.names.resolve(token.value, self._context.formula)
        if area is not None:
            return area
        definition = self._context.cells.names.constant(token.value, self._context.formula)
        if definition is None:
            raise NeedsCalculation
        parsed = parse(definition)
        return evaluate(parsed, parsed.whole, self._context)

    def _function(self, position: int) -> int:
        if position in self._context.calls:
            self._operands.append(self._context.calls[position])
            return self._call_ends[position]
        name, *argument = self._parsed.tokens[position : position + 3]
        # What is typed as @A:A in a dynamic array formula: the cell of its own row, not an element by its place.
        is_range = [token.subtype for token in argument] == [Token.RANGE, Token.CLOSE]
        area = self._operand(argument[0]) if plain_name(name.value) == "SINGLE" and is_range else None
        if not isinstance(area, CellArea):
            raise NeedsCalculation
        cell = area.intersected(self._context.formula)
        self._operands.append(VALUE_ERROR if cell is None else cell.area)
        return position + 3

    def _array(self, position: int) -> int:
        rows: list[list[CellValue]] = [[]]
        negative = False
        while (token := self._parsed.tokens[position := position + 1]).subtype != Token.CLOSE:
            if token.type == Token.OPERAND:
                value = _literal(token)
                rows[-1].append(-value if negative and isinstance(value, Decimal) else value)
                negative = False
            elif token.type == Token.OP_PRE:
                negative ^= token.value == "-"
            elif token.subtype == Token.ROW:
                rows.append([])
        self._operands.append(ArrayConstant(tuple(map(tuple, rows))))
        return position + 1

    def _parenthesis(self, token: Token) -> None:
        if token.subtype == Token.OPEN:
            self._operators.append(token)
            return
        while self._operators and self._operators[-1].subtype != Token.OPEN:
            self._apply(self._operators.pop())
        self._operators.pop()  # calls.parse has checked that parentheses match

    def _infix(self, token: Token) -> None:
        precedence = _PRECEDENCE.get(token.value, 0)
        while self._operators and _stronger(self._operators[-1], precedence):
            self._apply(self._operators.pop())
        self._operators.append(token)

    def _apply(self, token: Token) -> None:
        binary = token.type == Token.OP_IN
        if len(self._operands) < 1 + binary:
            raise NeedsCalculation
        right = self._context.scalar(self._operands.pop())
        if binary:
            left = self._context.scalar(self._operands.pop())
            self._operands.append(_operation(token.value, left, right))
        elif token.type == Token.OP_POST:
            self._operands.append(_operation("/", right, Decimal(100)))
        elif token.value == "-":
            self._operands.append(_operation("-", Decimal(0), right))
        else:
            self._operands.append(right)


_PRECEDENCE = {"*": 3, "/": 3, "+": 2, "-": 2, "&": 1}


def _stronger(operator: Token, precedence: int) -> bool:
    if operator.subtype == Token.OPEN:
        return False
    return operator.type == Token.OP_PRE or _PRECEDENCE.get(operator.value, 0) >= precedence


_ARITHMETIC: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": Decimal.__add__,
    "-": Decimal.__sub__,
    "*": Decimal.__mul__,
    "/": Decimal.__truediv__,
}


def _operation(operator: str, left: CellValue, right: CellValue) -> CellValue:
    for operand in (left, right):
        if isinstance(operand, CellError):
            return operand
    if operator == "&":
        return as_text(left) + as_text(right)
    if operator not in _ARITHMETIC:
        raise NeedsCalculation
    first, second = as_number(left), as_number(right)
    if first is None or second is None:
        return VALUE_ERROR
    if operator == "/" and not second:
        return CellError("#DIV/0!")
    try:
        result = _ARITHMETIC[operator](first, second)
    except DecimalException as error:
        raise NeedsCalculation from error
    if abs(result.adjusted()) > _DIGITS_MAX:
        raise NeedsCalculation
    return result


def _literal(token: Token) -> CellValue:
    if token.subtype == Token.TEXT:
        return str(token.value[1:-1].replace('""', '"'))
    if token.subtype == Token.LOGICAL:
        return bool(token.value.upper() == "TRUE")
    if token.subtype == Token.ERROR:
        return CellError(token.value)
    if token.subtype == Token.NUMBER and (number := as_number(token.value)) is not None:
        return number
    raise NeedsCalculation


def as_text(value: CellValue) -> str:
    """Return a value as text, as Excel gives it to a function that wants text: 1868783 without a decimal point."""
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case Decimal():
            # Excel has 15 digits; a double's 17 in the file are noise beyond them.
            text = f"{value:.15g}" if abs(value.adjusted()) > _DIGITS_MAX else f"{Decimal(f'{value:.15g}'):f}"
            return text.rstrip("0").rstrip(".") if "." in text and "e" not in text.lower() else text
        case CellError():
            return value.code
        case str():
            return value


def as_number(value: CellValue) -> Decimal | None:
    """Return a value as a number, an empty one as 0; None if it is none."""
    match value:
        case None:
            return Decimal(0)
        case bool():
            return Decimal(int(value))
        case Decimal():
            return value
        case str():
            try:
                number = Decimal(value.strip())
            except DecimalException:
                return None
            return number if number.is_finite() and "_" not in value else None  # Decimal reads 1_000, Excel does not
    return None
