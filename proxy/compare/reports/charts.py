"""Distributions of latency as plain geometry, for templates to draw: no colour, no text, no markup."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from proxy.compare.result import Interval, Times

WIDTH, ROW, GAP = 480.0, 56.0, 18.0  # a drawing's width, a side's height, the room between two sides
BOTTOM = 22.0  # below the sides, for the scale
TICKS = tuple(base * 10.0**power for power in range(-4, 4) for base in (1, 2, 5))
TICKS_MOST = 8


class Bar(NamedTuple):
    """A bucket. `share` is that of the side's answers, `low` and `high` are seconds, `high` None beyond the last."""

    x: float
    y: float
    width: float
    height: float
    low: float
    high: float | None
    share: float


class Mark(NamedTuple):
    """A moment on the scale."""

    x: float
    seconds: float


class Row(NamedTuple):
    """One side; its bars stand on `base` and reach up to `top`."""

    side: str
    base: float
    top: float
    bars: tuple[Bar, ...]
    median: Mark
    tail: Mark


class Chart(NamedTuple):
    """Both sides over one logarithmic scale."""

    height: float
    rows: tuple[Row, ...]
    ticks: tuple[Mark, ...]


class Scale(NamedTuple):
    """Seconds to places, logarithmic."""

    low: float
    high: float

    def x(self, seconds: float) -> float:
        """The place of a time; what lies outside is at the edge."""
        inside = min(max(seconds, self.low), self.high)
        return WIDTH * math.log(inside / self.low) / math.log(self.high / self.low)


def latency(sides: Iterable[Times]) -> Chart | None:
    """None where nobody answered."""
    found = [times for times in sides if sum(times.buckets)]
    if not found:
        return None
    scale = _scale(found)
    highest = max(max(times.buckets) / sum(times.buckets) for times in found)
    rows = tuple(_row(times, GAP + place * (ROW + GAP) + ROW, scale, highest) for place, times in enumerate(found))
    return Chart(rows[-1].base + BOTTOM, rows, _ticks(scale))


def whisker(interval: Interval, share: float, low: float) -> tuple[float, float, float]:
    """Ends of an interval and its share on a scale of `low` to 1, in per cent of its length."""
    left, right, at = (100 * max(0.0, value - low) / (1 - low) for value in (interval.low, interval.high, share))
    return left, right, at


def _edges(times: Times) -> list[tuple[float, float | None]]:
    """From where to where each bucket goes; the last has no end."""
    first = times.bounds[0] / 2 if times.bounds else 0.001
    return list(zip((first, *times.bounds), (*times.bounds, None), strict=True))


def _scale(found: list[Times]) -> Scale:
    """Over all buckets that hold something."""
    pairs = [(times, edge) for times in found for edge, n in zip(_edges(times), times.buckets, strict=True) if n]
    low = min(edge[0] for _, edge in pairs)
    high = max(edge[1] or max(edge[0] * 2, times.p99) for times, edge in pairs)
    return Scale(max(low, 1e-6), max(high, low * 2, 2e-6))


def _row(times: Times, base: float, scale: Scale, highest: float) -> Row:
    answers = sum(times.buckets)
    bars = []
    for (low, high), count in zip(_edges(times), times.buckets, strict=True):
        if not count:
            continue
        left, right = scale.x(low), scale.x(high if high is not None else scale.high)
        height = max(1.0, ROW * count / answers / highest)
        bars.append(Bar(left, base - height, max(1.0, right - left - 1), height, low, high, count / answers))
    median, tail = (Mark(scale.x(at), at) for at in (times.p50, times.p95))
    return Row(times.side, base, base - ROW, tuple(bars), median, tail)


def _ticks(scale: Scale) -> tuple[Mark, ...]:
    inside = [at for at in TICKS if scale.low <= at <= scale.high]
    step = -(-len(inside) // TICKS_MOST) or 1
    return tuple(Mark(scale.x(at), at) for at in inside[::step])
