"""Citations of the contract: each names a section that exists, and on a page it is a link to it."""

import subprocess

import pytest
from support import cases

from docs import citations

from .conftest import ROOT, Page


def test_every_cited_section_exists() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    cited = [
        (name, page, section)
        for name in listed.splitlines()
        if name.endswith((".py", ".md", ".yaml", ".txt", ".graphql"))
        and not name.startswith("contract/")
        and name != "tests/project/docs/test_citations.py"
        for page, section in citations.cited((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert cited
    assert [place for place in cited if place[2] not in citations.sections(place[1])] == []


def test_every_citation_on_a_page_is_a_link(pages: dict[str, Page]) -> None:
    plain = [name for name, page in pages.items() if citations.linked(page.text, (ROOT / name).parent) != page.text]
    assert plain == [], "run python -m docs.citations on these pages"


@cases.parametrize("text,link")
def test_a_citation_becomes_a_link_outside_of_code(text: str, link: str) -> None:
    assert citations.linked(text, ROOT / "docs") == link


def test_a_section_that_does_not_exist_cannot_be_linked() -> None:
    with pytest.raises(KeyError, match=r"2\.99"):
        citations.linked("graphql.md §2.99", ROOT / "docs")
