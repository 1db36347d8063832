"""Tests of columns filled in CSV files and workbooks, from a source in memory."""

import asyncio
import csv
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from support.part_source import MemoryPartSource

from proxy import errors
from proxy.sheet import fill
from proxy.sheet.columns import csv_table, specs, workbook_table
from proxy.sheet.columns.job import ColumnsJob
from proxy.sheet.columns.specs import ColumnSet
from proxy.sheet.offers import OfferRules
from proxy.sheet.package import workbook
from proxy.sheet.parts import STALE_SECONDS, Offer, Part, PartQuery, Price

NOW = 1_700_000_000.0
DIGIKEY = Offer(
    "459", "Digi-Key", True, "296-1", 500, 1, 1, 42, "Tube", "https://d.example/1", "2026-01-01",
    (Price(1, Decimal("0.60"), "USD"), Price(100, Decimal("0.30"), "USD")),
)  # fmt: skip
REEL = Offer(
    "2401", "Mouser", False, "595-1", 9000, 2500, 2500, None, "Reel", prices=(Price(1, Decimal("0.1"), "USD"),)
)
LM358 = Part(
    "LM358N", "Texas Instruments", "https://p.example", "Op amp", "https://d.example/lm358.pdf", "Active", "DIP-8",
    (DIGIKEY, REEL),
)  # fmt: skip
PARTS = {"LM358N": LM358, "1234567": Part("1234567", "=cmd|' /C calc'!A0", short_description="-1+1")}


def columns(names: str, **more: Any) -> ColumnSet:
    """Columns by name."""
    return ColumnSet(specs.parse_list(names), **more)


Fill = Callable[..., Mapping[str, int]]


@pytest.fixture
def source() -> MemoryPartSource:
    """Parts of this module."""
    return MemoryPartSource(PARTS, now=NOW)


@pytest.fixture
def fill_table(source: MemoryPartSource) -> Fill:
    """Fills a table to a target."""

    def run(table: Any, target: Path, names: str, *, named: Mapping[str, str] = {}, **more: Any) -> Mapping[str, int]:
        job_options = {name: more.pop(name) for name in ("rerun_failures", "fetched_before") if name in more}
        job = ColumnsJob(table, columns(names, **more), named=named, now=NOW, **job_options)
        asyncio.run(fill.fetch(job, source, asyncio.Event()))
        return job.write(target)

    return run


def rows_of(file: Path, delimiter: str = ",") -> list[list[str]]:
    """Return the cells of a CSV file."""
    with file.open(newline="", encoding="utf-8-sig") as stream:
        return list(csv.reader(stream, delimiter=delimiter))


def test_csv_gets_columns_right_of_its_data(fill_table: Fill, tmp_path: Path) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    file.write_text("Project X\nRef,MPN,Qty\nU1,LM358N,150\nU2,NOPE,1,a note\n,Total,151\n")
    counts = fill_table(csv_table.CsvTable(file), target, "price@100,price,stock,lead_time,datasheet")
    assert rows_of(target) == [
        ["Project X"],
        [
            *("Ref", "MPN", "Qty", "", "Nexar price @100 USD", "Nexar price USD", "Nexar stock"),
            *("Nexar lead time days", "Nexar datasheet", "Nexar status"),
        ],
        ["U1", "LM358N", "150", "", "0.3", "0.3", "9500", "42", "https://d.example/lm358.pdf", "found"],
        ["U2", "NOPE", "1", "a note", "", "", "", "", "", "not found"],
        ["", "Total", "151"],
    ]
    assert counts == {"found": 1, "not found": 1, "stale": 0, "ambiguous": 0, "failed": 0, "not fetched": 0}
    offers = rows_of(tmp_path / "BOM.offers.csv")
    assert [row[3] for row in offers] == ["Distributor", "Digi-Key", "Mouser"]
    assert offers[1][:15] == [
        *("3", "LM358N", "Texas Instruments", "Digi-Key", "TRUE", "TRUE", "296-1", "500", "1", "1", "42", "Tube"),
        *("150", "0.3", "45"),
    ]


