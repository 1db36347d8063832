"""Formats of pages, and text that cannot be anything but text."""

import pytest
from support import cases

from proxy.web.admin import rendering


@pytest.mark.parametrize(
    "value,text",
    [(None, "–"), (0, "0 ms"), (0.0456, "46 ms"), (1, "1 s"), (59.9, "59 s"), (60, "1 min"), (3_599, "59 min 59 s"),
     (3_600, "1 h"), (86_400, "1 d"), (200_000, "2 d 7 h")],
)  # fmt: skip
def test_duration_has_the_two_largest_units(value: float | None, text: str) -> None:
    assert rendering.duration(value) == text


@pytest.mark.parametrize(
    "value,text",
    [(None, "–"), (0, "0 B"), (1_023, "1,023 B"), (1_024, "1.0 KiB"), (67_108_864, "64.0 MiB"), (5e12, "4,656.6 GiB")],
)
def test_bytes_have_the_largest_binary_unit(value: float | None, text: str) -> None:
    assert rendering.size(value) == text


def test_numbers_have_separators_and_shares_are_percentages() -> None:
    assert [rendering.number(1234567), rendering.number(2.5, 1), rendering.number(None)] == ["1,234,567", "2.5", "–"]
    assert [rendering.percent(0.305), rendering.percent(1, 0), rendering.percent(None)] == ["30.5 %", "100 %", "–"]


def test_time_is_for_people_and_for_programs() -> None:
    element = '<time datetime="2023-11-14T22:13:20Z">2023-11-14 22:13:20</time>'
    assert rendering.time_element(1_700_000_000) == element
    assert rendering.time_element(None) == "–"


@pytest.mark.parametrize(
    "text,shown",
    [
        ("<b>\"'&", "&lt;b&gt;&#34;&#39;&amp;."),
        ("a\u202eb", "a\\u202eb."),
        ("\x00\x1b[31m\x7f", "\\x00\\x1b[31m\\x7f."),
        ("\U000e0041", "\\U000e0041."),
        ("zwei\nZeilen", "zwei\nZeilen."),
    ],
)
def test_text_is_escaped_and_printable(text: str, shown: str) -> None:
    page = rendering.render("error.html", title="Error", message=f"X{text}")
    assert f"<p>X{shown}</p>" in page


@pytest.mark.parametrize(
    "seconds,text",
    [(None, "–"), (0.0001, "< 5 ms"), (0.005, "< 5 ms"), (0.0226, "23 ms"), (1.26, "1.3 s"), (30.0, "> 30 s")],
)  # fmt: skip
def test_percentiles_outside_of_the_histogram_are_bounds(seconds: float | None, text: str) -> None:
    assert rendering.latency(seconds) == text


def test_date_is_left_out_where_it_is_todays() -> None:
    now = 1_700_000_000
    assert rendering.short_time_element(now - 60, now).endswith(">22:12:20</time>")
    assert rendering.short_time_element(now - 86_400, now).endswith(">2023-11-13 22:13:20</time>")


@cases.parametrize("values,lines")
def test_sparkline_has_a_line_for_each_run_of_values(values: list[float | None], lines: list[str]) -> None:
    assert rendering.points(values, 100, 10) == lines
