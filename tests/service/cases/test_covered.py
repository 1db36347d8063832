"""Tests of COVERED.md: the case of each row of the contract exists as a folder."""

import re
from pathlib import Path

HERE = Path(__file__).parent
SECTIONS = ("§1 ", "§1.1 ", "§2 ", "§3 ", "§4 ")


def _rows() -> dict[str, list[str]]:
    """The cases of each row, by its text; a row that stands twice in one section would be a slip."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in (HERE / "COVERED.md").read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif match := re.fullmatch(r"\| (.+) \| (.+) \|", line):
            row = f"{section}: {match[1]}"
            assert row not in found, f"{row} stands twice"
            found[row] = match[2].split(", ")
    return {row: cases for row, cases in found.items() if not row.endswith(": row")}


def test_every_row_names_cases_that_exist() -> None:
    folders = {folder.parent.name for folder in HERE.glob("*/request.txt")}
    missing = [f"{row}: {case}" for row, cases in _rows().items() for case in cases if case not in folders]
    assert missing == []


def test_every_case_belongs_to_a_row() -> None:
    named = {case for cases in _rows().values() for case in cases}
    assert sorted({folder.parent.name for folder in HERE.glob("*/request.txt")} - named) == []


def test_listed_sections_are_those_of_the_v3_contract() -> None:
    assert all(any(row.startswith(section) for row in _rows()) for section in SECTIONS)


def test_every_case_names_its_contract_section() -> None:
    texts = {path.parent.name: path.read_text() for path in HERE.glob("*/request.txt")}
    silent = [name for name, text in texts.items() if not re.search(r"^(?![A-Z]* ?/).*§\d", text, re.MULTILINE)]
    assert silent == []
