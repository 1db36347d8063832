"""Tests of columns filled in workbooks, from a source in memory."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from tools.sheet.filled_columns import NOW, REEL, Fill, columns
from tools.sheet.part_source import MemoryPartSource

from proxy import errors
from proxy.tools.sheet import fill
from proxy.tools.sheet.columns import quantities, workbook_table
from proxy.tools.sheet.columns.job import ColumnsJob
from proxy.tools.sheet.columns.lines import AS_RECOGNIZED, TableReading
from proxy.tools.sheet.package import workbook
from proxy.tools.sheet.parts import Offer, Part


def book_of(*rows: list[Any]) -> openpyxl.Workbook:
    """A workbook of a sheet with rows."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    return book


@pytest.fixture
def fill_book(fill_table: Fill) -> Fill:
    """Fills the sheet of parts of a workbook's file to a target."""

    def run(file: Path, *named: Any, **options: Any) -> Mapping[str, int]:
        with workbook.open_package(file) as package:
            return fill_table(workbook_table.choose(package, None, AS_RECOGNIZED), *named, **options)

    return run


def test_workbook_is_filled_in_the_style_of_its_sheet(fill_book: Fill, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Cover"
    sheet = book.create_sheet("Parts")
    for row in (["Robot"], [], ["Ref", "MPN", "Qty"], ["U1", "LM358N", 100], ["U2", 1234567, 1], ["", "=A4", ""]):
        sheet.append(row)
    sheet["C3"].font = openpyxl.styles.Font(bold=True)
    sheet["B4"].fill = openpyxl.styles.PatternFill("solid", fgColor="FFFF00")
    file, target = tmp_path / "BOM.xlsx", tmp_path / "BOM.filled.xlsx"
    book.save(file)
    original = file.read_bytes()
    with workbook.open_package(file) as package:
        table = workbook_table.choose(package, None, AS_RECOGNIZED)
        assert table.place.endswith("sheet 'Parts'")
    counts = fill_book(file, target, "price,stock,manufacturer")
    assert (counts["found"], counts["no value"], file.read_bytes()) == (1, 1, original)
    filled = openpyxl.load_workbook(target)
    assert filled.sheetnames == ["Cover", "Parts", "Offers"]
    rows = [[cell.value for cell in row] for row in filled["Parts"].iter_rows(min_row=3, max_row=5)]
    assert rows == [
        ["Ref", "MPN", "Qty", "Nexar price USD", "Nexar stock", "Nexar manufacturer", "Nexar status"],
        ["U1", "LM358N", 100, 0.3, 9500, "Texas Instruments", "found"],
        ["U2", 1234567, 1, None, None, "=cmd|' /C calc'!A0", "found, without price USD, stock"],
    ]
    assert filled["Parts"]["F5"].data_type in {"s", "inlineStr"}  # text, no formula
    assert filled["Parts"]["D3"].font.bold
    assert filled["Parts"]["E4"].fill.fgColor.rgb == "00FFFF00"
    assert filled["Parts"]["B6"].value == "=A4"
    assert [cell.value for cell in filled["Offers"]["D"]] == ["Distributor", "Digi-Key", "Mouser"]


def test_totals_of_distributors_are_a_sheet_that_the_next_run_updates(
    fill_book: Fill, source: MemoryPartSource, tmp_path: Path
) -> None:
    book = book_of(["MPN", "Qty"], ["LM358N", 2], ["ANY", 1], ["NOPE", 1])
    file, target = tmp_path / "BOM.xlsx", tmp_path / "BOM.filled.xlsx"
    book.save(file)
    source.parts["ANY"] = Part("ANY", "TI", offers=(REEL,))
    reading = TableReading(build=quantities.Build(10))

    def totals(of: Path, to: Path) -> list[tuple[Any, ...]]:
        fill_book(of, to, "total", reading=reading, offers=0)
        return list(openpyxl.load_workbook(to)["Summary"].iter_rows(values_only=True))

    assert totals(file, target) == [
        ("Distributor", "Lines", "Total", "Currency"),
        ("Mouser", 1, 250, "USD"),
        ("Digi-Key", 1, 12, "USD"),
        ("All", 2, 262, "USD"),
        ("One board", 2, 26.2, "USD"),
        ("Without price", 1, None, None),
    ]
    del source.parts["ANY"]
    source.cache.clear()
    again = totals(target, tmp_path / "again.xlsx")
    assert again[1:4] == [("Digi-Key", 1, 12, "USD"), ("All", 1, 12, "USD"), ("One board", 1, 1.2, "USD")]
    assert again[4] == ("Without price", 2, None, None)
    assert all(not any(row) for row in again[5:])


def test_formatted_but_empty_cells_are_no_data(fill_book: Fill, tmp_path: Path) -> None:
    book = book_of(["MPN"], ["LM358N"])
    for number in (1, 2):
        book.active.cell(number, 16_384).font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "BOM.xlsx")
    fill_book(tmp_path / "BOM.xlsx", tmp_path / "out.xlsx", "stock")
    assert openpyxl.load_workbook(tmp_path / "out.xlsx")["Sheet"]["B1"].value == "Nexar stock"


