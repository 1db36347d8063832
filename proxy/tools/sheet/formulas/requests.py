"""A call's arguments with their meaning, and the query that it needs. No I/O."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Literal, NamedTuple

from proxy.tools.sheet.formulas.arguments import (
    VALUE_ERROR,
    ArgumentContext,
    ArrayConstant,
    NeedsCalculation,
    Operand,
    as_number,
    as_text,
    evaluate,
)
from proxy.tools.sheet.formulas.calls import FunctionCall, ParsedFormula, TokenSpan
from proxy.tools.sheet.formulas.functions import Parameter, SheetFunction
from proxy.tools.sheet.formulas.references import CellArea
from proxy.tools.sheet.package.cells import CellError, CellValue
from proxy.tools.sheet.parts import PartQuery

Authorized = Literal["yes", "no", "any"]


class PartRequest(NamedTuple):
    """What one call looks up: the part, and which of its offers count, under what conditions."""

    function: SheetFunction
    mpn: str
    manufacturer: str = ""
    distributors: tuple[str, ...] = ()
    quantity: int = 1
    currency: str = "USD"
    authorized: Authorized = "any"
    size: str = ""

    def query(self, *, as_add_in: bool) -> PartQuery:
        """Return the query that gets the part."""
        if as_add_in:
            # The add-in asks for the number alone, and converts no prices: equal queries of its calls are one.
            return PartQuery(self.mpn)
        prices = self.function.result in ("price", "average_price")
        return PartQuery(self.mpn, self.manufacturer, currency=self.currency if prices else "USD")


class InvalidArgument(Exception):  # noqa: N818  (the value is the result, not a failure of the program)
    """An argument is an error value, or of the wrong type: `value` is then the result of the call."""

    def __init__(self, value: CellError) -> None:
        super().__init__(value.code)
        self.value = value


def part_request(
    parsed: ParsedFormula,
    call: FunctionCall,
    context: ArgumentContext,
    calculated: Mapping[int, CellValue],
) -> PartRequest:
    """Evaluate the arguments of a call. `calculated` has values of arguments, by their first token, that need
    calculation. Raises InvalidArgument, NeedsCalculation and OutdatedCell."""
    operands = _operands(parsed, call, context, calculated)
    return PartRequest(
        call.function,
        mpn=_text(context, operands.get("mpn")).strip(),
        manufacturer=_text(context, operands.get("manufacturer")).strip(),
        distributors=_texts(context, operands.get("distributors")),
        quantity=_quantity(context, operands.get("quantity")),
        currency=_text(context, operands.get("currency")).strip().upper() or "USD",
        authorized=_authorized(_text(context, operands.get("authorized"))),
        size=_text(context, operands.get("size")),
    )


def text_arguments(
    parsed: ParsedFormula,
    call: FunctionCall,
    context: ArgumentContext,
    calculated: Mapping[int, CellValue],
) -> dict[Parameter, str]:
    """Return the arguments of a call as text, the left-out ones as "". Raises like `part_request`."""
    operands = _operands(parsed, call, context, calculated)
    return {parameter: _text(context, operands.get(parameter)).strip() for parameter in call.function.parameters}


def _operands(
    parsed: ParsedFormula,
    call: FunctionCall,
    context: ArgumentContext,
    calculated: Mapping[int, CellValue],
) -> dict[Parameter, Operand]:
    if len(call.arguments) > len(call.function.parameters):
        raise InvalidArgument(VALUE_ERROR)
    operands: dict[Parameter, Operand] = {}
    beyond: list[TokenSpan] = []
    for parameter, span in zip(call.function.parameters, call.arguments, strict=False):
        if span.start in calculated:
            operands[parameter] = calculated[span.start]
            continue
        try:
            operands[parameter] = evaluate(parsed, span, context)
        except NeedsCalculation:
            beyond.append(span)
    if beyond:
        raise NeedsCalculation(*beyond)
    return operands


def _text(context: ArgumentContext, operand: Operand) -> str:
    return as_text(_checked(context.scalar(operand)))


def _texts(context: ArgumentContext, operand: Operand) -> tuple[str, ...]:
    values: Sequence[CellValue]
    if isinstance(operand, CellArea):
        values = context.cells.values(operand)
    elif isinstance(operand, ArrayConstant):
        values = [value for row in operand.rows for value in row]
    else:
        values = [context.scalar(operand)]
    return tuple(text for value in values if (text := as_text(_checked(value)).strip()))


def _quantity(context: ArgumentContext, operand: Operand) -> int:
    number = as_number(_checked(context.scalar(operand)))
    if number is None or number < 0 or number.adjusted() > 15:
        raise InvalidArgument(VALUE_ERROR)
    # Excel gives an add-in the nearest whole number; the add-in takes 0 for 1.
    return int(number.quantize(Decimal(1), ROUND_HALF_EVEN)) or 1


def _authorized(text: str) -> Authorized:
    match text.strip()[:1].lower():
        case "y":
            return "yes"
        case "n":
            return "no"
        case _:
            return "any"


def _checked(value: CellValue) -> CellValue:
    if isinstance(value, CellError):
        raise InvalidArgument(value)
    return value
