"""Pages that scripts of docs/ generate are up to date."""

import importlib

import pytest

from .conftest import ROOT, Page


@pytest.mark.parametrize("script", ["command_line", "diagnoses", "sandbox_behaviour"])
def test_a_generated_page_is_what_its_script_prints(
    pages: dict[str, Page], monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    fresh = importlib.import_module(f"docs.{script}").page()
    name = f"docs/reference/{script.replace('_', '-')}.md"
    assert pages[name].text == fresh, f"{name} is stale; renew it with: python -m docs.{script} > {name}"


def test_screenshots_are_small() -> None:
    images = list((ROOT / "docs/images").glob("*.png"))
    assert {image.stem for image in images} == {"portal", "ide", "report", "workbook"}
    assert [image.name for image in images if image.stat().st_size > 150_000] == []
