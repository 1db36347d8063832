"""Tests of exact equality, including values that Python considers equal and values that few libraries write."""

import itertools
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from support import cases, v3_responses

from proxy.tools.compare.judging import equality

ALL_DIFFERENT = [
    *(True, False, None, 0, 1, 10, 10**25, -(10**25)),
    *(Decimal("1"), Decimal("1.0"), Decimal("1.00"), Decimal("1E+1"), Decimal("10"), Decimal("-0"), Decimal("0")),
    *("1", "1.0", "d1", "true", "", "\ud800", "\ud801", "Decimal('1')"),
    *([], {}, [1], [True], [[1]], ["1"], [1, 1], {"a": 1}, {"a": "1"}, {"a": [1]}, {"b": 1}, {"a": 1, "b": 1}),
    *({"\ud800": 1}, {"a": "\ud800"}, {"a": 10**25}),
]


@pytest.mark.parametrize("around", [lambda value: value, lambda value: [value], lambda value: {"x": [0, value]}])
def test_values_with_different_json_are_unequal(around: Any) -> None:
    for baseline, candidate in itertools.combinations(map(around, ALL_DIFFERENT), 2):
        assert not equality.same(baseline, candidate)
        assert equality.canonical(baseline) != equality.canonical(candidate)


@pytest.mark.parametrize("inner", ["a", "\ud800", 10**25, Decimal("1.0")])
def test_key_order_is_ignored(inner: Any) -> None:
    baseline, candidate = {"a": {"x": inner, "y": 1}, "b": 2}, {"b": 2, "a": {"y": 1, "x": inner}}
    assert equality.same(baseline, candidate)
    assert equality.canonical(baseline) == equality.canonical(candidate)


@given(v3_responses.ANY_JSON, v3_responses.ANY_JSON)
def test_values_are_equal_exactly_if_their_canonical_forms_are(baseline: Any, candidate: Any) -> None:
    assert equality.same(baseline, candidate) == (equality.canonical(baseline) == equality.canonical(candidate))


@pytest.mark.parametrize(
    "baseline,candidate",
    [
        *cases.of(__file__, "equivalent_spellings_are_equal"),
        ("1" * 40 + ".0", "1" * 40),
    ],
)
def test_equivalent_spellings_are_equal(baseline: Any, candidate: str) -> None:
    assert equality.spelling_key(baseline) == equality.spelling_key(candidate)


@pytest.mark.parametrize(
    "baseline,candidate",
    [
        *cases.of(__file__, "different_values_are_unequal"),
        ("1" * 40 + ".0", "1" * 39 + "2"),
        ("9" * 10_000_000, "9" * 10_000_000 + ".0"),
    ],
)
def test_different_values_are_unequal(baseline: Any, candidate: Any) -> None:
    assert equality.spelling_key(baseline) != equality.spelling_key(candidate)
