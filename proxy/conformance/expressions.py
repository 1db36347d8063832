"""JMESPath expressions of assumptions, with a few functions that JMESPath lacks.

https://jmespath.org/specification.html; the functions below are the only additions.
"""

import itertools
import math
import re
from typing import Any, cast

import jmespath
from jmespath import exceptions, functions, parser


class _Functions(functions.Functions):
    """Functions that expressions may call, beside the standard ones."""

    @functions.signature({"types": ["array-number", "array-string"]})
    def _func_is_sorted(self, values: list[Any]) -> bool:
        """Whether the values ascend; equal neighbours are allowed."""
        return all(first <= second for first, second in itertools.pairwise(values))

    @functions.signature({"types": ["string"]}, {"types": ["string"]})
    def _func_matches(self, text: str, pattern: str) -> bool:
        """Whether a regular expression matches the whole text."""
        return re.fullmatch(pattern, text) is not None

    @functions.signature({"types": ["array-number"]})
    def _func_product(self, factors: list[float]) -> float:
        """The product of the numbers; 1 of none."""
        return math.prod(factors)

    @functions.signature({"types": ["array"]})
    def _func_unique(self, values: list[Any]) -> list[Any]:
        """The values without repetitions, in the order of their first occurrence."""
        return [value for index, value in enumerate(values) if value not in values[:index]]


_OPTIONS = jmespath.Options(custom_functions=_Functions())


def compile_expression(text: str) -> parser.ParsedResult:
    """Parse an expression. Raises ValueError that names the mistake."""
    try:
        return jmespath.compile(text)
    except exceptions.JMESPathError as error:
        # Its messages go on with a drawing of the place in further lines.
        raise ValueError(str(error).splitlines()[0]) from None


def evaluate(expression: parser.ParsedResult, value: dict[str, Any]) -> Any:
    """Return what the expression yields. Raises ValueError where a function gets a value that it does not take."""
    try:
        return cast(Any, expression.search(value, _OPTIONS))
    except exceptions.JMESPathError as error:
        raise ValueError(str(error).splitlines()[0]) from None
