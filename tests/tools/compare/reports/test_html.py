"""Tests of the HTML report as text; its behavior is tested in a browser."""

import base64
import hashlib
from html.parser import HTMLParser

import pytest
from support import comparison_result

from proxy.tools.compare.reports import html

VOID = {"meta"}


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


def test_content_policy_allows_only_the_own_style(page: _Page) -> None:
    (policy,) = (a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    hashes = {
        f"{tag}-src": "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
        for tag, text in page.raw.items()
    }
    assert rules == hashes


def test_hostile_text_creates_no_tag_and_no_attribute() -> None:
    names = [(tag, sorted(a)) for tag, a in _Page(html.render(comparison_result.hostile_result())).tags]
    expected = [(tag, sorted(a)) for tag, a in _Page(html.render(comparison_result.hostile_result("harmless"))).tags]
    assert names == expected


def test_empty_run_gives_a_page() -> None:
    bare = comparison_result.result(rows=(), groups=(), rules=(), failures=(), notes=())
    assert "No differences." in html.render(bare)
