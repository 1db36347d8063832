"""JMESPath expressions of assumptions, with a few functions that JMESPath lacks.

https://jmespath.org/specification.html; the functions below are the only additions.
"""

import base64
import itertools
import json
import math
import re
from functools import cache
from typing import Any, cast

import jmespath
from jmespath import exceptions, functions, parser


class _Functions(functions.Functions):
    """Functions that expressions may call, beside the standard ones."""

    @functions.signature({"types": ["array-number", "array-string"]})
    def _func_is_sorted(self, values: list[Any]) -> bool:
        """Whether the values ascend; equal neighbors are allowed."""
        return all(first <= second for first, second in itertools.pairwise(values))

    @functions.signature({"types": ["string"]}, {"types": ["string"]})
    def _func_before(self, text: str, separator: str) -> str:
        """Return the text before the first separator; all of it where there is none."""
        return text.partition(separator)[0]

    @functions.signature({"types": ["number"]}, {"types": ["number"]})
    def _func_minus(self, number: float, subtrahend: float) -> float:
        """Return the difference of two numbers."""
        return number - subtrahend

    @functions.signature({"types": ["string"]})
    def _func_jwt_header(self, token: str) -> Any:
        """Return the header of a JWT; null for another text."""
        return _decoded_part(token, 0)

    @functions.signature({"types": ["string"]})
    def _func_jwt_claims(self, token: str) -> Any:
        """Return the claims of a JWT; null for another text."""
        return _decoded_part(token, 1)

    @functions.signature({"types": ["string"]}, {"types": ["string"]})
    def _func_matches(self, text: str, pattern: str) -> bool:
        """Whether a regular expression matches the whole text."""
        return re.fullmatch(pattern, text) is not None

    @functions.signature({"types": ["array-number"]})
    def _func_product(self, factors: list[float]) -> float:
        """Return the product of the numbers; 1 of none."""
        return math.prod(factors)

    @functions.signature({"types": ["array"]})
    def _func_unique(self, values: list[Any]) -> list[Any]:
        """Return the values without repetitions, in the order of their first occurrence."""
        if all(isinstance(value, str) for value in values):
            return list(dict.fromkeys(values))
        return [value for index, value in enumerate(values) if value not in values[:index]]


def _decoded_part(token: str, index: int) -> Any:
    """Return the JSON of a part of a JWT; null for another text."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        return json.loads(base64.urlsafe_b64decode(parts[index] + "=="))
    except ValueError:
        return None


_OPTIONS = jmespath.Options(custom_functions=_Functions())


@cache
def compile_expression(text: str) -> parser.ParsedResult:
    """Parse an expression. Raises ValueError that names the mistake."""
    try:
        return jmespath.compile(text)
    except exceptions.JMESPathError as error:
        # Its messages go on with a drawing of the place in further lines.
        raise ValueError(str(error).splitlines()[0].removesuffix(", for expression:")) from None


def evaluate(expression: str, value: dict[str, Any]) -> Any:
    """Return what an expression yields. Raises ValueError where a function gets a value that it does not take."""
    try:
        return cast(Any, compile_expression(expression).search(value, _OPTIONS))
    except exceptions.JMESPathError as error:
        raise ValueError(str(error).splitlines()[0]) from None
