"""New sheets, and formulas that leave the calculation chain."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.sheet.package import exact_workbook

from proxy import errors
from proxy.tools.sheet.package import cells, workbook

FORMULAS = '<row r="1">' + "".join(f'<c r="{name}1"><f>1</f><v>1</v></c>' for name in "ABC") + "</row>"
CHAIN = '<calcChain xmlns="{}">{}</calcChain>'
STYLES = (
    '<styleSheet xmlns="{}"><fonts><font/><font><b val="0"/></font><font><sz val="9"/><b/></font></fonts>'
    '<cellStyleXfs><xf fontId="2"/></cellStyleXfs><cellXfs><xf fontId="0" numFmtId="0"/><xf fontId="2" numFmtId="14"/>'
    '<xf fontId="1" numFmtId="0"/><xf fontId="2" numFmtId="0"/></cellXfs></styleSheet>'
)


def saved(folder: Path, content: dict[str, str | bytes], *new: cells.NewSheet, **dropped: Sequence[str]) -> Path:
    """Save a copy with new sheets, and without the formulas of cells, by the name of their sheet."""
    path, target = exact_workbook.written(folder / "book.xlsx", content), folder / "filled.xlsx"
    change = cells.CellChange(Decimal(2), drop_formula=True)
    with workbook.open_package(path) as package:
        package.save(
            target,
            {name: {cells.parse_reference(cell): change for cell in names} for name, names in dropped.items()},
            new,
        )
    return target


def test_a_new_sheet_changes_only_the_parts_that_list_sheets(tmp_path: Path) -> None:
    content = exact_workbook.parts(
        exact_workbook.sheet(FORMULAS), exact_workbook.sheet(""), styles=STYLES.format(exact_workbook.MAIN)
    )
    rows: list[list[cells.CellValue]] = [["MPN", "Price"], ["=1+1", Decimal("0.5")], [None, True]]
    target = saved(tmp_path, content, cells.NewSheet("Offers", rows), cells.NewSheet("offers", iter([["x"]])))
    changed = [name for name, text in content.items() if exact_workbook.part(target, name) != str(text).encode()]
    assert changed == ["[Content_Types].xml", "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml"]
    with workbook.open_package(target) as package:
        assert [sheet.name for sheet in package.sheets] == ["One", "Two", "Offers", "offers (2)"]
        assert len({sheet.identifier for sheet in package.sheets}) == 4
        assert [row for _, row in package.rows(package.sheets[2])] == [
            [cells.Cell(1, 1, "MPN", 4), cells.Cell(1, 2, "Price", 4)],
            [cells.Cell(2, 1, "=1+1"), cells.Cell(2, 2, Decimal("0.5"))],
            [cells.Cell(3, 2, True)],
        ]


def test_another_reader_sees_the_new_sheet(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"] = "MPN"
    book.save(tmp_path / "own.xlsx")
    target = tmp_path / "filled.xlsx"
    with workbook.open_package(tmp_path / "own.xlsx") as package:
        package.save(target, {}, [cells.NewSheet("Offers", [["Seller"], ["=x", Decimal("1.25"), False]])])
    read = openpyxl.load_workbook(target)
    assert [list(sheet.values) for sheet in read.worksheets] == [
        [("MPN",)],
        [("Seller", None, None), ("=x", 1.25, False)],
    ]
    assert read.worksheets[1]["A2"].data_type != "f"


@given(st.lists(st.text(), min_size=1, max_size=5))
@settings(max_examples=60)
def test_any_name_becomes_a_legal_and_unique_one(tmp_path_factory: pytest.TempPathFactory, wishes: list[str]) -> None:
    folder = tmp_path_factory.mktemp("book")
    new = [cells.NewSheet(wish, [["x"]]) for wish in wishes]
    target = saved(folder, exact_workbook.parts(exact_workbook.sheet("")), *new)
    with workbook.open_package(target) as package:
        names = [sheet.name for sheet in package.sheets]
    assert len({name.lower() for name in names}) == 1 + len(wishes)
    for name in names:
        assert 0 < len(name.encode("utf-16-le")) // 2 <= 31
        assert not set(name) & set("[]:*?/\\")
        assert name.strip("'") == name
        assert name.lower() != "history"
    assert openpyxl.load_workbook(target).sheetnames == names


def test_a_name_stays_where_it_is_legal(tmp_path: Path) -> None:
    new = [cells.NewSheet(name, []) for name in ("Angebote & Preise", "One", "x" * 40, "x" * 40, "History")]
    with workbook.open_package(saved(tmp_path, exact_workbook.parts(exact_workbook.sheet("")), *new)) as package:
        assert [sheet.name for sheet in package.sheets] == [
            "One",
            "Angebote & Preise",
            "One (2)",
            "x" * 31,
            "x" * 27 + " (2)",
            "History_",
        ]


def _endless() -> Iterator[list[cells.CellValue]]:
    while True:
        yield []


@pytest.mark.parametrize(
    "rows,problem",
    [
        (_endless(), "more cells than a sheet can have"),
        ([[None] * 16_385], "more cells than a sheet can have"),
        ([[], ["a", "x" * 40_000]], "sheet 'New', cell B2 has a text of more than 32767"),
    ],
)
def test_what_a_sheet_cannot_hold_is_refused(
    tmp_path: Path, rows: Iterator[list[cells.CellValue]], problem: str
) -> None:
    with pytest.raises(errors.SheetError, match=problem):
        saved(tmp_path, exact_workbook.parts(exact_workbook.sheet("")), cells.NewSheet("New", rows))
    assert not (tmp_path / "filled.xlsx").exists()


def chain_after(folder: Path, entries: str, **dropped: Sequence[str]) -> str | None:
    """Return the entries of the calculation chain after formulas are dropped; None: the part is gone."""
    content = exact_workbook.parts(
        exact_workbook.sheet(FORMULAS),
        exact_workbook.sheet(FORMULAS),
        calcChain=CHAIN.format(exact_workbook.MAIN, entries),
    )
    target = saved(folder, content, **dropped)
    try:
        text = exact_workbook.part(target, "xl/calcChain.xml").decode()
    except KeyError:
        return None
    return text.removeprefix(CHAIN.split("{}", maxsplit=1)[0] + exact_workbook.MAIN + '">').removesuffix("</calcChain>")


ENTRIES = '<c r="A1" i="6" l="1"/><c r="B1"/><c r="C1" s="1"></c><c r="A1" i="7"/><c r="B1" />'


def test_dropped_formulas_leave_the_calculation_chain(tmp_path: Path) -> None:
    assert chain_after(tmp_path, ENTRIES, One=["B1"]) == ENTRIES.replace('<c r="B1"/>', "", 1)
    assert chain_after(tmp_path, ENTRIES, Two=["B1"]) == ENTRIES.removesuffix('<c r="B1" />')


def test_an_empty_chain_goes_with_all_that_names_it(tmp_path: Path) -> None:
    assert chain_after(tmp_path, ENTRIES, One=["A1", "B1", "C1"], Two=["A1", "B1"]) is None
    assert b"calcChain" not in exact_workbook.part(tmp_path / "filled.xlsx", "xl/_rels/workbook.xml.rels")
    assert b"calcChain" not in exact_workbook.part(tmp_path / "filled.xlsx", "[Content_Types].xml")
    openpyxl.load_workbook(tmp_path / "filled.xlsx")
