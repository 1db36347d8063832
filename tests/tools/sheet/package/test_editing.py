"""Changed cells in the source text of a sheet: every other byte stays."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from tools.sheet.package import exact_workbook

from proxy import errors
from proxy.tools.sheet.package import cells, workbook
from proxy.tools.sheet.package.cells import CellChange

SHEET = "xl/worksheets/sheet1.xml"
Changes = Mapping[tuple[int, int], CellChange]


def edited(folder: Path, xml: str, changes: Changes, **more: str) -> str:
    """Return the XML of a sheet after the changes."""
    path, target = (
        exact_workbook.written(folder / "book.xlsx", exact_workbook.parts(xml, **more)),
        folder / "filled.xlsx",
    )
    with workbook.open_package(path) as package:
        package.save(target, {"One": changes})
    return exact_workbook.part(target, SHEET).decode()


def refusal(folder: Path, xml: str, changes: Changes, **more: str) -> str:
    with pytest.raises(errors.SheetError) as error:
        edited(folder, xml, changes, **more)
    assert not (folder / "filled.xlsx").exists()
    return str(error.value)


def new(value: cells.CellValue, **more: bool) -> CellChange:
    return CellChange(value, **more)


ODD = (  # what programs write, and a parser that builds a tree would write differently
    "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>\r\n<!-- c --><worksheet\n"
    f" xmlns='{exact_workbook.MAIN}' xmlns:x14ac='urn:a'  xmlns:mc=\"urn:b\" mc:Ignorable='x14ac'>\r\n"
    '<sheetFormatPr x14ac:dyDescent="0.25" /><sheetData >\n'
    "  <row r='2' spans='1:3' x14ac:dyDescent='0.25'><?pi?><c r='A2' s='1' t='str'><v >0</v></c ><!-- > -->"
    '<c r="C2"><f a=">">1&gt;0</f><v>1</v><extLst><ext uri="{&quot;}"/></extLst></c></row >\n'
    "<row r=\"4\" ht='15' /></sheetData><extLst><ext uri='{1}'><![CDATA[<c r=\"A2\"/>]]></ext></extLst></worksheet>\n"
)


def test_a_changed_cell_is_all_that_differs(tmp_path: Path) -> None:
    old = "<c r='A2' s='1' t='str'><v >0</v></c >"
    after = edited(tmp_path, ODD, {(2, 1): new(Decimal("0.10"))})
    assert after == ODD.replace(old, "<c r='A2' s='1'><v>0.10</v></c>")


def test_a_formula_stays_with_its_new_result(tmp_path: Path) -> None:
    formula = '<c r="C2"><f a=">">1&gt;0</f><v>1</v><extLst><ext uri="{&quot;}"/></extLst></c>'
    for value, kind, content in (("a<b", ' t="str"', "<v>a&lt;b</v>"), (True, ' t="b"', "<v>1</v>"), (None, "", "")):
        expected = formula.replace('r="C2"', f'r="C2"{kind}').replace("<v>1</v>", content)
        assert edited(tmp_path, ODD, {(2, 3): new(value)}) == ODD.replace(formula, expected)
    dropped = '<c r="C2" t="e"><v>#N/A</v><extLst><ext uri="{&quot;}"/></extLst></c>'
    change = {(2, 3): new(cells.CellError("#N/A"), drop_formula=True)}
    assert edited(tmp_path, ODD, change) == ODD.replace(formula, dropped)


def test_new_cells_and_rows_stand_in_order(tmp_path: Path) -> None:
    changes = {
        place: new(Decimal(place[0] * 10 + place[1])) for place in ((1, 2), (2, 2), (2, 4), (3, 1), (4, 1), (5, 3))
    }
    expected = ODD.replace("<sheetData >\n  ", '<sheetData >\n  <row r="1"><c r="B1"><v>12</v></c></row>')
    expected = expected.replace("spans='1:3'", 'spans="1:4"')
    expected = expected.replace('<c r="C2">', '<c r="B2"><v>22</v></c><c r="C2">')
    expected = expected.replace("</row >", '<c r="D2"><v>24</v></c></row >')
    expected = expected.replace(
        "<row r=\"4\" ht='15' />",
        '<row r="3"><c r="A3"><v>31</v></c></row><row r="4" ht=\'15\'><c r="A4"><v>41</v></c></row>',
    )
    expected = expected.replace("</sheetData>", '<row r="5"><c r="C5"><v>53</v></c></row></sheetData>')
    assert edited(tmp_path, ODD, changes) == expected


def test_the_used_range_grows(tmp_path: Path) -> None:
    xml = exact_workbook.sheet('<row r="2"><c r="B2"/></row>', before='<dimension ref="B2" />')
    assert '<dimension ref="B2:D9" />' in edited(tmp_path, xml, {(9, 4): new(Decimal(1)), (99, 99): new(None)})
    assert '<dimension ref="A1:B2" />' in edited(tmp_path, xml, {(1, 1): new("x")})
    assert '<dimension ref="B2" />' in edited(tmp_path, xml, {(2, 2): new("x")})


def test_metadata_stays_with_the_formula_that_it_belongs_to(tmp_path: Path) -> None:
    cell = '<c r="A1" t="e" cm="1" vm="3"><f t="array" ref="A1">F()</f><v>#VALUE!</v></c>'
    xml = exact_workbook.sheet(f'<row r="1">{cell}</row>')
    kept = edited(tmp_path, xml, {(1, 1): new(Decimal(2))})
    assert kept == xml.replace(cell, '<c r="A1" cm="1"><f t="array" ref="A1">F()</f><v>2</v></c>')
    dropped = edited(tmp_path, xml, {(1, 1): new(Decimal(2), drop_formula=True)})
    assert dropped == xml.replace(cell, '<c r="A1"><v>2</v></c>')


def test_formulas_that_shared_a_dropped_one_get_their_own(tmp_path: Path) -> None:
    rows = (
        '<row r="1"><c r="A1"><f t="shared" ref="A1:A4" si="0">B1&amp;"&lt;"</f><v>1</v></c></row>'
        '<row r="2"><c r="A2"><f t="shared" si="0"/><v>2</v></c></row>'
        '<row r="3"><c r="A3"><f t="shared" si="0"></f><v>3</v></c></row>'
        '<row r="4"><c r="A4"><f t="shared" si="0"/><v>4</v></c></row>'
    )
    change = {(1, 1): new(Decimal(9), drop_formula=True), (3, 1): new("t"), (4, 1): new(Decimal(8), drop_formula=True)}
    assert edited(tmp_path, exact_workbook.sheet(rows), change) == exact_workbook.sheet(
        '<row r="1"><c r="A1"><v>9</v></c></row>'
        '<row r="2"><c r="A2"><f>B2&amp;&quot;&lt;&quot;</f><v>2</v></c></row>'
        '<row r="3"><c r="A3" t="str"><f>B3&amp;&quot;&lt;&quot;</f><v>t</v></c></row>'
        '<row r="4"><c r="A4"><v>8</v></c></row>'
    )


def test_text_that_could_be_a_formula_is_text(tmp_path: Path) -> None:
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "1", "TRUE", " padded\n"):
        edited(tmp_path, exact_workbook.sheet(""), {(1, 1): new(text)})
        with workbook.open_package(tmp_path / "filled.xlsx") as package:
            assert list(package.rows(package.sheets[0])) == [(1, [cells.Cell(1, 1, text)])]


@pytest.mark.parametrize(
    "value,problem",
    [
        ("x" * 32_768, "cell A1 has a text of more than 32767 characters"),
        ("\U0001f600" * 16_384, "cell A1 has a text of more than 32767 characters"),
        (Decimal("NaN"), "cell A1 has a number that Excel cannot store"),
        (Decimal("1e309"), "cell A1 has a number that Excel cannot store"),
    ],
)
def test_a_value_that_excel_cannot_hold_is_refused(tmp_path: Path, value: cells.CellValue, problem: str) -> None:
    assert problem in refusal(tmp_path, exact_workbook.sheet(""), {(1, 1): new(value)})


def test_a_value_that_merged_cells_would_hide_is_refused(tmp_path: Path) -> None:
    xml = exact_workbook.sheet("", after='<mergeCells count="1"><mergeCell ref="A1:C2"/></mergeCells>')
    assert "merged cells A1:C2 that would hide B2: unmerge them first" in refusal(tmp_path, xml, {(2, 2): new("x")})
    assert "<v>1</v>" in edited(tmp_path, xml, {(1, 1): new(Decimal(1)), (2, 2): new(None), (2, 4): new("y")})


def test_an_endless_cell_is_refused(tmp_path: Path) -> None:
    rows = '<row r="1"><c r="A1"><f>' + ("1+" * 1000 + "<!-- x -->") * 5000 + "1</f></c></row>"
    assert "of more than 8 MiB" in refusal(tmp_path, exact_workbook.sheet(rows), {(1, 1): new("x")})
