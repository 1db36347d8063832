"""docs/reference/sandbox-contract.md has nine sections, and every test that it names exists."""

import re
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[2]
# What is held by nothing has to begin so, and say why.
ABSENT = ("missing: ", "not enforced")
REFERENCE = re.compile(r"`([\w/]+)`: ([^`]+?)(?=; `|$)")


@pytest.fixture(scope="module")
def rows(pages: Any) -> Any:
    return pages["docs/reference/sandbox-contract.md"].table("statement")


def _file(name: Any) -> Any:
    folder, _, last = name.rpartition("/")
    return TESTS / (folder or "sandbox") / f"test_{last}.py"


def _function(sentence: Any) -> Any:
    return "test_" + re.sub(r"\W+", "_", sentence.strip())


def _named(cell: Any) -> Any:
    """Each test that a cell names, as its file and its function."""
    return [
        (_file(name), _function(sentence)) for name, said in REFERENCE.findall(cell) for sentence in said.split("; ")
    ]


def test_every_section_has_a_table(pages: Any) -> None:
    text = pages["docs/reference/sandbox-contract.md"].text
    assert re.findall(r"^## (\d)", text, re.MULTILINE) == [str(number) for number in range(1, 10)]
    assert text.count("\n| statement |") == 9


def test_every_row_names_tests_or_a_reason(rows: Any) -> None:
    assert len(rows) > 120
    for line, there, held in rows:
        if held == "–":
            assert there.startswith(ABSENT), line
        else:
            assert REFERENCE.sub("", held).strip("; ") == "", line


def test_every_named_test_exists(rows: Any) -> None:
    named = {one for row in rows for one in _named(row[2])}
    assert len(named) > 120
    defined = {
        file: set(re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8"))) if file.exists() else set()
        for file, _ in named
    }
    assert sorted(f"{file.name}: {function}" for file, function in named if function not in defined[file]) == []


def test_cells_are_short(rows: Any) -> None:
    assert [row[0] for row in rows if len(row[0]) > 80 or len(row[1]) > 70] == []
