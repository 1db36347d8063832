"""Unit tests lie and are named as what they test."""

from pathlib import Path

UNIT_TESTS = {"tests/service": "proxy", "tests/tools": "proxy/tools", "tests/project/bench": "bench"}


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
