"""Twelve pages of at most 25,000 words, a short README, pages that name what exists, and generated ones up to date."""

import re
from collections.abc import Callable

import pytest
from acceptance import running

from docs import __main__ as renewal

PAGES = sorted((running.ROOT / "docs").glob("**/*.md"))
README, SECURITY = ((running.ROOT / name).read_text("utf-8") for name in ("README.md", "SECURITY.md"))


def _words(text: str) -> int:
    return len(text.split())


def test_there_are_twelve_pages_which_the_readme_names() -> None:
    assert len(PAGES) == 12
    assert [page.name for page in PAGES if f"](docs/{page.name})" not in README] == []
    assert sum(_words(page.read_text("utf-8")) for page in PAGES) <= 25_000


def test_readme_is_short_and_says_first_what_it_is_about() -> None:
    assert _words(README) <= 600
    assert _words(README.partition("```")[0]) <= 250
    first = README.split("\n\n")[1].partition(". ")[0]
    assert "Octopart" in first
    assert "Nexar" in first


def test_pages_for_users_do_not_cite_the_contract() -> None:
    assert [page.name for page in PAGES if "§" in page.read_text("utf-8")] == ["nexar.md"]


def test_each_promise_of_security_names_tests_that_exist() -> None:
    promises = [line for line in SECURITY.partition("## Promises")[2].splitlines() if re.match(r"\| [A-Z]", line)]
    tests = [re.findall(r"`([\w/]+/test_\w+\.py)`", line) for line in promises]
    assert len(promises) > 40
    assert [line for line, found in zip(promises, tests, strict=True) if not found] == []
    assert [name for found in tests for name in found if not (running.ROOT / "tests" / name).exists()] == []


def test_files_that_maintainers_are_sent_to_exist() -> None:
    pages = [(running.ROOT / name).read_text("utf-8") for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")]
    named = [name for page in pages for name in re.findall(r"`((?:\w+/)+[\w-]+\.\w+)`", page)]
    folders = (running.ROOT, running.ROOT / "proxy")
    assert len(named) > 30
    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []


PICTURE = "docs/images/first-minute.svg"


@pytest.mark.parametrize("name", renewal.PAGES)
def test_generated_file_is_what_its_script_makes(name: str, needs_program: Callable[[str], str]) -> None:
    for program in ("curl", "jq") if name == PICTURE else ():
        needs_program(program)
    made = renewal.PAGES[name]()
    assert (renewal.ROOT / name).read_text(encoding="utf-8") == made, f"renew it with: python -m docs {name}"
