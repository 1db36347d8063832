"""Pages that scripts of docs/ generate are up to date."""

import importlib

import pytest

from .conftest import ROOT, Page


def test_command_line_page_matches_the_options_of_the_program(
    pages: dict[str, Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    fresh = importlib.import_module("docs.command_line").page()
    name = "docs/reference/command-line.md"
    assert pages[name].text == fresh, f"{name} is stale; renew it with: python -m docs.command_line > {name}"


def test_screenshots_are_small() -> None:
    images = list((ROOT / "docs/images").glob("*.png"))
    assert {image.stem for image in images} == {"portal", "ide", "report", "workbook"}
    assert [image.name for image in images if image.stat().st_size > 150_000] == []
