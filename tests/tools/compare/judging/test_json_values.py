"""Tests of JSON values: every digit is parsed, errors are clear, and equality is exact, including values that Python
considers equal and values that few libraries write."""

import itertools
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases, v3_responses

from proxy.tools.compare.judging import json_values

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
        assert not json_values.same(baseline, candidate)
        assert json_values.canonical(baseline) != json_values.canonical(candidate)


@pytest.mark.parametrize("inner", ["a", "\ud800", 10**25, Decimal("1.0")])
def test_key_order_is_ignored(inner: Any) -> None:
    baseline, candidate = {"a": {"x": inner, "y": 1}, "b": 2}, {"b": 2, "a": {"y": 1, "x": inner}}
    assert json_values.same(baseline, candidate)
    assert json_values.canonical(baseline) == json_values.canonical(candidate)


@given(v3_responses.ANY_JSON, v3_responses.ANY_JSON)
def test_values_are_equal_exactly_if_their_canonical_forms_are(baseline: Any, candidate: Any) -> None:
    assert json_values.same(baseline, candidate) == (
        json_values.canonical(baseline) == json_values.canonical(candidate)
    )


@cases.parametrize(
    "baseline,candidate",
    ("1" * 40 + ".0", "1" * 40),
)
def test_equivalent_spellings_are_equal(baseline: Any, candidate: str) -> None:
    assert json_values.spelling_key(baseline) == json_values.spelling_key(candidate)


@cases.parametrize(
    "baseline,candidate",
    ("1" * 40 + ".0", "1" * 39 + "2"),
    ("9" * 10_000_000, "9" * 10_000_000 + ".0"),
)
def test_different_values_are_unequal(baseline: Any, candidate: Any) -> None:
    assert json_values.spelling_key(baseline) != json_values.spelling_key(candidate)


def written(value: Any, **options: Any) -> bytes:
    """Write JSON in another layout, numbers with every digit."""
    marks: dict[str, str] = {}

    def mark(number: Decimal) -> str:
        marks[f"<{len(marks)}:{number}>"] = str(number)
        return f"<{len(marks) - 1}:{number}>"

    text = json.dumps(value, default=mark, **options)
    for name, digits in marks.items():
        text = text.replace(f'"{name}"', digits)
    return text.encode("utf-8", "surrogatepass")


@given(
    v3_responses.ANY_JSON,
    st.sampled_from([None, 2]),
    st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]),
    st.booleans(),
)
def test_parsed_response_equals_the_written_one(value: Any, indent: Any, separators: Any, ascii_only: Any) -> None:
    body = written(value, indent=indent, separators=separators, ensure_ascii=ascii_only)
    assert json_values.same(json_values.read(body), json.loads(body, parse_float=Decimal))


@pytest.mark.parametrize("space", [b"", b" ", b"\n"])
@pytest.mark.parametrize(
    "digits",
    [
        *(b"0.1", b"1.10", b"0.1000000000000000055511151231257827", b"1e400", b"1E-400", b"-0.0"),
        *(b"18446744073709551616", b"-9223372036854775809", b"9" * 4000),
    ],
)
def test_numbers_keep_every_digit(digits: Any, space: bytes) -> None:
    [value] = json_values.read(b"[" + space + digits + b"]")
    assert value == Decimal(digits.decode())
    assert type(value) is (int if digits.lstrip(b"-").isdigit() else Decimal)


@pytest.mark.parametrize("space", [b"", b" "])
def test_lone_surrogates_are_parsed_in_any_encoding(space: bytes) -> None:
    assert json_values.read(b"[" + space + b'"\\ud800","\xed\xa0\x80"]') == ["\ud800", "\ud800"]


@pytest.mark.parametrize(
    "body,words",
    [
        (b"", "an empty body"),
        (b" \r\n", "an empty body"),
        (b"<!DOCTYPE html><p>", "HTML instead of JSON"),
        (b"\n <html>", "HTML instead of JSON"),
        (b'{"a": [1, 2', "JSON that is cut or broken"),
        (b'{"a":1}{"b":2}', "JSON that is cut or broken"),
        (b'{"a":"\xff"}', "JSON that is cut or broken"),
        (b'{"a":"\x01"}', "JSON that is cut or broken"),
        (b"Bad gateway", "something that is no JSON"),
        (b"[NaN]", "NaN instead of a number"),
        (b"[-Infinity]", "-Infinity instead of a number"),
        (b"[1e99999999999999999999]", "a number beyond all bounds"),
        (b"[" * 100_000, "JSON that is nested too deeply"),
        (b'{"a":' * 100_000, "JSON that is nested too deeply"),
    ],
)
def test_invalid_json_gives_a_plain_message(body: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        json_values.read(body)
