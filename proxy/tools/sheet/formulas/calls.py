"""Calls of the add-ins' functions in a formula's tokens, and formulas with calls replaced by values.

openpyxl's tokenizer divides the text; nothing here reads it by other means. No recursion: formulas may be nested as
deeply as their length allows.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError

from proxy.tools.sheet.formulas import functions
from proxy.tools.sheet.package.cells import CellError, CellValue

# Excel allows 8192 characters as they are typed; in the file a function's name has a prefix. Longer ones are made to
# take long: the effort grows with the square.
LENGTH_MAX = 16_384
PATTERNS_MAX = 1000  # formulas that are remembered; a workbook has far fewer in its columns
TOKENS_MAX = 1000  # tokens that are remembered: the formulas of one row refer to the same cells

# What differs between the rows of a column that was filled down: row numbers, and what looks like one.
_ROWS = re.compile(r"(?<=[A-Za-z$])([0-9]+)(?![\w.(])", re.ASCII)


class FormulaError(Exception):
    """A formula cannot be parsed. The message says why, without the formula: it may contain a client secret."""


class TokenSpan(NamedTuple):
    """Tokens from `start` up to, not including, `end`."""

    start: int
    end: int


class FunctionCall(NamedTuple):
    """Call of one of the add-ins' functions: its tokens, parentheses included, and those of each argument."""

    function: functions.SheetFunction
    span: TokenSpan
    arguments: tuple[TokenSpan, ...]


class ParsedFormula(NamedTuple):
    """Tokens of a formula, the calls in it, inner ones first, and names of functions that no add-in has."""

    tokens: Sequence[Token]
    calls: tuple[FunctionCall, ...]
    unknown: tuple[str, ...]

    @property
    def whole(self) -> TokenSpan:
        """All tokens."""
        return TokenSpan(0, len(self.tokens))

    @property
    def is_one_call(self) -> bool:
        """True if the formula is one call and nothing else: its value is that of the call."""
        return bool(self.calls) and self.stripped(self.whole) == self.calls[-1].span

    def stripped(self, span: TokenSpan) -> TokenSpan:
        """Return a span without white space at its ends."""
        start, end = span
        while start < end and self.tokens[start].type == Token.WSPACE:
            start += 1
        while start < end and self.tokens[end - 1].type == Token.WSPACE:
            end -= 1
        return TokenSpan(start, end)


class _OpenParenthesis:
    """A parenthesis or brace that is not closed yet, and the arguments before the current token."""

    def __init__(self, start: int, function: functions.SheetFunction | None) -> None:
        self.start = start
        self.function = function
        self.arguments: list[TokenSpan] = []
        self.argument_start = start + 1

    def end_argument(self, position: int) -> None:
        """End the current argument before the token at `position`."""
        self.arguments.append(TokenSpan(self.argument_start, position))
        self.argument_start = position + 1


class FormulaParser:
    """Parses formulas; those that differ in nothing but row numbers only once, because the tokenizer takes long."""

    def __init__(self) -> None:
        self._patterns: dict[tuple[str, ...], _FormulaPattern] = {}

    def parse(self, text: str) -> ParsedFormula:
        """Parse a formula without its `=`. Raises FormulaError."""
        pieces = _ROWS.split(text)
        fixed = tuple(pieces[::2])
        pattern = self._patterns.get(fixed)
        if pattern is not None and len(text) <= LENGTH_MAX:
            return pattern.parsed(pieces[1::2])
        parsed = parse(text)
        if len(self._patterns) < PATTERNS_MAX:
            formats = [_format(token.value) for token in parsed.tokens]
            # Not where the tokens are those of a formula inside a text, or divide what looks like a row number.
            if "".join(formats) == _format(text):
                self._patterns[fixed] = _FormulaPattern(parsed, formats)
        return parsed


def _format(text: str) -> str:
    return _ROWS.sub("%s", text.replace("%", "%%"))


