"""Tests of how a list is read: its columns by their headings, its lines, and what is no line."""

import csv
import io
from typing import Any

import pytest

from proxy import errors
from proxy.tools.sheet import cell_texts, lines
from proxy.tools.sheet.lines import PartsList, Reading


def read(text: str, *, boards: int | None = None, **named: str) -> PartsList:
    """Read a list with commas."""
    rows = enumerate(csv.reader(io.StringIO(text)), 1)
    reading = Reading({role: [name] for role, name in named.items()}, boards)
    return lines.read(rows, reading, "BOM.csv", is_csv=True)


def left_out(found: PartsList) -> dict[int, str]:
    return {each.row: each.reason for each in found.left_out}


def choices(found: PartsList) -> list[tuple[tuple[str, ...], ...]]:
    """The numbers of each line, each without empty fields at its end."""
    return [tuple(tuple(filter(None, choice)) for choice in line.choices) for line in found.lines]


@pytest.mark.parametrize(
    "label",
    [
        *("Component Count:,326", "Total components:,938", "Component Groups: 12", "BoM Date:,2024-01-02,"),
        *("Schematic Version: 1.0,", "Number of PCBs：,5", "Note: see drawing,", "Total components,938"),
        *(",Total:,5", "Summe,12", "Total,,3"),
    ],
)
def test_labels_and_totals_below_the_list_are_named_and_not_queried(label: str) -> None:
    found = read(f"Component,manf#,Quantity Per PCB\n1,NE555P,1\n\n{label}\n")
    assert choices(found) == [(("NE555P",),)]
    assert left_out(found)[4] in (lines.LABEL, lines.TOTAL)
    assert all(each.reason in lines.NO_LINES for each in found.left_out)


@pytest.mark.parametrize(
    "heading", ["Qty,MPN,Maker", "QTY,mpn,maker", "Qty,MPN,Manufacturer Name", "Menge,MPN,Hersteller"]
)
def test_second_row_of_headings_is_no_line(heading: str) -> None:
    found = read(f"Qty,MPN,Maker\n1,NE555P,TI\n{heading}\n2,LM358N,TI\n")
    assert left_out(found) == {3: lines.AGAIN} or left_out(found)[3] == lines.OTHER_HEADINGS
    assert choices(found)[0] == (("NE555P", "TI"),)


@pytest.mark.parametrize(
    "heading",
    ["MPN,Qty,Maker", "Maker,Description,MPN", "Manufacturer,Part Number,Quantity", "Seller,MPN,Price,Stock"],
)
def test_rows_below_other_headings_are_not_read_as_if_they_stood_below_the_first(heading: str) -> None:
    found = read(f"Qty,MPN,Maker\n1,NE555P,TI\n{heading}\nLM358N,2,TI\n")
    assert choices(found) == [(("NE555P", "TI"),)]
    assert left_out(found) == {3: lines.OTHER_HEADINGS, 4: lines.BELOW_OTHERS}
    assert [each.reason in lines.NO_LINES for each in found.left_out] == [True, False]


def test_headings_with_a_quantity_are_others_where_the_list_has_none() -> None:
    found = read("MPN\n" + "NE555P\n" * 5 + "MPN,,Distributor,Quantity\nLM358N,,Mouser,2\n")
    assert left_out(found) == {7: lines.OTHER_HEADINGS, 8: lines.BELOW_OTHERS}


NUMBER, ROW = "Qty,MPN\n1,{}\n", "Qty,MPN,Maker\n{}\n"


@pytest.mark.parametrize(
    "text, cells, reason",
    [
        (ROW, ["1,NE555P,TI,SOIC", "1,Timer, 8 pins,NE555P,TI", "1,NE555P,TI,,x"], lines.WIDER),
        (NUMBER, ["SN74LS00N+AC0-X", "+ACI-NE555P+ACI-", "+AD0-LM358N", "RC0603+AF8-1K"], lines.UTF7),
        (NUMBER, ["9.55167E+12", '"9,55E+12"', "1E+15", "1.5e+20", "9.55E12"], cell_texts.LOST_DIGITS),
        (NUMBER, ["2-Mar", "Mrz 24", "12.Mai", "1-Dez-2024", "01.05.2024", "3/4/2025"], cell_texts.CONVERTED),
        (NUMBER, ["#REF!", "#N/A", "#NV", "#DIV/0!", "#####"], cell_texts.ERROR_VALUE),
        (NUMBER, ['"NE555P, LM358N"', "NE555P; LM358N", "22-23-2021;22-23-2041"], cell_texts.SEVERAL),
        (NUMBER, ["www.example.com/NE555P", "https://example.com/?mpn=NE555P"], "an address, and no part number"),
        (ROW, ["2 (DNF),NE5532P,TI", "1,NE5532P,2 DNP", "DNP,NE5532P,TI"], lines.NOT_FITTED),
        (NUMBER, ["Part Number"], "'Part Number' is not a part number"),
        ("Qty,SKU\n1,{}\n", ["1.25", "$0.32"], "a price, and no part number"),
        (ROW, ["1,NE5532P,DNP", "2,NE5532P (DNI),TI"], lines.NOT_FITTED),
        ("Qty,MPN,DNP\n1,NE555P,{}\n", ["x", "1"], lines.NOT_FITTED),
        ("Qty,MPN,Fitted\n1,NE555P,{}\n", ["no"], lines.NOT_FITTED),
        ("Qty,MPN,Populate\n1,NE555P,{}\n", ["0"], lines.NOT_FITTED),
    ],
)
def test_row_without_a_number_to_look_up_is_left_out_with_its_reason(text: str, cells: list[str], reason: str) -> None:
    for cell in cells:
        found = read(text.format(cell))
        assert (found.lines, left_out(found)) == ([], {2: reason}), cell
        assert (reason in lines.NO_LINES) is (reason == lines.NOT_FITTED)


