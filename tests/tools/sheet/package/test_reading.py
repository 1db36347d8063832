"""Values and formulas as the rows of a sheet have them."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support import cases
from tools.sheet.package import exact_workbook

from proxy import errors
from proxy.tools.sheet.package import reading, workbook
from proxy.tools.sheet.package.cells import Cell, CellError, Formula


def rows(path: Path, data: str, **more: Any) -> dict[int, list[Cell]]:
    content = exact_workbook.parts(exact_workbook.sheet(data), **more)
    with workbook.open_package(exact_workbook.written(path / "book.xlsx", content)) as package:
        return dict(package.rows(package.sheets[0]))


def values(path: Path, cells: str, **more: Any) -> list[Any]:
    return [cell.value for cell in rows(path, f"<row>{cells}</row>", **more)[1]]


def test_each_type_of_cell_has_its_value(tmp_path: Path) -> None:
    cells = (
        '<c><v>0.1</v></c><c t="n"><v>1E3</v></c><c t="b"><v>1</v></c><c t="b"><v>0</v></c><c t="e"><v>#N/A</v></c>'
        '<c t="str"><v>a_x000D_b</v></c><c t="inlineStr"><is><t> x </t></is></c><c s="4"/><c t="str"><v></v></c>'
        '<c t="d"><v>2026-11-22T12:00:00</v></c>'
    )
    assert values(tmp_path, cells) == [
        Decimal("0.1"),
        Decimal("1E3"),
        True,
        False,
        CellError("#N/A"),
        "a\rb",
        " x ",
        None,
        "",
        Decimal("46348.5"),
    ]


def test_runs_of_a_text_are_joined_without_its_phonetic_ones(tmp_path: Path) -> None:
    runs = "<r><rPr><b/></rPr><t>東</t></r><r><t>京</t></r><rPh><t>トウ</t></rPh><phoneticPr/>"
    shared = f'<sst xmlns="{exact_workbook.MAIN}"><si><t>plain</t></si><si>{runs}</si><si/></sst>'
    cells = (
        '<c t="s"><v>1</v></c><c t="s"><v>0</v></c><c t="s"><v>2</v></c>'
        f'<c t="inlineStr"><is>{runs}</is></c><c t="s"><v>0</v></c>'
    )
    assert values(tmp_path, cells, sharedStrings=shared) == ["東京", "plain", "", "東京", "plain"]


def test_formulas_arrive_as_they_read_in_their_cells(tmp_path: Path) -> None:
    data = (
        '<row r="1"><c r="A1"><f>B1&amp;"x"</f><v>1</v></c>'
        '<c r="B1" cm="1"><f t="array" ref="B1:B2">_xll.F(A1)</f></c>'
        '<c r="C1"><f t="shared" ref="C1:C3" si="0">A1+$A$1</f></c>'
        '<c r="D1"><f t="dataTable" ref="D1:D9" r1="A1"/></c></row>'
        '<row r="2"><c r="C2"><f t="shared" si="0"/><v>7</v></c></row>'
    )
    first, second = rows(tmp_path, data).values()
    assert [cell.formula for cell in first] == [
        Formula('B1&"x"'),
        Formula("_xll.F(A1)", "array", "B1:B2"),
        Formula("A1+$A$1", "shared", "C1:C3"),
        Formula("", "table", "D1:D9"),
    ]
    assert second == [Cell(2, 3, Decimal(7), 0, Formula("A2+$A$1", "shared"))]


def test_a_shared_formula_that_leaves_the_sheet_is_an_invalid_reference(tmp_path: Path) -> None:
    data = '<row r="2"><c r="A2"><f t="shared" si="0">A1</f></c><c r="B2"/></row><row r="3"/>'
    upward = data.replace('r="2"', 'r="1"').replace("A2", "B1").replace("B2", "C1").replace(">A1<", ">$A2+A1<")
    moved = upward.replace('<row r="3"/>', '<row r="3"><c r="A3"><f t="shared" si="0"/></c></row>')
    assert rows(tmp_path, moved)[3][0].formula == Formula("#REF!", "shared")


def test_shared_formulas_of_all_sheets_are_bounded(tmp_path: Path) -> None:
    first = f'<row><c><f t="shared" si="0">"{"x" * 8000}"</f></c></row>'
    sheet = exact_workbook.sheet(first + '<row><c><f t="shared" si="0"/></c></row>' * 400)
    with workbook.open_package(
        exact_workbook.written(tmp_path / "book.xlsx", exact_workbook.parts(sheet, sheet))
    ) as package:
        one, two = package.sheets
        assert [len(list(package.rows(one))) for _ in range(2)] == [401, 401]  # reading it again is no more
        with pytest.raises(errors.SheetError, match="'Two' has too many shared formulas"):
            list(package.rows(two))
        assert len(list(package.rows(two, formulas=False))) == 401


@pytest.mark.parametrize(
    "data,problem",
    [
        *cases.of(__file__, "what_excel_would_not_open_is_refused_in_one_line"),
        (f"<row><c><v>{'9' * 600}</v></c></row>", "wrong value in cell A1"),
        (f'<row><c><f t="shared" si="3">{"1+" * 5000}1</f></c></row>', "formula of more than 8192"),
        (f'<row><c t="str"><v>{"x" * (1 << 21)}</v></c></row>', "more than 1048576 characters"),
        (f'<row><c t="inlineStr"><is><t>{"x" * (1 << 21)}</t></is></c></row>', "more than 1048576 characters"),
    ],
)
def test_what_excel_would_not_open_is_refused_in_one_line(tmp_path: Path, data: str, problem: str) -> None:
    shared = f'<sst xmlns="{exact_workbook.MAIN}"><si><t>only</t></si></sst>'
    with pytest.raises(errors.SheetError, match=problem) as error:
        rows(tmp_path, data, sharedStrings=shared)
    assert "\n" not in str(error.value)
    assert "book.xlsx: the sheet 'One'" in str(error.value)


def test_a_shared_formula_whose_first_cell_is_gone_leaves_the_others_readable(tmp_path: Path) -> None:
    first = rows(tmp_path, '<row r="1"><c r="A1"><f t="shared" si="3"/><v>7</v></c><c r="B1"><v>8</v></c></row>')[1]
    assert first == [Cell(1, 1, Decimal(7), 0, Formula("", "shared")), Cell(1, 2, Decimal(8))]


def test_a_long_text_that_a_row_repeats_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PENDING_MAX", 1 << 16)
    shared = f'<sst xmlns="{exact_workbook.MAIN}"><si><t>{"x" * 30_000}</t></si></sst>'
    with pytest.raises(errors.SheetError, match="more text in row 1"):
        rows(tmp_path, "<row>" + '<c t="s"><v>0</v></c>' * 3 + "</row>", sharedStrings=shared)


def test_an_extreme_number_is_a_double_as_in_excel(tmp_path: Path) -> None:
    assert values(tmp_path, "<c><v>1e-999999999</v></c><c><v>1e308</v></c>") == [Decimal(0), Decimal("1e308")]
