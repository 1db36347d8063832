"""Tests of the Markdown report, in GitHub's flavour."""

import re

import msgspec
import pytest
from markdown_it import MarkdownIt
from support import comparison_result

from proxy.tools.compare.reports import markdown

COMMENT = 65_536  # characters that GitHub takes


def html(text: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))


def test_verdict_is_first_and_advice_near_the_end() -> None:
    text = markdown.render(comparison_result.result())
    assert text.startswith("## 🔴 v3 comparison\n\n**Not ready: 17 requests could not be compared, equivalent")
    assert "Begin with" in text.split("**Next steps:**")[1]


def test_clients_and_groups_are_tables() -> None:
    shown = html(markdown.render(comparison_result.result()))
    assert shown.count("<table>") == 2
    assert "<td><code>warehouse</code></td>" in shown
    assert "<td><code>results[*].items[*].offers[*].prices.USD[*]</code></td>" in shown


def test_sample_is_a_diff() -> None:
    text = markdown.render(comparison_result.result())
    assert '- [1000, "0.21430"]\n+ [1000, "0.21980"]\n```' in text
    assert "+ (nothing)" in text


def test_ready_run_is_short() -> None:
    text = markdown.render(comparison_result.ready_result())
    assert text.startswith("## 🟢")
    assert "<details>" not in text


TRAPS = [comparison_result.HOSTILE, "|" * 90, "`" * 90, "\\|", "a\n\n# b\n---", "<b>", "**", "![x](y)", "~~~\n```"]


@pytest.mark.parametrize("text", TRAPS)
def test_data_is_escaped_for_markdown_and_html(text: str) -> None:
    """At every place the page has the same elements as with a plain text."""
    assert elements(markdown.render(comparison_result.hostile_result(text))) == elements(
        markdown.render(comparison_result.hostile_result("harmless"))
    )


def elements(text: str) -> list[str]:
    """The tags of the page in order. Code is left out: a name may be written in two ways."""
    tags = re.findall(r"</?[a-z][a-z0-9]*", html(text))
    return [tag for tag in tags if tag.lstrip("</") != "code"]


def test_data_creates_no_mentions_and_no_links() -> None:
    message = markdown.sentence("@octocat see #12, http://evil.example, www.evil.example, GH-3")
    shown = html(message)
    for mention in ("@octocat", "#12", "http://", "www.evil", "GH-3"):
        assert mention not in shown
    assert shown.replace("\u200b", "") == "<p>@octocat see #12, http://evil.example, www.evil.example, GH-3</p>\n"


def test_fence_is_longer_than_any_inside() -> None:
    assert markdown.fenced("diff", ["a", "`````"]) == "``````diff\na\n`````\n``````"


def test_long_run_fits_into_a_comment() -> None:
    whole = comparison_result.hostile_result("<&|*" * 300_000)
    many = msgspec.structs.replace(
        whole,
        rows=whole.rows * 300,
        groups=whole.groups * 300,
        rules=whole.rules * 300,
        failures=whole.failures * 300,
        failed=whole.failed * 300,
        notes=whole.notes * 300,
    )
    text = markdown.render(many)
    assert len(text.encode("utf-16-le")) / 2 < COMMENT
    assert len(re.findall(r"^(?:- )?… and \d+ more", text, re.MULTILINE)) == 7
