"""Tests of the coordinates of the burn-down chart."""

import datetime
from typing import Any

import pytest

from proxy.gateway.quota.burn_down import BurnDown, BurnDownDay
from proxy.web.admin import burn_down_chart

NOON = datetime.datetime(2026, 11, 3, 12, tzinfo=datetime.UTC).timestamp()


def month(*parts: int, limit: int | None = 100, per_day: float = 10.0, earlier: int = 0) -> BurnDown:
    """The first days of November."""
    left, days = 0 if limit is None else limit - earlier, []
    for number, used in enumerate(parts, 1):
        left -= used
        days.append(BurnDownDay(f"2026-11-{number:02}", used, None if limit is None else max(0, left)))
    return BurnDown(tuple(days), earlier, per_day, 0, "2026-11-01", "2026-11-30")


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())]


def test_line_falls_from_the_limit_to_what_remains_now() -> None:
    drawn = burn_down_chart.chart(month(10, 0, 40), 100, NOON)
    assert (drawn.width, drawn.today, drawn.top) == (30.0, 2.5, 100)
    assert points(drawn.line) == [(0, 0), (1, 10), (2, 10), (2.5, 50)]
    assert points(drawn.area) == [(0, 100), *points(drawn.line), (2.5, 100)]


@pytest.mark.parametrize(
    "per_day,expected", [(1.0, (30.0, 77.5)), (10.0, (7.5, 100.0)), (1000.0, (2.55, 100.0)), (0.0, None)]
)
def test_forecast_ends_with_the_period_or_with_the_quota(per_day: float, expected: Any) -> None:
    forecast = burn_down_chart.chart(month(10, 0, 40, per_day=per_day), 100, NOON).forecast
    if expected is None:
        assert forecast is None
    else:
        assert forecast is not None
        assert (forecast.x1, forecast.y1) == (2.5, 50)
        assert (forecast.x2, forecast.y2) == pytest.approx(expected)


def test_usage_before_the_first_day_lowers_the_beginning() -> None:
    assert points(burn_down_chart.chart(month(10, earlier=30), 100, NOON - 2 * 86_400).line)[0] == (0, 30)


@pytest.mark.parametrize("limit", [0, 1])
def test_spent_quota_lies_at_the_bottom(limit: int) -> None:
    drawn = burn_down_chart.chart(month(5, 5, limit=limit), limit, NOON - 86_400)
    assert points(drawn.line)[-1][1] == 100
    assert drawn.forecast is None


def test_without_a_limit_days_are_bars_below_the_largest() -> None:
    drawn = burn_down_chart.chart(month(10, 0, 40, limit=None), None, NOON)
    assert (drawn.is_limited, drawn.top, drawn.line, drawn.forecast) == (False, 40, "", None)
    assert [(day.y, day.height) for day in drawn.days] == [(75, 25), (100, 0), (0, 100)]
    assert all(0 < day.x - number < 1 and day.width < 1 for number, day in enumerate(drawn.days))


def test_lifetime_has_room_for_the_forecast() -> None:
    days = tuple(BurnDownDay(f"2026-10-{number:02}", 1, 50) for number in range(1, 32))
    lifetime = BurnDown(days, 19, 1.0, None, None, None)
    assert burn_down_chart.chart(lifetime, 100, NOON).width == 31 + burn_down_chart.FORECAST_DAYS
