"""Tests of equal numbers and timestamps in different notations."""

from typing import Any

import pytest

from proxy.tools.compare.judging import equality


@pytest.mark.parametrize(
    "baseline,candidate",
    [
        ("0.64700", "0.647"),
        ("1", "1.0"),
        ("-1", "-1.000"),
        ("0", "-0"),
        ("1" * 40 + ".0", "1" * 40),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00+00:00"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00.000Z"),
        ("2020-01-01T00:00:00.50Z", "2020-01-01T00:00:00.5z"),
        ("2020-01-01T00:00:00Z", "2019-12-31T19:00:00-0500"),
        ("2020-01-01T00:00:00Z", "2020-01-01t05:30:00+05:30"),
        ("2020-01-01T00:00:00Z", "2020-01-01 01:00:00+01"),
        ("2020-01-01T00:00:00", "2020-01-01 00:00:00.0"),
    ],
)
def test_equivalent_spellings_are_equal(baseline: Any, candidate: str) -> None:
    assert equality.same_spelling(baseline, candidate)
    assert equality.same_spelling(candidate, baseline)


@pytest.mark.parametrize(
    "baseline,candidate",
    [
        ("0402", "402"),
        ("+1", "1"),
        ("1e2", "100"),
        ("1,000", "1000"),
        ("1" * 40 + ".0", "1" * 39 + "2"),
        (".5", "0.5"),
        ("1.", "1"),
        ("1 ", "1"),
        ("1\n", "1"),
        ("١", "1"),
        ("9" * 10_000_000, "9" * 10_000_000 + ".0"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00.001Z"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00"),
        ("2020-01-01T00:00:00Z", "2020-01-01"),
        ("2020-13-01T00:00:00Z", "2020-13-01T00:00:00+00:00"),
        ("0001-01-01T00:00:00+05:00", "0001-01-01T00:00:00+06:00"),
        ("http://a", "https://a"),
        ("a", "A"),
    ],
)
def test_different_values_are_unequal(baseline: Any, candidate: Any) -> None:
    assert not equality.same_spelling(baseline, candidate)
