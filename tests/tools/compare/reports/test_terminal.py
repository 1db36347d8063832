"""Tests of the terminal report, at several widths, with and without colors."""

import io
import re

import msgspec
import pytest
from rich.console import Console
from support import comparison_result

from proxy.tools.compare.reports import terminal
from proxy.tools.compare.results import ComparisonResult


def printed(result: ComparisonResult, width: int = 160, colors: bool = False) -> str:
    file = io.StringIO()
    terminal.render(result, Console(file=file, width=width, color_system="truecolor" if colors else None))
    return file.getvalue().replace("\u00a0", " ")


def test_verdict_is_the_first_line() -> None:
    first = printed(comparison_result.result()).splitlines()[0].rstrip()
    assert first == (
        "Not ready: 17 requests could not be compared, equivalent on 98.8 % of 12 480 requests, 3 kinds of difference "
        "remain, rules ignored 100 684 differences (click"
    )


def test_client_is_shown_once_before_its_endpoints() -> None:
    table = printed(comparison_result.result()).split("Clients and endpoints")[1].split("Differences")[0]
    firsts = [line.split()[0] for line in table.splitlines()[2:] if line]
    assert firsts == ["bom-tool", "/parts/search", "warehouse", "/parts/get_multi", "key", "/sellers/{uid}"]


@pytest.mark.parametrize("width", [60, 80, 104, 160])
def test_lines_fit_the_terminal_width(width: int) -> None:
    assert max(map(len, printed(comparison_result.result(), width).splitlines())) <= width


@pytest.mark.parametrize("colors", [False, True])
def test_control_characters_in_data_are_escaped(colors: bool) -> None:
    text = printed(comparison_result.hostile_result(), colors=colors)
    left = re.sub(r"\x1b\[[0-9;]*m", "", text) if colors else text
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066\u200b\ud800]", left) == []
    assert "[bold red]x[/bold red]" in left.replace("\n", "")
    assert "\\u001b[2J" in left.replace("\n", "")
    left.encode()


def test_failure_of_a_live_request_has_no_place() -> None:
    failure = msgspec.structs.replace(comparison_result.result().failures[0], first_origin="")
    report = printed(comparison_result.result(failures=(failure,)))
    assert failure.reason in report
    assert "(first at" not in report
