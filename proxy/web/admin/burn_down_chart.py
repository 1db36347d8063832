"""Coordinates of the burn-down chart. Its unit is a day across, and a hundredth of the limit down.

The chart is stretched to the width of the page, so that it holds no text: labels are beside it.
"""

from typing import NamedTuple

from proxy.gateway.quota.burn_down import DAY_SECONDS, BurnDown

HEIGHT = 100.0
FORECAST_DAYS = 14  # that are shown of a lifetime
BAR_GAP = 0.15  # of a day


class DayArea(NamedTuple):
    """Part of the chart that stands for a day: where its bar is, which only quotas without a limit have, and its
    description."""

    x: float
    y: float
    width: float
    height: float
    description: str


class ForecastLine(NamedTuple):
    """Straight line from the present to the end of the quota or of the chart."""

    x1: float
    y1: float
    x2: float
    y2: float


class BurnDownChart(NamedTuple):
    """Burn-down of a quota with a limit as a `line` with the `area` below it; of one without, usage by day as bars.

    `top` is the number of parts at the upper edge, `today` the present; `forecast` continues the line from there.
    """

    width: float
    top: int
    today: float
    line: str
    area: str
    forecast: ForecastLine | None
    days: tuple[DayArea, ...]
    is_limited: bool


def chart(burned: BurnDown, limit: int | None, now: float) -> BurnDownChart:
    days = burned.days
    today = len(days) - 1 + now % DAY_SECONDS / DAY_SECONDS
    width = float(burned.ends[-2:]) if burned.ends else float(len(days) + FORECAST_DAYS)
    if limit is None:
        top = max(1, *(day.parts for day in days))
        return BurnDownChart(width, top, today, "", "", None, tuple(_bars(burned, top)), is_limited=False)
    scale = HEIGHT / max(1, limit)
    left = [day.remaining or 0 for day in days]
    points = [(0.0, limit - burned.earlier), *((float(n + 1), parts) for n, parts in enumerate(left[:-1]))]
    points.append((today, left[-1]))
    line = " ".join(f"{x:.3f},{HEIGHT - max(0, parts) * scale:.2f}" for x, parts in points)
    return BurnDownChart(
        width=width,
        top=limit,
        today=today,
        line=line,
        area=f"0,{HEIGHT:g} {line} {today:.3f},{HEIGHT:g}",
        forecast=_forecast(today, left[-1], burned.parts_per_day, width, scale),
        days=tuple(
            DayArea(float(n), 0.0, 1.0, HEIGHT, f"{day.day}: {day.parts:,} parts, {day.remaining:,} remained")
            for n, day in enumerate(days)
        ),
        is_limited=True,
    )


def _bars(burned: BurnDown, top: int) -> list[DayArea]:
    return [
        DayArea(
            n + BAR_GAP / 2,
            HEIGHT - HEIGHT * day.parts / top,
            1 - BAR_GAP,
            HEIGHT * day.parts / top,
            f"{day.day}: {day.parts:,} parts",
        )
        for n, day in enumerate(burned.days)
    ]


def _forecast(today: float, left: int, per_day: float, width: float, scale: float) -> ForecastLine | None:
    """Continue the line at the pace of the last days, until nothing is left or the period ends."""
    if not (left and per_day):
        return None
    end = min(width, today + left / per_day)
    return ForecastLine(today, HEIGHT - left * scale, end, HEIGHT - max(0.0, left - per_day * (end - today)) * scale)
