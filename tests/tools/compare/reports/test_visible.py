"""Tests of untrusted text in reports: invisible characters are escaped, long texts are truncated."""

import io
import json
from collections.abc import Callable

import pytest
from rich.console import Console
from support import comparison_result

from proxy.tools.compare import results
from proxy.tools.compare.reports import html, terminal, visible
from proxy.tools.compare.results import ComparisonResult


@pytest.mark.parametrize(
    "text,shown",
    [
        ("Ω ±5 % 电阻 😀", "Ω ±5 % 电阻 😀"),
        ("\x1b[2J\x9b1m", "\\u001b[2J\\u009b1m"),
        ("a\x00\x08\x7fb", "a\\u0000\\u0008\\u007fb"),
        ("a\r\n\tb", "a\\r\\n\\tb"),
        ("invoice\u202etxt.exe", "invoice\\u202etxt.exe"),
        ("\u2066\u200b\ufeff\xad", "\\u2066\\u200b\\ufeff\\u00ad"),
        ("\ud800 \ufffe \uffff", "\\ud800 \\ufffe \\uffff"),
        ("\u2028\u2029", "\\u2028\\u2029"),
    ],
)
def test_invisible_characters_are_written_out(text: str, shown: str) -> None:
    assert visible.line(text) == shown


def test_long_text_is_truncated_with_its_length() -> None:
    assert visible.line("a, b" + "x" * 10_000_000, 4) == "a, b… (10\u00a0000\u00a0000 characters more)"
    assert visible.block("a\nb" + "x" * 1000, 3) == "a\nb… (1\u00a0000 characters more)"


def test_lone_surrogate_becomes_encodable_text() -> None:
    assert results.encodable("a\ud800\x1b") == "a\\ud800\x1b"


LONG = "x" * 10_000_000


def printed(result: ComparisonResult) -> str:
    console = Console(file=io.StringIO(), width=120)
    terminal.render(result, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


SHORT_REPORTS = {"html": html.render, "terminal": printed}
REPORTS = {**SHORT_REPORTS, "json": results.render_json}


@pytest.mark.parametrize("name", REPORTS)
def test_reports_of_hostile_data_can_be_encoded(name: str) -> None:
    render: Callable[[ComparisonResult], str] = REPORTS[name]
    for control in (comparison_result.HOSTILE, "".join(map(chr, range(0x3000))), "\ud800\udfff\ufffe\uffff"):
        assert render(comparison_result.hostile_result(control)).encode()


@pytest.mark.parametrize("name", SHORT_REPORTS)
def test_huge_fields_are_truncated_with_a_note(name: str) -> None:
    text = SHORT_REPORTS[name](comparison_result.hostile_result(LONG))
    assert len(text) < 400_000
    assert "characters more" in text.replace("\n", " ").replace("  ", " ") or "left out" in text


def test_json_report_keeps_values_unchanged() -> None:
    written = json.loads(results.render_json(comparison_result.result(notes=(LONG, "\x00\x1b</script>"))))
    assert written["notes"] == [LONG, "\x00\x1b</script>"]
