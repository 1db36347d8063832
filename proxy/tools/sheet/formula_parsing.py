"""Parses formulas with calls of the add-in's functions, by openpyxl's tokenizer. No I/O."""

import re
from collections.abc import Mapping

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError
from openpyxl.utils.cell import range_boundaries

from proxy.tools.sheet.formulas import FUNCTIONS, PREFIX, Area, Call, FormulaError
from proxy.tools.sheet.quantities import Cell

LENGTH_MAX = 16_384  # characters; Excel allows 8192 as they are typed
AREA_MAX = 1000  # cells of a range of distributors

_FILE_PREFIXES = ("_XLL.", "_XLFN.", "_XLUDF.")  # what Excel writes before the names of add-ins' functions
_REFERENCE = re.compile(r"\$?[A-Za-z]{1,3}\$?\d{1,7}(?::\$?[A-Za-z]{1,3}\$?\d{1,7})?")


def parse(sheet: str, row: int, column: int, formula: str, sheets: Mapping[str, str]) -> Call:
    """Parse a formula; `sheets` are the names of sheets by their lower case. Raises FormulaError."""
    if not formula or len(formula) > LENGTH_MAX:
        raise FormulaError("an array formula of several cells, or longer than Excel allows")
    try:
        tokens = [token for token in Tokenizer(formula).items if token.type != Token.WSPACE]
    except (TokenizerError, IndexError):  # an IndexError where a closing parenthesis is too much
        raise FormulaError("the formula cannot be read") from None  # its message has the formula
    function = _function(tokens)
    parameters = FUNCTIONS[function]
    groups = _groups(tokens[1:-1])
    if len(groups) > len(parameters):
        raise FormulaError(f"{function} has {len(parameters)} arguments at most")
    arguments: list[list[Cell]] = []
    areas: dict[int, Area] = {}
    for index, group in enumerate(groups):
        area = _area(group, sheet, sheets)
        values = _literal(group) if area is None else []
        is_several = area is not None and len([*area.cells()]) > 1 and parameters[index] != "distributors"
        if values is None or is_several:
            raise FormulaError(f"argument {index + 1} is neither a literal nor a cell")
        arguments.append(values)
        if area is not None:
            areas[index] = area
    return Call(sheet, row, column, function, formula, arguments, areas)


def _groups(tokens: list[Token]) -> list[list[Token]]:
    """Return the tokens of each argument: none of NAME(), two empty ones of NAME(,)."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.type == Token.SEP:
            groups.append([])
        else:
            groups[-1].append(token)
    return [] if groups == [[]] else groups


def _function(tokens: list[Token]) -> str:
    """Return the name of the function that a formula is one call of, without its prefix."""
    names = [_plain_name(token.value) for token in tokens if token.type == Token.FUNC and token.subtype == Token.OPEN]
    is_one = len(names) == 1 and tokens[0].subtype == Token.OPEN and tokens[-1].subtype == Token.CLOSE
    if not is_one or names[0].removeprefix(PREFIX) not in FUNCTIONS:
        raise FormulaError("the formula is not one call of a function of the add-in")
    return names[0].removeprefix(PREFIX)


def _plain_name(token: str) -> str:
    """Return a function's name in upper case from its token, `@_xll.NAME(` or `[1]!Name(`."""
    name = token.rstrip("(").rpartition("!")[2].lstrip("@").upper()
    while name.startswith(_FILE_PREFIXES):
        name = name.partition(".")[2]
    return name


def _literal(group: list[Token]) -> list[Cell] | None:
    if not group:
        return []
    [token, *more] = group
    if more or token.type != Token.OPERAND or token.subtype not in (Token.TEXT, Token.NUMBER, Token.LOGICAL):
        return None
    return [token.value[1:-1].replace('""', '"') if token.subtype == Token.TEXT else token.value]


def _area(group: list[Token], sheet: str, sheets: Mapping[str, str]) -> Area | None:
    """Return the cells that an argument refers to; None for whole columns, names, other workbooks and literals."""
    if len(group) != 1 or group[0].subtype != Token.RANGE:
        return None
    qualifier, _, reference = group[0].value.rpartition("!")
    if qualifier.startswith("'") and qualifier.endswith("'"):
        qualifier = qualifier[1:-1].replace("''", "'")
    own = sheets.get(qualifier.casefold()) if qualifier else sheet
    if own is None or not _REFERENCE.fullmatch(reference):
        return None
    left, top, right, bottom = range_boundaries(reference.replace("$", ""))
    area = Area(own, min(left, right), min(top, bottom), max(left, right), max(top, bottom))
    return area if (area.right - area.left + 1) * (area.bottom - area.top + 1) <= AREA_MAX else None
