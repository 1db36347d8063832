"""Descriptions of the tree match it: ARCHITECTURE.md, CONTRIBUTING.md, and the names of unit tests."""

import re
from pathlib import Path

import pytest

DESCRIPTIONS = ("ARCHITECTURE.md", "CONTRIBUTING.md")
TOP_FOLDERS = "proxy|sandbox|mappings|tests|bench|docs|deploy|examples"
# A path from the top in backquotes. The pages shorten the folders of one row of a table to their last names.
PATH = re.compile(rf"`((?:{TOP_FOLDERS})/[\w./-]*|[\w-]+\.(?:md|toml|yaml|txt))`")
UNIT_TESTS = {"tests/service": "proxy", "tests/tools": "proxy/tools", "tests/project/bench": "bench"}
OWN_FILES = {"our.yaml"}  # files of the reader


@pytest.mark.parametrize("page", DESCRIPTIONS)
def test_every_path_of_a_description_exists(root: Path, page: str) -> None:
    paths = set(PATH.findall((root / page).read_text())) - OWN_FILES
    missing = {path for path in paths if not (root / path).exists()}
    # The files of a case of tests/service/cases are named without their folder.
    assert {path for path in missing if not any((root / "tests/service/cases").glob(f"*/{path}"))} == set()


def test_architecture_names_every_package(root: Path) -> None:
    page = (root / "ARCHITECTURE.md").read_text()
    packages = sorted(path.parent.name for path in root.glob("proxy/*/__init__.py"))
    assert [name for name in packages if f"proxy/{name}/" not in page] == []


def test_unit_tests_have_the_names_of_their_modules(root: Path) -> None:
    """`proxy/stores/sqlite.py` is tested by `test_sqlite.py`, and subjects of it by `test_sqlite_*.py`."""
    tests = [test for part in UNIT_TESTS for test in sorted((root / part).rglob("test_*.py"))]
    tests = [test for test in tests if not test.is_relative_to(root / "tests/service/cases")]
    assert tests
    assert [str(test.relative_to(root)) for test in tests if not _module(root, test)] == []


def _module(root: Path, test: Path) -> Path | None:
    """Return the module or package that a unit test is named after; None without one."""
    part = next(part for part in UNIT_TESTS if test.is_relative_to(root / part))
    folder = root / UNIT_TESTS[part] / test.parent.relative_to(root / part)
    words = test.stem.removeprefix("test_").split("_")
    names = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    paths = (folder / name for name in names)
    return next((path for path in paths if path.is_dir() or path.with_suffix(".py").is_file()), None)
