"""Tests of tolerances: equivalent notations and values that are close enough."""

from decimal import Decimal
from typing import Any

import pytest

from proxy.tools.compare.judging import tolerances
from proxy.tools.compare.judging.findings import ABSENT
from proxy.tools.compare.judging.tolerances import Tolerance


@pytest.mark.parametrize(
    "spelling, one, other",
    [
        ("lower-case", "RoHS", "rohs"),
        ("lower-case", ["A", {"k": "B"}], ["a", {"k": "b"}]),
        ("trim", " 22  kΩ ", "22 kΩ"),
        ("number", "1.50", "1.5"),
        ("number", "0.64700", Decimal("0.647")),
        ("number", 1, "1e0"),
        ("timestamp", "2026-01-31T12:00:00Z", "2026-01-31T13:00:00.000+01:00"),
        ("timestamp", "2026-01-31T12:00:00", "2026-01-31T12:00:00Z"),
        ("day", "2026-01-31T12:00:00Z", "2026-01-31"),
        ("url", "http://Example.com/a/?utm=1#x", "https://example.com/a"),
        ("sorted", ["b", "a", 1], [1, "a", "b"]),
        ("sorted", [{"k": [2, 1]}, {"k": [3]}], [{"k": [3]}, {"k": [1, 2]}]),
        ("empty", None, ""),
        ("empty", [], ABSENT),
        ("empty", {}, None),
    ],
)
def test_equivalent_spellings_are_equal(spelling: tolerances.NormalForm, one: Any, other: Any) -> None:
    assert tolerances.normalized(one, (spelling,)) == tolerances.normalized(other, (spelling,))


@pytest.mark.parametrize(
    "spelling, one, other",
    [
        ("lower-case", "a", "b"),
        ("trim", "a b", "ab"),
        ("number", "1.50", "1.51"),
        ("number", True, 1.5),
        ("number", "1e9999999999", "1e9999999998"),
        ("timestamp", "2026-01-31T12:00:00Z", "2026-01-31T12:00:01Z"),
        ("timestamp", "yesterday", "today"),
        ("day", "2026-01-31", "2026-02-01"),
        ("url", "https://example.com/a", "https://example.com/b"),
        ("url", "http://[broken/a", "https://[broken/a"),
        ("sorted", ["a"], ["a", "a"]),
        ("empty", None, 0),
        ("empty", "", False),
    ],
)
def test_different_values_stay_unequal(spelling: tolerances.NormalForm, one: Any, other: Any) -> None:
    assert tolerances.normalized(one, (spelling,)) != tolerances.normalized(other, (spelling,))


def test_every_spelling_keeps_unreadable_values() -> None:
    for spelling in tolerances.NORMAL_FORMS:
        for value in (7, True, None, "plain", ["plain"], {"k": 1}, ABSENT):
            tolerances.normalized(value, (spelling,))


def test_spellings_are_applied_in_order() -> None:
    assert tolerances.normalized(" ABC ", ("trim", "lower-case")) == "abc"


@pytest.mark.parametrize(
    "tolerance, baseline, candidate, allowed",
    [
        (Tolerance(absolute=1), 10, 11, True),
        (Tolerance(absolute=1), 10, Decimal("11.01"), False),
        (Tolerance(relative=0.01), "100.00", "101.00", True),
        (Tolerance(relative=0.01), "100.00", "101.02", False),
        (Tolerance(relative=0), 100, 100.5, False),
        (Tolerance(absolute=1, relative=0.5), 10, 15, True),
        (Tolerance(seconds=60), "2026-01-31T12:00:00Z", "2026-01-31T12:01:00Z", True),
        (Tolerance(seconds=60), "2026-01-31T12:00:00Z", "2026-01-31T12:01:01Z", False),
        (Tolerance(absolute=1), "a", "b", False),
        (Tolerance(absolute=1), True, 1, False),
        (Tolerance(absolute=1), None, 0, False),
        (Tolerance(absolute=0.01), [1, "0.640"], [1, "0.645"], True),
        (Tolerance(absolute=0.01), [1, "0.640"], [1, "0.645", 2], False),
        (Tolerance(absolute=0.01), {"a": 1, "b": "x"}, {"a": 1, "b": "x"}, True),
        (Tolerance(absolute=0.01), {"a": 1}, {"b": 1}, False),
    ],
)
def test_numeric_tolerance_decides_equality(tolerance: Any, baseline: Any, candidate: Any, allowed: bool) -> None:
    assert tolerance.allows(baseline, candidate) is allowed
    assert tolerance.allows(candidate, baseline) is allowed
