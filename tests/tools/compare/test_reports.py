"""Reports: in a terminal at several widths, as text and HTML (its behavior is tested in a browser), in their words."""

import html
import io
import json
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console
from support import comparison_result

from proxy.tools.compare import reports, words
from proxy.tools.compare.judging.result import ComparisonResult, render_json
from proxy.tools.compare.words import Marked


def printed(result: ComparisonResult, width: int = 160, colors: bool = False) -> str:
    file = io.StringIO()
    reports.render_terminal(result, Console(file=file, width=width, color_system="truecolor" if colors else None))
    return file.getvalue()


def test_headline_is_the_first_line() -> None:
    first = printed(comparison_result.result()).splitlines()[0].rstrip()
    assert first == "Not ready: 120 of 9,360 requests differ, in 2 kinds of difference."


ROWS = comparison_result.result().rows


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"verdict": "ready", "groups": ()},
        {"verdict": "inconclusive", "rows": ()},
        {"verdict": "inconclusive", "rows": ROWS[1:], "groups": ()},
        {"verdict": "inconclusive", "rows": ROWS[1:], "failures": ()},
        {"verdict": "inconclusive", "rows": ROWS[1:], "failures": (), "complete": False},
    ],
)
def test_headline_is_one_sentence_of_at_most_twenty_words(changes: dict[str, object]) -> None:
    headline = words.headline(comparison_result.result(**changes))
    assert len(headline.split()) <= 20
    assert headline.count(".") == 1
    assert words.next_steps(comparison_result.result(**changes))


@pytest.mark.parametrize("width", [60, 80, 104, 160])
def test_lines_fit_the_terminal_width(width: int) -> None:
    assert max(map(len, printed(comparison_result.result(), width).splitlines())) <= width


@pytest.mark.parametrize("colors", [False, True])
def test_control_characters_in_data_are_escaped(colors: bool) -> None:
    text = printed(comparison_result.hostile_result(), colors=colors)
    left = re.sub(r"\x1b\[[0-9;]*m", "", text) if colors else text
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066\u200b\ud800]", left) == []
    assert "[bold red]x[/bold red]" in left.replace("\n", "")
    assert "\\x1b[2J" in left.replace("\n", "")


def test_only_different_characters_are_marked() -> None:
    assert words.pair('[1000,"0.21430"]', '[1000,"0.21980"]') == (
        Marked('[1000,"0.21', "43", '0"]'),
        Marked('[1000,"0.21', "98", '0"]'),
    )
    assert words.pair(None, '{"uid":"1"}') == (None, Marked("", '{"uid":"1"}', ""))


def test_long_value_is_laid_out_with_every_digit() -> None:
    (shown, _) = words.pair('{"sku":"' + "x" * 80 + '","n":1.10}', None)
    assert shown is not None
    assert shown.differing == '{\n  "sku": "' + "x" * 80 + '",\n  "n": 1.10\n}'


@pytest.mark.parametrize("render", [reports.render_html, printed])
def test_huge_fields_are_truncated_with_a_note(render: object) -> None:
    text = render(comparison_result.hostile_result("x" * 1_000_000))  # type: ignore[operator]
    assert len(text) < 400_000
    assert "characters more" in re.sub(r"\s+", " ", text)


def test_json_report_keeps_values_unchanged() -> None:
    written = json.loads(render_json(comparison_result.result(notes=("x" * 100_000, "\x00\x1b</script>"))))
    assert written["notes"] == ["x" * 100_000, "\x00\x1b</script>"]


class _Tags(HTMLParser):
    """Tags with the names of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, sorted(name for name, _ in attrs)))


def test_hostile_text_creates_no_tag_and_no_attribute() -> None:
    hostile, harmless = (reports.render_html(comparison_result.hostile_result(*text)) for text in ([], ["harmless"]))
    assert _Tags(hostile).tags == _Tags(harmless).tags
    assert "\x1b" not in hostile
    assert "\\x1b[2J" in hostile
    assert "base-uri 'none'; form-action 'none'" in html.unescape(hostile)


def test_empty_run_gives_a_page() -> None:
    bare = comparison_result.result(rows=(), groups=(), rules=(), failures=(), notes=())
    assert "No differences." in reports.render_html(bare)
