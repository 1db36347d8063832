"""docs/how-to/conform.md and docs/reference/compatibility.md match the program."""

from typing import Any

from docs import citations
from proxy.tools.conform import command as conform
from proxy.tools.conform import evidence, page, reading
from proxy.tools.conform.assumptions import CONDITIONS

from .conftest import ROOT, Page

GUIDE, LIST = "docs/how-to/conform.md", "docs/reference/compatibility.md"


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
    assert set(_rows(pages, "verdict")) == set(conform.COLORS)


def test_the_example_of_an_assumption_is_one(pages: dict[str, Page], tmp_path: Any) -> None:
    (example,) = pages[GUIDE].blocks("yaml")
    (tmp_path / "example.yaml").write_text(example.text)
    (assumption,) = reading.load(tmp_path, ["example.yaml"]).assumptions
    assert assumption == next(each for each in reading.load().assumptions if each.id == assumption.id)


def test_the_page_is_generated_from_the_evidence_file(pages: dict[str, Page]) -> None:
    file = ROOT / "docs/reference/compatibility.yaml"
    fresh = citations.linked(page.render(reading.load(), evidence.load(file)), file.parent)
    command = f"v3bridge conform --against sandbox --update {file.relative_to(ROOT)}; python -m docs.citations {LIST}"
    assert pages[LIST].text == fresh, f"{LIST} is stale; renew it with: {command}"


def test_every_assumption_has_been_observed_on_the_sandbox() -> None:
    observed = evidence.load(ROOT / "docs/reference/compatibility.yaml")
    holding = {id for id, listed in observed.items() for each in listed if each.service == "sandbox" and each.holds}
    assert {assumption.id for assumption in reading.load().assumptions} - holding == set()
