"""Expressions of assumptions: the added functions, and errors of one line."""

from typing import Any

import pytest

from proxy.tools.conform import expressions


def _evaluate(text: str, value: dict[str, Any]) -> Any:
    return expressions.evaluate(expressions.compile_expression(text), value)


@pytest.mark.parametrize(
    "expression, value, expected",
    [
        ("is_sorted(a)", [1, 1, 2.5], True),
        ("is_sorted(a)", [2, 1], False),
        ("is_sorted(a)", ["a", "b"], True),
        ("is_sorted(a)", [], True),
        ("matches(a, '[0-9]+')", "12", True),
        ("matches(a, '[0-9]+')", "12 ", False),
        ("unique(a)", ["b", "a", "b"], ["b", "a"]),
        ("product(a)", [134.21, 0.849985], 114.07648685000001),
        ("length(a)", [1, 2], 2),
        ("before(a, ';')", "application/json; charset=utf-8", "application/json"),
        ("before(a, ';')", "application/json", "application/json"),
        ("minus(a[0], a[1])", [3, 1.5], 1.5),
        ("jwt_header(a).alg", "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2lnbmF0dXJl", "HS256"),
        ("jwt_claims(a)", "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2lnbmF0dXJl", {"exp": 1}),
        ("jwt_claims(a)", "not.a.token", None),
        ("jwt_claims(a)", "an opaque token", None),
    ],
)
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