@pytest.mark.parametrize(
    "cell, numbers",
    [
        ("NE555P / LM555CN", ["NE555P", "LM555CN"]),
        ("NE555P or NE555N", ["NE555P", "NE555N"]),
        ("NOTMADE-1|NE555P", ["NOTMADE-1", "NE555P"]),
        *((text, [text]) for text in ("MCP2561FD-H/MF", "BC846B,215", "1k, 0603, 1%", "LT1 / x", "10uF / 25V / X7R")),
        # A number that only looks like something else, and what programs add to one.
        *((text, [text]) for text in ("1N4007", "2E3", "9551671234567", "MAX3232ESE+", "1E3-Z", "MAR-1000", "#1234")),
        ("1.5.1-DEC", ["1.5.1-DEC"]),
        *(
            (text, ["NE555P"])
            for text in ("\u200bNE555P\u00ad", "\u00a0NE555P ", "'NE555P", '=""NE555P""', "\ufeffNE555P")
        ),
    ],
)
def test_cell_has_one_number_or_alternatives_where_it_says_so(cell: str, numbers: list[str]) -> None:
    assert choices(read(f'Qty,MPN,Maker\n1,"{cell}",TI\n')) == [tuple((number, "TI") for number in numbers)]


@pytest.mark.parametrize("row", ["---,---,---", "All parts RoHS compliant.,,", "*) alternative allowed", ",=====,"])
def test_rulers_and_remarks_are_no_lines_and_lack_no_quantity(row: str) -> None:
    found = read(f"MPN,Qty,Maker\nNE555P,1,TI\n{row}\nCapacitors,,\n")
    assert (choices(found), found.problems) == ([(("NE555P", "TI"),)], [])
    assert all(each.reason in lines.NO_LINES for each in found.left_out)


@pytest.mark.parametrize(
    "headings, row, numbers",
    [
        ("MPN,DIGIKEY,MOUSER", ",296-1-ND,", ["296-1-ND"]),
        ("MPN,Digi-Key,Mouser", "NE555P,296-1-ND,595-X", ["NE555P"]),
        ("Digi-Key Part Number,Mouser Part Number,LCSC", ",,C25804", ["C25804"]),
        ("Supplier 1 SKU,Supplier 2 SKU,Supplier 3 SKU", ",595-X,C25804", ["595-X"]),
        ("MPN,Bestell-Nr. Mouser,Bestellnummer Digi-Key", ",,296-1-ND", ["296-1-ND"]),
        ("MPN,Digi-Key,Mouser", ",https://www.digikey.com/x,595-X", ["595-X"]),
        ("MPN,Digi-Key,Mouser", ",0.25,595-X", ["595-X"]),
        ("Alternate MPN,Digi-Key", "LM555CN,296-1-ND", ["296-1-ND", "LM555CN"]),
    ],
)
def test_line_takes_the_first_number_that_it_has(headings: str, row: str, numbers: list[str]) -> None:
    [line] = read(f"Qty,{headings}\n1,{row}\n").lines
    assert [choice.mpn or choice.sku for choice in line.choices] == numbers


@pytest.mark.parametrize(
    "headings, row",
    [
        ("Manufacturer,MPN,Manufacturer,MPN", "TI,A1,ADI,B2"),
        ("MPN,MPN 2,Manufacturer,Manufacturer 2", "A1,B2,TI,ADI"),
        ("Manufacturer,Manufacturer Part Number,Alternative Manufacturer,Alternative MPN", "TI,A1,ADI,B2"),
        ("Manufacturer 2,Manufacturer Part Number 2,Manufacturer 1,Manufacturer Part Number 1", "ADI,B2,TI,A1"),
        ("2nd source MPN,2nd source manufacturer,MPN,Manufacturer", "B2,ADI,A1,TI"),
        ("Replacement MPN,Alternate Manufacturer,Part Number,Manufacturer", "B2,ADI,A1,TI"),
        ("Part No,Manufacturer,Alternate Part Number,Alternate Manufacturer", "A1,TI,B2,ADI"),
        ("Part No,Manufacturer,MPN 2,Manufacturer 2", "A1,TI,B2,ADI"),
    ],
)
def test_alternatives_have_their_own_manufacturers(headings: str, row: str) -> None:
    assert choices(read(f"Qty,{headings}\n1,{row}\n")) == [(("A1", "TI"), ("B2", "ADI"))]


