"""Pages that scripts of docs/ generate are up to date."""

import importlib

import pytest

from .conftest import ROOT, Page


@pytest.mark.parametrize(
    "script, name",
    [("command_line", "docs/reference/command-line.md"), ("diagnoses", "docs/reference/diagnoses.md")],
)
def test_page_matches_the_program(
    pages: dict[str, Page], monkeypatch: pytest.MonkeyPatch, script: str, name: str
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    fresh = importlib.import_module(f"docs.{script}").page()
    assert pages[name].text == fresh, f"{name} is stale; renew it with: python -m docs.{script} > {name}"


def test_screenshots_are_small() -> None:
    images = list((ROOT / "docs/images").glob("*.png"))
    assert {image.stem for image in images} == {"portal", "ide", "report", "workbook"}
    assert [image.name for image in images if image.stat().st_size > 150_000] == []
