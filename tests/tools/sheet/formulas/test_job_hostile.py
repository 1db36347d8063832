"""Formulas that no program wrote: one clear line, or a workbook whose other cells are filled."""

from pathlib import Path

import pytest
from support.workbooks import hostile

from proxy import errors
from proxy.tools.sheet.formulas import job
from proxy.tools.sheet.package import workbook
from proxy.tools.sheet.parts import PartResult

FORMULAS = [
    name for name in hostile.ODD if any(word in name for word in ("formula", "circle", "cell of", "distributors"))
]
OPTIONS = job.FormulaOptions(login_optional=True, now=1e9)


def _fill(file: Path, target: Path) -> job.FormulaJob:
    with workbook.open_package(file) as package:
        filling = job.FormulaJob(package, OPTIONS)
        for query in filling.queries:
            filling.add(PartResult(query, None, 0, None, 1e9))
        filling.write(target)
        return filling


@pytest.mark.parametrize("name", FORMULAS)
def test_odd_formulas_are_filled_or_refused(tmp_path: Path, name: str) -> None:
    file, target = tmp_path / name, tmp_path / "filled.xlsx"
    content = hostile.ODD[name]()
    file.write_bytes(content)
    refusal = ""
    try:
        _fill(file, target)
    except errors.SheetError as error:
        refusal = str(error)
    assert refusal.isprintable()
    assert bool(refusal) == (not target.exists())
    assert file.read_bytes() == content


@pytest.mark.parametrize("name, words", [
    ("circle of two cells.xlsx", "circular reference: BOM!B2 → BOM!B3 → BOM!B2"),
    ("cell of itself.xlsx", "circular reference: BOM!B2 → BOM!B2"),
    ("long formula.xlsx", "BOM!B2: the formula is longer than Excel allows"),
])  # fmt: skip
def test_refusal_names_the_cells(tmp_path: Path, name: str, words: str) -> None:
    file = tmp_path / name
    file.write_bytes(hostile.ODD[name]())
    with pytest.raises(errors.SheetError, match=words):
        _fill(file, tmp_path / "filled.xlsx")


def test_formula_nested_60_deep_has_its_call_found(tmp_path: Path) -> None:
    file = tmp_path / "nested.xlsx"
    file.write_bytes(hostile.ODD["formula nested 60 deep.xlsx"]())
    with workbook.open_package(file) as package:
        assert [query.mpn for query in job.FormulaJob(package, OPTIONS).queries] == [hostile.PART]


def test_formulas_of_nonsense_are_listed_with_their_cells(tmp_path: Path) -> None:
    file = tmp_path / "nonsense.xlsx"
    file.write_bytes(hostile.ODD["formulas of nonsense.xlsx"]())
    problems = [str(problem) for problem in _fill(file, tmp_path / "filled.xlsx").problems]
    assert "BOM!B2: the formula lacks a closing parenthesis" in problems
    assert "BOM!B8: no add-in has the function NEXAR_SUPPLY_NOTHING" in problems
