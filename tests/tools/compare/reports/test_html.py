"""Tests of the HTML report as text; its behavior is tested in a browser."""

import base64
import hashlib
import math
import re
from html.parser import HTMLParser

import pytest
from support import comparison_result

from proxy.tools.compare.reports import html
from proxy.tools.compare.results import Interval, LatencyDistribution

VOID = {"meta", "input", "br"}


class _Page(HTMLParser):
    """Tags with attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.raw: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.raw[self.open[-1]] = self.raw.get(self.open[-1], "") + data


@pytest.fixture(scope="module")
def page() -> _Page:
    return _Page(html.render(comparison_result.result()))


def test_every_tag_is_closed_where_it_was_opened(page: _Page) -> None:
    assert page.open == []


def test_page_loads_no_external_resource(page: _Page) -> None:
    loading = {"src", "srcset", "action", "data", "background", "poster", "formaction"}
    assert [tag for tag, attributes in page.tags if loading & set(attributes)] == []
    assert {attributes["href"][:1] for _, attributes in page.tags if attributes.get("href")} == {"#"}  # type: ignore[index]
    assert "url(" not in page.raw["style"]
    assert "@import" not in page.raw["style"]


def test_content_policy_allows_only_own_style_and_script(page: _Page) -> None:
    (policy,) = (a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    hashes = {
        f"{tag}-src": "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
        for tag, text in page.raw.items()
    }
    assert rules == hashes


def test_no_attribute_holds_style_or_code(page: _Page) -> None:
    assert [name for _, a in page.tags for name in a if name == "style" or name.startswith("on")] == []


def test_every_field_has_a_label_and_every_table_a_header(page: _Page) -> None:
    text = html.render(comparison_result.result())
    assert len(re.findall("<label", text)) == len(re.findall("<(?:select|input)", text))
    heads = [a for tag, a in page.tags if tag == "th"]
    assert heads
    assert all(head.get("scope") in ("col", "row") for head in heads)


def test_hostile_text_creates_no_tag_and_no_attribute() -> None:
    names = [(tag, sorted(a)) for tag, a in _Page(html.render(comparison_result.hostile_result())).tags]
    expected = [(tag, sorted(a)) for tag, a in _Page(html.render(comparison_result.hostile_result("harmless"))).tags]
    pieces = ("del", "ins", "span")
    assert [each for each in names if each[0] not in pieces] == [each for each in expected if each[0] not in pieces]


def test_huge_fields_give_a_small_page() -> None:
    assert len(html.render(comparison_result.hostile_result("<\x00&\u202e" * 2_500_000))) < 500_000


def test_empty_run_gives_a_page() -> None:
    bare = comparison_result.result(rows=(), groups=(), rules=(), latencies=(), failures=(), failed=(), notes=())
    text = html.render(bare)
    assert "No request was compared." in text
    assert "No differences." in text


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
