"""Tests of the forecast of quota exhaustion."""

import datetime
from typing import Any

import pytest

from proxy.gateway.quota import burn_down


def at(text: Any) -> Any:
    return datetime.datetime.fromisoformat(f"{text}Z").timestamp()


NOON, MIDNIGHT = at("2026-11-21T12:00"), at("2026-11-21T00:00")
FIRST = at("2026-12-01T00:00")

CASES = {
    "100 a day for a week, 400 left: in four days": ([100] * 6 + [50], 600, 1_000, FIRST, NOON, "2026-11-25T12:00"),
    "the same, with more left than the month has days": ([100] * 6 + [50], 600, 2_000, FIRST, NOON, None),
    "the same for a lifetime": ([100] * 6 + [50], 600, 2_000, None, NOON, "2026-12-05T12:00"),
    "begun yesterday: idle days before count not": ([0] * 5 + [100, 50], 150, 450, FIRST, NOON, "2026-11-24T12:00"),
    "an idle day between two busy ones does": ([0, 0, 0, 100, 0, 0, 75], 175, 350, FIRST, NOON, "2026-11-25T00:00"),
    "begun today at noon: a day at least": ([0] * 6 + [100], 100, 300, FIRST, NOON, "2026-11-23T12:00"),
    "begun a moment after midnight": ([0] * 6 + [100], 100, 300, FIRST, MIDNIGHT + 1, "2026-11-23T00:00:01"),
    "nothing spent for a week": ([0] * 7, 600, 1_000, FIRST, NOON, None),
    "nothing spent ever": ([0] * 7, 0, 1_000, None, NOON, None),
    "exactly at the end of the month is not before it": ([0] * 6 + [10], 10, 105, FIRST, NOON, None),
    "a part before it is": ([0] * 6 + [10], 10, 104, FIRST, NOON, "2026-11-30T21:36"),
    "used up already": ([1] * 7, 1_000, 1_000, FIRST, NOON, "2026-11-21T12:00"),
    "used up, and idle since": ([0] * 7, 1_001, 1_000, None, NOON, "2026-11-21T12:00"),
    "a limit of nothing": ([0] * 7, 0, 0, FIRST, NOON, "2026-11-21T12:00"),
    "no limit": ([100] * 7, 600, None, FIRST, NOON, None),
}  # fmt: skip


@pytest.mark.parametrize("days,used,limit,ends,now,expected", CASES.values(), ids=CASES)
def test_forecast_gives_the_day_of_exhaustion(
    days: Any, used: Any, limit: Any, ends: Any, now: Any, expected: Any
) -> None:
    found = burn_down.runs_out(used, limit, ends, days, now)
    assert found == (None if expected is None else pytest.approx(at(expected)))