def test_placeholder_leaves_its_alternative() -> None:
    found = read("Qty,Manufacturer,MPN,Manufacturer,MPN\n1,,-,Coilcraft,XFL4020-222MEC\n1,TI,N/A,,\n1,,,,\n")
    assert choices(found) == [(("XFL4020-222MEC", "Coilcraft"),)]
    assert left_out(found) == {3: "'N/A' is not a part number", 4: lines.NO_NUMBER}


@pytest.mark.parametrize(
    "headings, row",
    [
        ("Quantity,Supplier 1,Supplier 1 MPN,Manufacturer 1", "3,Mouser,NE555P,TI"),
        ("Quantity,Manufacturer 1 MPN,Supplier 1,Manufacturer 1", "3,NE555P,Mouser,TI"),
        ("Quantity,Manufacturer Part Number 1,Supplier 1,Manufacturer Name 1", "3,NE555P,Mouser,TI"),
    ],
)
def test_number_inside_a_heading_is_understood(headings: str, row: str) -> None:
    found = read(f"{headings}\n{row}\n")
    assert (choices(found), found.lines[0].quantity) == ([(("NE555P", "TI"),)], 3)


@pytest.mark.parametrize(
    "row, quantity, problem",
    [
        ('"R1, R2",3', 3, "B2: 3 is stated for 2 designators"),
        ("R1,1.5", 2, "B2: 1.5 is stated for 1 designator"),
        ("R1-R5,4", 4, "B2: 4 is stated for 5 designators"),
        ('"R1, R2",', 2, None),
        ("R1 minus R2,2", 2, None),
        ("R1 minus R2,", None, "A2: 'minus' is not understood as designators"),
        ("R1,x", None, "B2: 'x' is not a quantity"),
        (",", 1, "B2: is empty: 1 is taken"),
    ],
)
def test_quantity_and_designators(row: str, quantity: int | None, problem: str | None) -> None:
    found = read(f"Ref,Qty,MPN\n{row},NE555P\n")
    assert found.lines[0].quantity == quantity
    assert list(found.problems) == ([problem] if problem else [])


@pytest.mark.parametrize("boards, quantity", [(None, 9), (10, 20)])
def test_boards_multiply_the_quantity_of_one(boards: int | None, quantity: int) -> None:
    assert read("Order Qty,Qty,MPN\n9,2,NE555P\n", boards=boards).lines[0].quantity == quantity


def test_columns_can_be_named() -> None:
    found = read("A,B,C\nNE555P,TI,7\n", mpn="A", brand="B", quantity="C")
    assert (choices(found), found.lines[0].quantity) == ([(("NE555P", "TI"),)], 7)
    with pytest.raises(
        errors.SheetError, match=r"BOM.csv: no row has the columns 'Typ'; the columns of row 1 are A 'X'"
    ):
        read("X,Y\n1,2\n", mpn="Typ")
    with pytest.raises(errors.SheetError, match=r"BOM.csv: no column of part numbers; --read mpn=NAME names one"):
        read("X,Y\n1,2\n")
    with pytest.raises(errors.SheetError, match=r"BOM.csv: is empty"):
        read("\n,\n")


def test_values_are_numbers_where_nothing_else_is() -> None:
    found = read("Reference,Value,Qty\nU1,NE555P,1\nR1,10k,1\nC1,100nF/50V,1\n")
    assert found.columns.from_values
    assert choices(found) == [(("NE555P",),)]
    assert set(left_out(found).values()) == {"the value of a part, and no part number"}


def test_alternatives_alone_follow_the_value() -> None:
    found = read("Reference,Value,Alternate MPN\nU1,NE555P,LM555CN\nJ1,10k,1868783\nR1,10k,\n")
    assert choices(found) == [(("NE555P",), ("LM555CN",)), (("1868783",),)]


def test_numbers_and_dates_are_cells_of_a_workbook() -> None:
    rows: list[Any] = [(1, ["MPN", "Qty"]), (2, [1868783, 2.0]), (3, [cell_texts.A_DATE, 1])]
    found = lines.read(rows, Reading(), "BOM.xlsx", is_csv=False)
    assert [(line.choices[0].mpn, line.quantity) for line in found.lines] == [("1868783", 2)]
    assert left_out(found)[3].startswith("the part number is a date: ")


def test_rows_are_bounded() -> None:
    with pytest.raises(errors.SheetError, match="more than 100,000 rows; split the file"):
        lines.read(((row, ["MPN"]) for row in range(1, 10**7)), Reading(), "BOM.csv", is_csv=True)