def test_second_run_updates_its_own_columns(fill_table: Fill, source: MemoryPartSource, tmp_path: Path) -> None:
    file, first, second = (tmp_path / name for name in ("BOM.csv", "BOM.filled.csv", "BOM.filled-2.csv"))
    file.write_text("MPN,Stock\nLM358N,mine\n")
    fill_table(csv_table.CsvTable(file), first, "stock,price")
    source.cache.clear()
    source.parts = {"LM358N": Part("LM358N", "TI", offers=(REEL,))}
    fill_table(csv_table.CsvTable(first), second, "price,moq,stock")
    assert rows_of(second) == [
        ["MPN", "Stock", "Nexar stock", "Nexar price USD", "Nexar status", "Nexar MOQ"],
        ["LM358N", "mine", "9000", "0.1", "found", "2500"],
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_keeps_encoding_delimiter_and_line_ends(
    fill_table: Fill, tmp_path: Path, encoding: str, delimiter: str, end: str
) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    text = f'Würth,MPN,"a ""b"""{end}x, LM358N,"two\nlines"{end}y,NOPE,{end}'.replace(",", delimiter)
    file.write_bytes(text.encode(encoding))
    fill_table(csv_table.CsvTable(file), target, "package")
    header = f'Würth,MPN,"a ""b""",Nexar package,Nexar status{end}'
    expected = f'{header}x, LM358N,"two\nlines",DIP-8,found{end}y,NOPE,,,not found{end}'
    assert target.read_bytes() == expected.replace(",", delimiter).encode(encoding)


@pytest.mark.parametrize(
    "quoted, expected",
    [
        ('"MPN","Qty"\n"LM358N","5"\n', '"LM358N","5","0.6","Tube","found"\n'),
        ('"MPN","Qty"\n"LM358N",5\n', '"LM358N",5,0.6,"Tube","found"\n'),
        ("MPN,Qty\nLM358N,5", "LM358N,5,0.6,Tube,found"),
    ],
)
def test_csv_keeps_its_style_of_quotes(fill_table: Fill, tmp_path: Path, quoted: str, expected: str) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    file.write_text(quoted)
    fill_table(csv_table.CsvTable(file), target, "price,packaging")
    assert target.read_text().partition("\n")[2] == expected


def test_decimal_comma_of_the_file_is_used(fill_table: Fill, tmp_path: Path) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    file.write_text("MPN;Preis\nLM358N;1,50\n")
    fill_table(csv_table.CsvTable(file), target, "price")
    assert target.read_text().endswith("LM358N;1,50;0,6;found\n")


def test_texts_that_look_like_formulas_are_quoted_in_csv(fill_table: Fill, tmp_path: Path) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    file.write_text("MPN\n1234567\n")
    fill_table(csv_table.CsvTable(file), target, "manufacturer,description")
    assert rows_of(target)[1] == ["1234567", "'=cmd|' /C calc'!A0", "'-1+1", "found"]


def test_bytes_and_characters_beyond_the_encoding_survive(fill_table: Fill, tmp_path: Path) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    file.write_bytes(b"MPN,M\xfcller\nLM358N,\x81\x8d\n")
    fill_table(csv_table.CsvTable(file), target, "stock:Дистрибьютор")
    assert target.read_bytes() == b"MPN,M\xfcller,Nexar stock " + b"?" * 12 + b",Nexar status\nLM358N,\x81\x8d,,found\n"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,b\n1,2\n", b"PK\x00\x01\x00", b"\xd0\xcf\x11\xe0\0\0"])
def test_file_without_part_numbers_is_an_error_that_names_it(fill_table: Fill, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "BOM.csv"
    file.write_bytes(content)
    with pytest.raises(errors.SheetError, match=r"BOM\.csv: "):
        fill_table(csv_table.CsvTable(file), tmp_path / "out.csv", "price")
    assert not (tmp_path / "out.csv").exists()


def test_ambiguous_failed_and_stale_lines_say_so(fill_table: Fill, source: MemoryPartSource, tmp_path: Path) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    file.write_text("MPN,Manufacturer\nLM358N,\nLM358N,TI\nBROKEN,\n1234567,\n")
    source.hits["LM358N"] = 3
    source.errors["BROKEN"] = "=timeout"
    job = ColumnsJob(csv_table.CsvTable(file), columns("package"), named={}, now=NOW + 3600)
    asyncio.run(fill.fetch(job, source, asyncio.Event()))
    job.add(source.cache[PartQuery("1234567")]._replace(fetched=NOW - STALE_SECONDS))
    assert {name: count for name, count in job.write(target).items() if count} == dict.fromkeys(
        ("ambiguous", "found", "failed", "stale"), 1
    )
    assert [row[3] for row in rows_of(target)[1:]] == [
        "ambiguous: 3 parts match, these values are of Texas Instruments: state the manufacturer",
        "found",
        "failed: =timeout",
        "stale: fetched 2023-11-13 22:13 UTC",
    ]


def test_stopped_run_writes_what_it_has(source: MemoryPartSource, tmp_path: Path) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    file.write_text("MPN\nLM358N\n1234567\n")
    source.batch = 1
    job = ColumnsJob(csv_table.CsvTable(file), columns("package"), named={}, now=NOW)
    asyncio.run(fill.fetch(job, source, asyncio.Event(), budget=1))
    assert job.write(target)["not fetched"] == 1
    assert [row[-1] for row in rows_of(target)[1:]] == ["found", "not fetched"]


def test_failures_are_rerun_and_other_values_stay(fill_table: Fill, source: MemoryPartSource, tmp_path: Path) -> None:
    file, target = tmp_path / "BOM.filled.csv", tmp_path / "out.csv"
    heading = "MPN,Nexar package,Nexar status\n"
    file.write_text(f"{heading}LM358N,OLD,found\n1234567,OLD,failed: timeout\nX,OLD,stale: since\n")
    ages = {PartQuery("LM358N"): NOW - 10, PartQuery("X"): NOW - STALE_SECONDS - 1}
    counts = fill_table(csv_table.CsvTable(file), target, "package", rerun_failures=True, fetched_before=ages.get)
    assert rows_of(target)[1:] == [
        ["LM358N", "OLD", "found"],
        ["1234567", "", "found"],
        ["X", "OLD", "stale: fetched 2023-11-13 22:13 UTC"],
    ]
    assert (source.parts_spent, counts["stale"]) == (1, 1)
    fill_table(csv_table.CsvTable(file), target, "package", rerun_failures=True)
    assert rows_of(target)[1][2] == "stale: fetched at an unknown time"


def test_failures_of_a_file_that_was_never_filled_cannot_be_rerun(fill_table: Fill, tmp_path: Path) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text("MPN\nLM358N\n")
    with pytest.raises(errors.SheetError, match="--rerun-failures needs a file that was filled"):
        fill_table(csv_table.CsvTable(file), tmp_path / "out.csv", "package", rerun_failures=True)


def test_rerun_of_failures_adds_no_columns(fill_table: Fill, source: MemoryPartSource, tmp_path: Path) -> None:
    file = tmp_path / "BOM.filled.csv"
    file.write_text("MPN,Nexar package,Nexar status\nLM358N,OLD,found\n1234567,,not found\n")
    with pytest.raises(errors.SheetError, match="no column 'Nexar stock', 'Nexar price USD': --rerun-failures needs"):
        fill_table(csv_table.CsvTable(file), tmp_path / "out.csv", "package,stock,price", rerun_failures=True)
    assert source.upstream_requests == 0


def test_equal_lines_are_one_query_and_each_currency_another(tmp_path: Path) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text("MPN,Mfr,SKU\nA,TI,\nA,TI,9\nA,,\n,TI,S1\n")
    job = ColumnsJob(csv_table.CsvTable(file), columns("price:EUR,price@5"), named={}, now=NOW)
    assert job.lines == 4
    assert job.queries == [
        *(PartQuery("A", "TI", "", "EUR"), PartQuery("A", "TI", "", "USD")),
        *(PartQuery("A", "", "", "EUR"), PartQuery("A", "", "", "USD")),
        *(PartQuery("", "", "S1", "EUR"), PartQuery("", "", "S1", "USD")),
    ]


@pytest.mark.parametrize(
    "names, rules, expected",
    [
        ("distributor@1,price@1", {}, ["Digi-Key", "0.6"]),
        ("price@3000,distributor,order_quantity,total@3000", {}, ["0.1", "Mouser", "5000", "500"]),
        ("price@3000,distributor", {"authorized_only": True}, ["0.3", "Digi-Key"]),
        ("price@3000,distributor", {"in_stock": True}, ["0.1", "Mouser"]),
        ("price@600,distributor", {"in_stock": True, "authorized_only": True}, ["", ""]),
        ("price,distributor,sku", {"distributors": ("mouser",)}, ["0.1", "Mouser", "595-1"]),
        ("stock:Digi-Key,stock:459,stock:nobody,stock", {}, ["500", "500", "", "9500"]),
        ("price_breaks,packaging,moq,order_multiple", {}, ["1: 0.6; 100: 0.3", "Tube", "1", "1"]),
        ("lifecycle,package,url,manufacturer,description,mpn,currency", {},
         ["Active", "DIP-8", "https://p.example", "Texas Instruments", "Op amp", "LM358N", "USD"]),
        ("offer_url,data_as_of,lead_time", {}, ["https://d.example/1", "2023-11-14 22:13 UTC", "42"]),
        ("lead_time@9000,distributor@9000", {}, ["42", "Mouser"]),
    ],
)  # fmt: skip
def test_columns_hold_what_they_name(
    fill_table: Fill, tmp_path: Path, names: str, rules: dict[str, Any], expected: list[str]
) -> None:
    file, target = tmp_path / "BOM.csv", tmp_path / "BOM.filled.csv"
    file.write_text("MPN\nLM358N\n")
    fill_table(csv_table.CsvTable(file), target, names, rules=OfferRules(**rules))
    assert rows_of(target)[1][1:-1] == expected


def test_workbook_is_filled_in_the_style_of_its_sheet(fill_table: Fill, tmp_path: Path) -> None:
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
        table = workbook_table.choose(package, None, {})
        assert table.place.endswith("sheet 'Parts'")
        counts = fill_table(table, target, "price,stock,manufacturer")
    assert (counts["found"], file.read_bytes()) == (2, original)
    filled = openpyxl.load_workbook(target)
    assert filled.sheetnames == ["Cover", "Parts", "Offers"]
    rows = [[cell.value for cell in row] for row in filled["Parts"].iter_rows(min_row=3, max_row=5)]
    assert rows == [
        ["Ref", "MPN", "Qty", "Nexar price USD", "Nexar stock", "Nexar manufacturer", "Nexar status"],
        ["U1", "LM358N", 100, 0.3, 9500, "Texas Instruments", "found"],
        ["U2", 1234567, 1, None, None, "=cmd|' /C calc'!A0", "found"],
    ]
    assert filled["Parts"]["F5"].data_type in {"s", "inlineStr"}  # text, no formula
    assert filled["Parts"]["D3"].font.bold
    assert filled["Parts"]["E4"].fill.fgColor.rgb == "00FFFF00"
    assert filled["Parts"]["B6"].value == "=A4"
    assert [cell.value for cell in filled["Offers"]["D"]] == ["Distributor", "Digi-Key", "Mouser"]


def test_formatted_but_empty_cells_are_no_data(fill_table: Fill, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["MPN"], ["LM358N"]):
        book.active.append(row)
    for number in (1, 2):
        book.active.cell(number, 16_384).font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "BOM.xlsx")
    with workbook.open_package(tmp_path / "BOM.xlsx") as package:
        fill_table(workbook_table.choose(package, None, {}), tmp_path / "out.xlsx", "stock")
    assert openpyxl.load_workbook(tmp_path / "out.xlsx")["Sheet"]["B1"].value == "Nexar stock"


def test_sheet_without_room_is_an_error(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1"], book.active["A2"] = "MPN", "last", "LM358N"
    book.save(tmp_path / "BOM.xlsx")
    with (
        workbook.open_package(tmp_path / "BOM.xlsx") as package,
        pytest.raises(errors.SheetError, match="has no room for columns right of its data"),
    ):
        ColumnsJob(workbook_table.choose(package, None, {}), columns("stock"), named={}, now=NOW)


HOSTILE = ("=1+1", 'O\'Brien & "Sons"', "<xml>", "a]b"[:2] + "'", "\u202egnp.exe", "𝔘𝔫𝔦", "../../etc/passwd"[:9])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_data(fill_table: Fill, source: MemoryPartSource, tmp_path: Path, name: str) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    title = "".join(each for each in name if each not in "[]*/\\?:")
    sheet.title = title
    sheet.append(["MPN", "Mfr"])
    sheet.append([name, name])
    sheet["A2"].data_type = sheet["B2"].data_type = "s"
    source.parts = {name: Part(name, name, short_description=name, offers=(Offer(name, name, True, name, 1),))}
    book.save(tmp_path / "BOM.xlsx")
    with workbook.open_package(tmp_path / "BOM.xlsx") as package:
        counts = fill_table(
            workbook_table.choose(package, None, {}), tmp_path / "out.xlsx", f"description,stock:{name.strip('=')},mpn"
        )
    filled = openpyxl.load_workbook(tmp_path / "out.xlsx")
    assert counts["found"] == 1
    assert [cell.value for cell in filled[title][2]] == [name, name, name, 1, name, "found"]
    assert [cell.data_type for cell in filled[title][2]][:3] == ["s", "s", "s"]
    assert filled["Offers"]["D2"].value == name


@pytest.mark.parametrize(
    "value, number_format, text",
    [
        (1234567, "General", "1234567"),
        (1.5, "General", "1.5"),
        (42, "00000", "00042"),
        (1e20, "General", "100000000000000000000"),
        (1.5, "0.000", "1.5"),
        (7, '"No "00', "7"),
        (45000, "dd.mm.yyyy", "…"),
        (45000, "mm-dd-yy", "…"),
        (45000, '[Red]General" d"', "45000"),
        ("00123", "@", "00123"),
        (True, "General", "TRUE"),
    ],
)
def test_numeric_cells_are_read_as_they_are_shown(tmp_path: Path, value: Any, number_format: str, text: str) -> None:
    book = openpyxl.Workbook()
    book.active["A1"] = "MPN"
    book.active["A2"] = value
    book.active["A2"].number_format = number_format
    book.save(tmp_path / "BOM.xlsx")
    with workbook.open_package(tmp_path / "BOM.xlsx") as package:
        assert list(workbook_table.choose(package, None, {}).rows())[1] == (2, [text])


def test_sheet_of_offers_is_replaced_by_the_next_run(
    fill_table: Fill, source: MemoryPartSource, tmp_path: Path
) -> None:
    book = openpyxl.Workbook()
    for row in (["MPN"], ["LM358N"]):
        book.active.append(row)
    file, first, second = (tmp_path / name for name in ("BOM.xlsx", "BOM.filled.xlsx", "BOM.filled-2.xlsx"))
    book.save(file)
    with workbook.open_package(file) as package:
        fill_table(workbook_table.choose(package, None, {}), first, "stock")
    source.cache.clear()
    source.parts = {"LM358N": Part("LM358N", "TI", offers=(REEL,))}
    with workbook.open_package(first) as package:
        fill_table(workbook_table.choose(package, None, {}), second, "stock")
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
        assert "'Two'" in workbook_table.choose(package, "two", {}).place
        with pytest.raises(errors.SheetError, match="has no sheet 'Three'; there are 'One', 'Two'"):
            workbook_table.choose(package, "Three", {})