class _FormulaPattern:
    """A parsed formula that other row numbers can be put into.

    Neither where tokens end nor their types depend on which digits stand there, and no function's name has any.
    """

    def __init__(self, parsed: ParsedFormula, formats: Sequence[str]) -> None:
        self._parsed = parsed
        self._tokens: list[tuple[int, str, slice]] = []  # with row numbers: position, format, which of the numbers
        end = 0
        for position, (token, written) in enumerate(zip(parsed.tokens, formats, strict=True)):
            start, end = end, end + len(_ROWS.findall(token.value))
            if start < end:
                self._tokens.append((position, written, slice(start, end)))

    def parsed(self, rows: Sequence[str]) -> ParsedFormula:
        """Return the formula with these row numbers."""
        tokens = list(self._parsed.tokens)
        for position, written, numbers in self._tokens:
            token = tokens[position]
            tokens[position] = _token(written % tuple(rows[numbers]), token.type, token.subtype)
        return self._parsed._replace(tokens=tuple(tokens))


@lru_cache(TOKENS_MAX)
def _token(value: str, kind: str, subtype: str) -> Token:
    """Return a token. Equal ones of formulas beside each other are one object: a workbook has ten thousands."""
    return Token(value, kind, subtype)


def parse(text: str) -> ParsedFormula:
    """Parse a formula without its `=`. Raises FormulaError."""
    if len(text) > LENGTH_MAX:
        raise FormulaError("the formula is longer than Excel allows")
    tokens = _exported(_tokens(text))
    open_parentheses: list[_OpenParenthesis] = []
    calls: list[FunctionCall] = []
    unknown: list[str] = []
    for position, token in enumerate(tokens):
        if token.subtype == Token.OPEN:
            function = _function(token, unknown) if token.type == Token.FUNC else None
            open_parentheses.append(_OpenParenthesis(position, function))
        elif token.subtype == Token.CLOSE:
            if not open_parentheses:
                raise FormulaError("the formula has a closing parenthesis too many")
            opened = open_parentheses.pop()
            if opened.function:
                calls.append(_call(tokens, opened, opened.function, position))
        elif token.subtype == Token.ARG and open_parentheses:
            open_parentheses[-1].end_argument(position)
    if open_parentheses:
        raise FormulaError("the formula lacks a closing parenthesis")
    return ParsedFormula(tokens, tuple(calls), tuple(unknown))


def _tokens(text: str) -> list[Token]:
    try:
        return list(Tokenizer("=" + text).items)
    except (TokenizerError, IndexError):  # an IndexError where a closing parenthesis is too much
        raise FormulaError("the formula cannot be parsed") from None  # its message has the formula


def _exported(tokens: list[Token]) -> list[Token]:
    """Return the tokens of the formula that Google Sheets has exported, or else the same tokens.

    Functions of scripts stand in the file as text, with the last value: IFERROR(__xludf.DUMMYFUNCTION("NAME(A1)"),1).
    """
    values = [token.value for token in tokens[:2]]
    if [functions.plain_name(value) for value in values] != ["IFERROR", "DUMMYFUNCTION"] or len(tokens) < 3:
        return tokens
    exported = tokens[2]
    return _tokens(exported.value[1:-1].replace('""', '"')) if exported.subtype == Token.TEXT else tokens


def _function(token: Token, unknown: list[str]) -> functions.SheetFunction | None:
    name = functions.plain_name(token.value)
    if name not in functions.FUNCTIONS and name.startswith(functions.PREFIXES):
        unknown.append(name)
    return functions.FUNCTIONS.get(name)


def _call(
    tokens: Sequence[Token], opened: _OpenParenthesis, function: functions.SheetFunction, close: int
) -> FunctionCall:
    inside = tokens[opened.start + 1 : close]
    if any(token.type != Token.WSPACE for token in inside):  # NAME() has no argument, NAME(,) two empty ones
        opened.end_argument(close)
    return FunctionCall(function, TokenSpan(opened.start, close + 1), tuple(opened.arguments))


def literal(value: CellValue) -> str:
    """Return a value as it stands in a formula."""
    match value:
        case None:
            return '""'
        case bool():
            return "TRUE" if value else "FALSE"
        case Decimal():
            return f"{value:f}"
        case CellError():
            return value.code
        case str():
            return '"' + value.replace('"', '""') + '"'
