"""HTML report: one self-contained page, with latency charts.

jinja2 escapes all data; as a second line of defence, a Content-Security-Policy permits only the page's own style and
script, by their hashes. Texts and chart coordinates are computed here, so that the template has no logic of its own.
"""

import base64
import hashlib
import json
import math
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from proxy.tools.compare.reports import advice, highlight, ordering, visible, words
from proxy.tools.compare.results import ComparisonResult, EndpointResult, Interval, LatencyDistribution

WIDTH, ROW, GAP = 480.0, 56.0, 18.0  # chart width, height of one side, gap between two sides
BOTTOM = 22.0  # height of the scale below the sides
TICKS = tuple(base * 10.0**power for power in range(-4, 4) for base in (1, 2, 5))
TICKS_MOST = 8


class Bar(NamedTuple):
    """Bucket of a histogram. `share` is that of the side's responses; `low` and `high` are in seconds, `high` is None
    for the last bucket.
    """

    x: float
    y: float
    width: float
    height: float
    low: float
    high: float | None
    share: float


class Mark(NamedTuple):
    """Position of a time on the scale."""

    x: float
    seconds: float


class ChartRow(NamedTuple):
    """Histogram of one side; its bars extend from `base` up to `top`."""

    side: str
    base: float
    top: float
    bars: tuple[Bar, ...]
    median: Mark
    tail: Mark


class Chart(NamedTuple):
    """Histograms of both sides on one logarithmic scale."""

    height: float
    rows: tuple[ChartRow, ...]
    ticks: tuple[Mark, ...]


class Scale(NamedTuple):
    """Logarithmic scale from seconds to coordinates."""

    low: float
    high: float

    def x(self, seconds: float) -> float:
        """Return the coordinate of a time, clamped to the chart."""
        inside = min(max(seconds, self.low), self.high)
        return WIDTH * math.log(inside / self.low) / math.log(self.high / self.low)


def latency_chart(sides: Iterable[LatencyDistribution]) -> Chart | None:
    """Lay out the latency chart; None without any response."""
    distributions = [times for times in sides if sum(times.buckets)]
    if not distributions:
        return None
    scale = _scale(distributions)
    highest = max(max(times.buckets) / sum(times.buckets) for times in distributions)
    rows = tuple(
        _row(times, GAP + place * (ROW + GAP) + ROW, scale, highest) for place, times in enumerate(distributions)
    )
    return Chart(rows[-1].base + BOTTOM, rows, _ticks(scale))


def whisker(interval: Interval, share: float, low: float) -> tuple[float, float, float]:
    """Return both ends of an interval and its share in per cent of a scale from `low` to 1."""
    left, right, at = (100 * max(0.0, value - low) / (1 - low) for value in (interval.low, interval.high, share))
    return left, right, at


def _edges(times: LatencyDistribution) -> list[tuple[float, float | None]]:
    """Return the bounds of each bucket in seconds; the last has no upper bound."""
    first = times.bounds[0] / 2 if times.bounds else 0.001
    return list(zip((first, *times.bounds), (*times.bounds, None), strict=True))


def _scale(distributions: list[LatencyDistribution]) -> Scale:
    """Fit the scale to the non-empty buckets."""
    pairs = [
        (times, edge) for times in distributions for edge, n in zip(_edges(times), times.buckets, strict=True) if n
    ]
    low = min(edge[0] for _, edge in pairs)
    high = max(edge[1] or max(edge[0] * 2, times.p99) for times, edge in pairs)
    return Scale(max(low, 1e-6), max(high, low * 2, 2e-6))


def _row(times: LatencyDistribution, base: float, scale: Scale, highest: float) -> ChartRow:
    answers = sum(times.buckets)
    bars = []
    for (low, high), count in zip(_edges(times), times.buckets, strict=True):
        if not count:
            continue
        left, right = scale.x(low), scale.x(high if high is not None else scale.high)
        height = max(1.0, ROW * count / answers / highest)
        bars.append(Bar(left, base - height, max(1.0, right - left - 1), height, low, high, count / answers))
    median, tail = (Mark(scale.x(at), at) for at in (times.p50, times.p95))
    return ChartRow(times.side, base, base - ROW, tuple(bars), median, tail)


def _ticks(scale: Scale) -> tuple[Mark, ...]:
    inside = [at for at in TICKS if scale.low <= at <= scale.high]
    step = -(-len(inside) // TICKS_MOST) or 1
    return tuple(Mark(scale.x(at), at) for at in inside[::step])


FOLDER = Path(__file__).parent / "page"
LONG = 4_000  # characters of a curl line; a longer one is omitted, because shells limit the length of arguments


def render(result: ComparisonResult) -> str:
    """Render the page."""
    style, script = _assets()
    page = _templates().get_template("page.html.j2")
    return page.render(
        result=result,
        style=Markup(style),  # noqa: S704 - the page's own files, which hold no data
        script=Markup(script),  # noqa: S704
        policy=policy(),
        groups=ordering.groups(result),
        rows=ordering.rows(result),
        rules=ordering.rules(result),
        charts=[
            (endpoint, sides, latency_chart(sides.values())) for endpoint, sides in ordering.times(result.latencies)
        ],
        steps=advice.next_steps(result),
        floor=_floor(result.rows),
        choices=_choices(result),
    )


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(words=words, pair=highlight.highlight_pair, whisker=whisker)
    environment.filters.update(
        line=visible.line,
        block=visible.block,
        names=_names,
        command=partial(visible.line, most=LONG),
        share=words.share,
    )
    return environment


def _asset(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _assets() -> tuple[str, str]:
    return _asset("page.css"), _asset("page.js")


def policy() -> str:
    """Return the Content-Security-Policy of the page: it permits its own style and script, by their hashes."""
    style, script = _assets()
    own = {"script-src": script, "style-src": style}
    hashes = [f"{what} 'sha256-{_digest(text)}'" for what, text in own.items()]
    return "; ".join(["default-src 'none'", *hashes, "base-uri 'none'", "form-action 'none'"])


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _floor(rows: tuple[EndpointResult, ...]) -> float:
    """Return the lower end of the share charts: a round number below all intervals, so that small differences are
    visible.
    """
    lowest = min((row.interval.low for row in rows if row.interval is not None), default=0.0)
    return next((floor for floor in (0.99, 0.95, 0.9, 0.75, 0.5) if lowest >= floor), 0.0)


def _choices(result: ComparisonResult) -> dict[str, list[str]]:
    """List the values of each filter."""
    groups = result.groups
    return {
        "endpoint": sorted({group.endpoint for group in groups}),
        "kind": sorted({group.kind for group in groups}),
        "cause": sorted({group.cause for group in groups}),
        "client": sorted({client for group in groups for client in group.clients}),
    }


def _names(values: tuple[str, ...]) -> str:
    """Join names to an attribute that the script splits."""
    return json.dumps([visible.line(value) for value in values], ensure_ascii=False)
