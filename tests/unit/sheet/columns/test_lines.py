"""Tests of the lines of tables: header, named columns, quantities, totals."""

from pathlib import Path
from typing import Any

import pytest

from proxy import errors
from proxy.sheet.columns import csv_table, lines


@pytest.mark.parametrize(
    "named, header, row, expected",
    [
        ({"mpn": "Typ"}, "Typ,MPN", "A,B", ("A", "", "", None)),
        ({"mpn": "B"}, "x,y,Qty", "A,LM,7", ("LM", "", "", 7)),
        ({"mpn": "b", "brand": "Firma", "quantity": "d"}, "x,y,Firma,z", "A,LM,TI,8", ("LM", "TI", "", 8)),
        ({"sku": "Artikel"}, "Artikel,z", "S,1", ("", "", "S", None)),
        ({}, "MPN,Menge", 'A,"1,000"', ("A", "", "", 1000)),
        ({}, "MPN,Menge", 'A,"0,125 m"', ("A", "", "", 1)),
        ({}, "MPN,Menge", 'A,"2,5 m"', ("A", "", "", 3)),
        ({}, "MPN,Menge", "A,n/a", ("A", "", "", None)),
        ({}, "MPN,Menge", "A,0", ("A", "", "", None)),
        ({}, "MPN,Menge", "00123,2", ("00123", "", "", 2)),
        ({}, "MPN,Menge", f"A,{'9' * 5000}", ("A", "", "", None)),
        ({}, "MPN,Menge", f"A,1{'.000' * 2000}", ("A", "", "", None)),
    ],
)
def test_columns_are_named_by_heading_or_letter(
    tmp_path: Path, named: dict[str, str], header: str, row: str, expected: Any
) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text(f"title\n{header}\n{row}\n")
    _, read = lines.read(csv_table.CsvTable(file, named).rows(), named, "BOM.csv", [])
    ((line, _),) = read
    assert line[1:5] == expected


def test_missing_column_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text("MPN,Wert\nA,1\n")
    named = {"mpn": "Teil", "quantity": "ZZZ"}
    with pytest.raises(errors.SheetError) as raised:
        lines.read(csv_table.CsvTable(file, named).rows(), named, "BOM.csv", [])
    assert raised.value.message == (
        "BOM.csv: no column --mpn-column 'Teil', --quantity-column 'ZZZ'; the columns of row 1 are A 'MPN', B 'Wert'"
    )


@pytest.mark.parametrize("total", ["Total,,5", "Summe:,X,5", ",合计,5", ",,5", ",--,5", f",{'X' * 300},5"])
def test_lines_without_a_part_number_and_totals_are_left_alone(tmp_path: Path, total: str) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text(f"Ref,MPN,Qty\nU1,A,5\n{total}\n")
    _, read = lines.read(csv_table.CsvTable(file).rows(), {}, "BOM.csv", [])
    assert [line.mpn for line, _ in read] == ["A"]


def test_header_explains_the_rows_below_it_best(tmp_path: Path) -> None:
    file = tmp_path / "BOM.csv"
    title = "Bill of Materials,,,\nPart Number:,100-2233,,\nRevision,B,,\nDate,5/1/2024,,\n"
    file.write_text(f"{title}#,Manufacturer 1,Manufacturer Part Number 1,Quantity\n1,TI,LM358N,20\n")
    header, read = lines.read(csv_table.CsvTable(file).rows(), {}, "BOM.csv", [])
    assert (header.row, [line[1:5] for line, _ in read]) == (5, [("LM358N", "TI", "", 20)])
