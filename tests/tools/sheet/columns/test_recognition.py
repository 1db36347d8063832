"""Tests of what is said about a table before its parts are fetched."""

from pathlib import Path

import pytest
from support import cases
from tools.sheet.filled_columns import NOW, Bom, Fill, columns, rows_of

from proxy import errors
from proxy.tools.sheet.columns import csv_table
from proxy.tools.sheet.columns.job import ColumnsJob
from proxy.tools.sheet.columns.lines import TableReading


def test_columns_and_rows_that_are_left_out_are_named(tmp_path: Path) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text(
        "Board 7\n#,MPN,Need for 5 boards,Unit price,Nexar stock\n1,A,20,1.5,3\n2,B,30,2,\n3,TBD,5,3,\n4,DNP,5,3,\n"
    )
    recognized = ColumnsJob(csv_table.CsvTable(file), columns("stock"), now=NOW).recognized
    assert list(recognized.messages()) == [
        "headings: row 2",
        "  part number: B 'MPN'",
        "  manufacturer: no column, any is taken; --manufacturer-column names one",
        "  quantity: no column, 1 is taken; --quantity-column names one",
        "  updated: E 'Nexar stock'",
        "  not used: A '#', C 'Need for 5 boards', D 'Unit price'",
        "note: column C looks like a quantity and is not used: --quantity-column C uses it",
        "left out: 1 row, above the headings: 1",
        "left out: 1 row, 'TBD' is not a part number: 5",
        "left out: 1 row, not populated (DNP): 6",
    ]


@cases.parametrize("table, unused")
def test_column_that_looks_like_a_quantity_is_named(bom: Bom, table: str, unused: list[str]) -> None:
    file, _ = bom(table)
    assert ColumnsJob(csv_table.CsvTable(file), columns("stock"), now=NOW).recognized.unused_quantities == unused


def test_header_row_can_be_named(bom: Bom) -> None:
    file, _ = bom("MPN,Qty\nA,1\nB,2\nPart Number,Count\nC,3\n")
    job = ColumnsJob(csv_table.CsvTable(file), columns("stock"), reading=TableReading(header_row=4), now=NOW)
    assert (job.recognized.header_row, [query.mpn for query in job.queries]) == (4, ["C"])
    with pytest.raises(errors.SheetError, match=r"no column of part numbers.*the columns of row 5 are A 'C', B '3'"):
        ColumnsJob(csv_table.CsvTable(file), columns("stock"), reading=TableReading(header_row=5), now=NOW)
    with pytest.raises(errors.SheetError, match="row 9 is empty; --header-row is the number of the row"):
        ColumnsJob(csv_table.CsvTable(file), columns("stock"), reading=TableReading(header_row=9), now=NOW)


def test_unclear_quantity_leaves_its_columns_empty(fill_table: Fill, bom: Bom) -> None:
    file, target = bom("MPN;Qty\nLM358N;2.500\nLM358N;\n")
    fill_table(csv_table.CsvTable(file), target, "price,price@100,moq,stock")
    filled = [row[2:] for row in rows_of(target, ";")[1:]]
    assert filled == [["", "0.3", "", "9500", "found, without price USD, MOQ"], ["0.6", "0.3", "1", "9500", "found"]]
    offers = rows_of(csv_table.offers_file(target), ";")
    assert [row[13] for row in offers[1:3]] == ["", ""]
    reading = TableReading(decimal="comma")
    job = ColumnsJob(csv_table.CsvTable(file), columns("price"), reading=reading, now=NOW)
    assert job.problems == []
    job = ColumnsJob(csv_table.CsvTable(file), columns("price"), now=NOW)
    (problem,) = job.problems
    assert problem.startswith("B2: '2.500' is 2.5 or 2500 (--decimal point or comma says which): columns at")
