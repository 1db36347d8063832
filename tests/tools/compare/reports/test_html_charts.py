"""Tests of charts: the drawn geometry matches the counted distribution."""

import math

import pytest
from support import comparison_result

from proxy.tools.compare.reports import html
from proxy.tools.compare.results import Interval, LatencyDistribution


def times(side: str, buckets: tuple[int, ...], bounds: tuple[float, ...] = (0.1, 0.2, 0.4)) -> LatencyDistribution:
    return LatencyDistribution("/parts/match", side, sum(buckets), 0.15, 0.3, 0.5, bounds, buckets)  # type: ignore[arg-type]


def test_bar_height_is_the_share_of_responses() -> None:
    chart = html.latency_chart([times("baseline", (1, 3, 0, 0)), times("candidate", (200, 200, 0, 0))])
    assert chart is not None
    baseline, candidate = chart.rows
    assert [bar.share for bar in baseline.bars] == [0.25, 0.75]
    assert baseline.bars[1].height == pytest.approx(html.ROW)
    assert candidate.bars[0].height == pytest.approx(html.ROW * 0.5 / 0.75)


def test_sides_share_one_scale() -> None:
    chart = html.latency_chart([times("baseline", (0, 4, 0, 0)), times("candidate", (0, 0, 4, 0))])
    assert chart is not None
    (left,), (right,) = chart.rows[0].bars, chart.rows[1].bars
    assert left.x == 0
    assert right.x == pytest.approx(html.WIDTH * math.log(2) / math.log(4))


def test_shapes_are_inside_the_drawing() -> None:
    for _, sides in (("a", comparison_result.result().latencies[:2]), ("b", [times("baseline", (0, 0, 0, 5))])):
        chart = html.latency_chart(sides)
        assert chart is not None
        for row in chart.rows:
            assert all(bar.x >= 0 and bar.x + bar.width <= html.WIDTH + 1 for bar in row.bars)
            assert all(row.top <= bar.y and bar.height > 0 for bar in row.bars)
            assert 0 <= row.median.x <= row.tail.x <= html.WIDTH
        assert all(0 <= tick.x <= html.WIDTH for tick in chart.ticks)
        assert len(chart.ticks) <= html.TICKS_MOST


def test_responses_beyond_the_last_bound_are_drawn_open_ended() -> None:
    chart = html.latency_chart([times("baseline", (0, 0, 0, 2))])
    assert chart is not None
    assert [(bar.low, bar.high) for bar in chart.rows[0].bars] == [(0.4, None)]


def test_side_without_responses_has_no_row() -> None:
    chart = html.latency_chart([times("baseline", (0, 0, 0, 0)), times("candidate", (1, 0, 0, 0))])
    assert chart is not None
    assert [row.side for row in chart.rows] == ["candidate"]
    assert html.latency_chart([times("baseline", (0, 0, 0, 0))]) is None


def test_interval_is_drawn_from_lower_bound_to_one() -> None:
    assert html.whisker(Interval(0.95, 1.0), 0.975, 0.9) == pytest.approx((50, 100, 75))
    assert html.whisker(Interval(0.5, 1.0), 0.95, 0.9) == pytest.approx((0, 100, 50))
