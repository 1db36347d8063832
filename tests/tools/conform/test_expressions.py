"""Expressions of assumptions: the added functions, and errors of one line."""

from typing import Any

import pytest
from support import cases

from proxy.tools.conform import expressions


def _evaluate(text: str, value: dict[str, Any]) -> Any:
    return expressions.evaluate(text, value)


@cases.parametrize("expression, value, expected")
def test_an_expression_yields(expression: str, value: Any, expected: Any) -> None:
    assert _evaluate(expression, {"a": value}) == expected


def test_a_missing_value_is_null() -> None:
    assert _evaluate("a.b.c[0]", {"a": {}}) is None


def test_a_function_of_a_value_that_it_does_not_take_is_an_error_of_one_line() -> None:
    with pytest.raises(ValueError, match=r"is_sorted\(\)") as error:
        _evaluate("is_sorted(a)", {"a": None})
    assert "\n" not in str(error.value)


def test_an_expression_with_a_mistake_is_an_error_of_one_line() -> None:
    with pytest.raises(ValueError, match="column 2, token") as error:
        expressions.compile_expression("a[[")
    assert "\n" not in str(error.value)
