"""docs/how-to/conform.md and docs/reference/compatibility.md match the program."""

from typing import Any

from proxy.cli import conform
from proxy.conformance import page, reading
from proxy.conformance.assumptions import CONDITIONS

from .conftest import Page

GUIDE = "docs/how-to/conform.md"


def _rows(pages: dict[str, Page], first: str) -> dict[str, str]:
    return {row[0].strip("`"): row[1] for row in pages[GUIDE].table(first)}


def test_the_guide_has_the_exit_codes(pages: dict[str, Page]) -> None:
    mistake = 2  # of every command
    codes = {conform.CONFIRMED, conform.CONTRADICTED, mistake, conform.UNTESTED}
    assert {int(code) for code in _rows(pages, "exit code")} == codes


def test_the_guide_has_every_condition(pages: dict[str, Page]) -> None:
    assert _rows(pages, "condition") == CONDITIONS


def test_the_guide_has_every_tier_and_verdict(pages: dict[str, Page]) -> None:
    assert list(_rows(pages, "tier")) == list(page.TIERS)
    assert set(_rows(pages, "verdict")) == set(conform.COLOURS)


def test_the_example_of_an_assumption_is_one(pages: dict[str, Page], tmp_path: Any) -> None:
    (example,) = pages[GUIDE].blocks("yaml")
    (tmp_path / "example.yaml").write_text(example.text)
    (assumption,) = reading.load(tmp_path, ["example.yaml"]).assumptions
    shipped = next(each for each in reading.load().assumptions if each.id == assumption.id)
    assert (assumption.statement, assumption.expected) == (shipped.statement, shipped.expected)
