"""Descriptions of the tree match it: ARCHITECTURE.md, CONTRIBUTING.md, and the names of unit tests."""

import re
from pathlib import Path

import pytest

DESCRIPTIONS = ("ARCHITECTURE.md", "CONTRIBUTING.md")
TOP_FOLDERS = "proxy|mappings|tests|bench|docs|deploy|examples"
# A path from the top in backquotes. The pages shorten the folders of one row of a table to their last names.
PATH = re.compile(rf"`((?:{TOP_FOLDERS})/[\w./-]*|[\w-]+\.(?:md|toml|yaml|txt))`")
OWN_FILES = {"our.yaml"}  # files of the reader


@pytest.mark.parametrize("page", DESCRIPTIONS)
def test_every_path_of_a_description_exists(root: Path, page: str) -> None:
    paths = set(PATH.findall((root / page).read_text())) - OWN_FILES
    missing = {path for path in paths if not (root / path).exists()}
    # The files of a case of tests/mappings are named without their folder.
    assert {path for path in missing if not any((root / "tests/mappings").glob(f"*/{path}"))} == set()


def test_architecture_names_every_package(root: Path) -> None:
    page = (root / "ARCHITECTURE.md").read_text()
    packages = sorted(path.parent.name for path in root.glob("proxy/*/__init__.py"))
    assert [name for name in packages if f"proxy/{name}/" not in page] == []


def test_unit_tests_have_the_names_of_their_modules(root: Path) -> None:
    """`proxy/compare/judging/verdict.py` is tested by `test_verdict.py`, and subjects of it by `test_verdict_*.py`."""
    unit = root / "tests" / "unit"
    tests = sorted(unit.rglob("test_*.py"))
    assert len(tests) > 100
    assert [str(test.relative_to(unit)) for test in tests if not _module(root, test.relative_to(unit))] == []


def _module(root: Path, test: Path) -> Path | None:
    """Return the module or package that a unit test is named after; None without one."""
    folder = root / test.parent if test.parts[0] == "bench" else root / "proxy" / test.parent
    words = test.stem.removeprefix("test_").split("_")
    names = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    paths = (folder / name for name in names)
    return next((path for path in paths if path.is_dir() or path.with_suffix(".py").is_file()), None)
