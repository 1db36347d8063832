"""Tests of the lines of tables: header, named columns, quantities, totals."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support import cases

from proxy import errors
from proxy.tools.sheet.columns import csv_table, lines, quantities


def _read(file: Path, named: dict[str, str], left_out: lines.LeftOut | None = None) -> Any:
    rows = csv_table.CsvTable(file, named).rows()
    return lines.read(rows, lines.TableReading(named), "BOM.csv", left_out or lines.LeftOut())


@pytest.mark.parametrize(
    "named, header, row, expected",
    [
        ({"mpn": "Typ"}, "Typ,MPN", "A,B", ("A", "", "", 1)),
        ({"mpn": "B"}, "x,y,Qty", "A,LM,7", ("LM", "", "", 7)),
        ({"mpn": "b", "brand": "Firma", "quantity": "d"}, "x,y,Firma,z", "A,LM,TI,8", ("LM", "TI", "", 8)),
        ({"sku": "Artikel"}, "Artikel,z", "S,1", ("", "", "S", 1)),
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
    _, read = _read(file, named)
    ((line, _),) = read
    assert line[1:5] == expected


@pytest.mark.parametrize(
    "text, decimal, expected",
    [
        *cases.of(__file__, "quantity_is_read_or_refused_but_not_guessed"),
        (quantities.NumberText("2.125"), None, 3),
        *(
            (text, None, "is not a quantity")
            for text in ("abc", "-5", "0", "10k", "1 reel", "2 VE", "1/2", "5-7", "9" * 5000)
        ),
    ],
)
def test_quantity_is_read_or_refused_but_not_guessed(text: str, decimal: Any, expected: int | str) -> None:
    try:
        found: int | str = quantities.parse(text, decimal)
    except quantities.QuantityError as error:
        found = str(error)
    assert found == expected


@cases.parametrize("text, share, pieces")
def test_attrition_is_a_share_or_pieces(text: str, share: str, pieces: int) -> None:
    assert quantities.parse_attrition(text) == (Decimal(share), pieces)


@pytest.mark.parametrize("text", ["0.03", "abc", "3%%", "-5", "1,5", "%", "3% or so"])
def test_attrition_is_not_guessed(text: str) -> None:
    with pytest.raises(quantities.QuantityError, match="is neither a share such as 3% nor a number of pieces"):
        quantities.parse_attrition(text)


@cases.parametrize("header, rows, expected")
def test_quantities_are_those_of_all_boards_with_attrition(
    tmp_path: Path, header: str, rows: str, expected: list[int | None]
) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text(f"{header}\n{rows}")
    build = quantities.Build(50, quantities.parse_attrition("2%"))
    left_out = lines.LeftOut()
    _, read = lines.read(csv_table.CsvTable(file).rows(), lines.TableReading(build=build), "BOM.csv", left_out)
    assert [line.quantity for line, _ in read] == expected
    assert len(left_out.cells) == expected.count(None)
    assert all("is neither a share such as 3%" in cell for cell in left_out.cells)


def test_placeholders_and_parts_that_are_not_populated_are_no_lines(tmp_path: Path) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text(
        "Board 7\nRef,Value,MPN,SKU,Mfr,DNP\nR1,1k,N/A,S1,n/a,\nR2,1k,TBD,,,\nR3,1k,0,none,,\nR4,DNP,A,,,\n"
        "R5,1k,A,,,x\nR6,1k,A,,N/A,no\nR7,1k,TBD,,,\nR8,1k,,,,\nTotal,,8,,,\n"
    )
    left_out = lines.LeftOut()
    _, read = _read(file, {}, left_out)
    assert [line[:4] for line, _ in read] == [(3, "", "", "S1"), (8, "A", "", "")]
    assert left_out.rows == {
        "above the headings": [1],
        "'TBD' is not a part number": [4, 9],
        "'0' is not a part number": [5],
        "not populated (DNP)": [6, 7],
        "no part number": [10],
        "a total": [11],
    }


def test_missing_column_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text("MPN,Wert\nA,1\n")
    named = {"mpn": "Teil", "quantity": "ZZZ"}
    with pytest.raises(errors.SheetError) as raised:
        _read(file, named)
    assert raised.value.message == (
        "BOM.csv: no column --mpn-column 'Teil', --quantity-column 'ZZZ'; the columns of row 1 are A 'MPN', B 'Wert'"
    )


@pytest.mark.parametrize("total", ["Total,,5", "Summe:,X,5", ",合计,5", ",,5", ",--,5", f",{'X' * 300},5"])
def test_lines_without_a_part_number_and_totals_are_left_alone(tmp_path: Path, total: str) -> None:
    file = tmp_path / "BOM.csv"
    file.write_text(f"Ref,MPN,Qty\nU1,A,5\n{total}\n")
    _, read = _read(file, {})
    assert [line.mpn for line, _ in read] == ["A"]