def test_sheet_without_room_is_an_error(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1"], book.active["A2"] = "MPN", "last", "LM358N"
    book.save(tmp_path / "BOM.xlsx")
    with (
        workbook.open_package(tmp_path / "BOM.xlsx") as package,
        pytest.raises(errors.SheetError, match="has no room for columns right of its data"),
    ):
        ColumnsJob(workbook_table.choose(package, None, AS_RECOGNIZED), columns("stock"), now=NOW)


HOSTILE = ("=1+1", 'O\'Brien & "Sons"', "<xml>", "a]b"[:2] + "'", "\u202egnp.exe", "𝔘𝔫𝔦", "../../etc/passwd"[:9])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_data(fill_book: Fill, source: MemoryPartSource, tmp_path: Path, name: str) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    title = "".join(each for each in name if each not in "[]*/\\?:")
    sheet.title = title
    sheet.append(["MPN", "Mfr"])
    sheet.append([name, name])
    sheet["A2"].data_type = sheet["B2"].data_type = "s"
    source.parts = {name: Part(name, name, short_description=name, offers=(Offer(name, name, True, name, 1),))}
    book.save(tmp_path / "BOM.xlsx")
    names = f"description,stock:{name.strip('=')},mpn"
    counts = fill_book(tmp_path / "BOM.xlsx", tmp_path / "out.xlsx", names)
    filled = openpyxl.load_workbook(tmp_path / "out.xlsx")
    assert counts["found"] == 1
    assert [cell.value for cell in filled[title][2]] == [name, name, name, 1, name, "found"]
    assert [cell.data_type for cell in filled[title][2]][:3] == ["s", "s", "s"]
    assert filled["Offers"]["D2"].value == name


def test_cells_that_cannot_be_read_are_named(source: MemoryPartSource, tmp_path: Path) -> None:
    book = book_of(
        *(["MPN", "Mfr", "Qty"], ["LM358N", '="TI"', "=2*5"], ['="LM358N"', "TI", 1], ["#REF!", "TI", 1]),
        *([45000, "TI", 1], [None, None, "=SUM(C2:C5)"]),
    )
    book.active["A5"].number_format = "dd.mm.yyyy"
    book.active["D2"] = "=1+1"  # without a heading, and without a value
    book.save(tmp_path / "BOM.xlsx")
    with workbook.open_package(tmp_path / "BOM.xlsx") as package:
        job = ColumnsJob(workbook_table.choose(package, None, AS_RECOGNIZED), columns("stock"), now=NOW)
        asyncio.run(fill.fetch(job, source, asyncio.Event()))
        job.write(tmp_path / "BOM.filled.xlsx")
    cell = "a date, an error or a formula without a value is no"
    assert job.problems == [
        f"B2: {cell} manufacturer: any is taken",
        f"C2: {cell} quantity: columns at the quantity of the line stay empty",
        *(f"A{row}: {cell} part number: the line is left out" for row in (3, 4, 5)),
    ]
    sheet = openpyxl.load_workbook(tmp_path / "BOM.filled.xlsx")["Sheet"]
    assert [cell.value for cell in sheet[1]] == ["MPN", "Mfr", "Qty", None, "Nexar stock", "Nexar status"]
    assert sheet["D2"].value == "=1+1"


def test_sheet_of_offers_is_replaced_by_the_next_run(fill_book: Fill, source: MemoryPartSource, tmp_path: Path) -> None:
    book = book_of(["MPN"], ["LM358N"])
    file, first, second = (tmp_path / name for name in ("BOM.xlsx", "BOM.filled.xlsx", "BOM.filled-2.xlsx"))
    book.save(file)
    fill_book(file, first, "stock")
    source.cache.clear()
    source.parts = {"LM358N": Part("LM358N", "TI", offers=(REEL,))}
    fill_book(first, second, "stock")
    filled = openpyxl.load_workbook(second)
    assert filled.sheetnames == ["Sheet", "Offers"]
    assert [cell.value for cell in filled["Offers"]["D"]] == ["Distributor", "Mouser", None]
    assert [[cell.value for cell in row] for row in filled["Sheet"]] == [
        ["MPN", "Nexar stock", "Nexar status"],
        ["LM358N", 9000, "found"],
    ]


def test_sheet_is_chosen_by_name_and_a_wrong_name_lists_them(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "One"
    book.create_sheet("Two").append(["MPN"])
    book.save(tmp_path / "BOM.xlsx")
    with workbook.open_package(tmp_path / "BOM.xlsx") as package:
        assert "'Two'" in workbook_table.choose(package, "two", AS_RECOGNIZED).place
        with pytest.raises(errors.SheetError, match="has no sheet 'Three'; there are 'One', 'Two'"):
            workbook_table.choose(package, "Three", AS_RECOGNIZED)
