"""Tests of quantities and designators: what has two meanings, or none, is named and not guessed."""

import pytest

from proxy.tools.sheet import cell_texts
from proxy.tools.sheet.cell_texts import QuantityError

FIVE = [
    *("R1-R5", "R1 - R5", "R1–R5", "R1—R5", "R1 to R5", "R1 TO R5", "R1 thru R5", "R1 through R5", "R1->R5"),
    *("R1 -> R5", "R1→R5", "R1=>R5", "R1..R5", "R1...R5", "R1…R5", "R1:R5", "R1 : R5", "R1~R5", "R1 bis R5"),
    *("R1-5", "R1 - 5", "R1, R2, R3, R4, R5", "R1 R2 R3 R4 R5", "R1;R2-R4;R5", "R1\nR2\nR3-R5", "R1, R2 and R3-R5"),
    *("r1-R5", "R01-R05", "R1-R3, R4 to R5", "C1, R1-R4", "R1,R1,R2-R5", "LED1-LED4 & D1", "TP_1-TP_5"),
]
OTHERS = [("D2-5", 4), ("R7", 1), ("U1A", 1), ("PCB", 1), ("R1-R10, R12", 11)]


@pytest.mark.parametrize("text, count", [*((text, 5) for text in FIVE), *OTHERS])
def test_designators_are_counted_in_every_spelling(text: str, count: int) -> None:
    assert cell_texts.count_designators(text) == count


@pytest.mark.parametrize("text", ["R5-R1", "R1-C5", "R?", "R1/R2", "R1-R3-R5", "R1 minus R2", "see drawing", "R1-"])
def test_form_that_is_not_understood_is_named(text: str) -> None:
    with pytest.raises(QuantityError, match="is not understood as designators"):
        cell_texts.count_designators(text)


@pytest.mark.parametrize(
    "cell, quantity",
    [
        *(("2 (DNF)", 0), ("2 (DNP)", 0), ("3 [DNP]", 0), ("0", 0), ("DNP", 0), ("2 DNP", 0), ("DNP 2", 0), (0, 0)),
        *(("1 (DNC)", 1), ("4 (dnc)", 4), ("1 (fitted)", 1)),
        *(("12", 12), ("1 000", 1000), ("1'000", 1000), ("2.5 m", 3), ("10 pcs", 10), ("2,5", 3), (7, 7), (2.5, 3)),
        ("1,234.5", 1235),
    ],
)
def test_quantity_is_read(cell: cell_texts.Cell, quantity: int) -> None:
    assert cell_texts.parse_quantity(cell) == quantity


@pytest.mark.parametrize(
    "cell, message",
    [
        *(("1.000", "is 1 or 1000"), ("2,500", "is 2.5 or 2500"), ("12.345", "is 12.345 or 12345")),
        *(("abc", "is not a quantity"), ("-5", "is not a quantity"), ("10k", "is not a"), ("1 reel", "is not a")),
        *(("1 (see note)", "is not a"), (-1, "is not a"), (float("nan"), "is not a"), ("9" * 13, "is not a quantity")),
        (cell_texts.NOT_CALCULATED, "not calculated: open the file in a spreadsheet program and save it once"),
        *((cell_texts.A_DATE, "is a date"), (cell_texts.AN_ERROR, "is an error")),
    ],
)
def test_quantity_with_two_meanings_or_none_is_named(cell: cell_texts.Cell, message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        cell_texts.parse_quantity(cell)


@pytest.mark.parametrize(
    "column, mark",
    [
        *((["1.000", "2,5"], "comma"), (["1.000.000"], "comma"), ([3, "2,5"], "comma")),
        *((["1,000", "2.5"], "point"), (["1,000", "0.25"], "point"), (["1,000,000"], "point")),
        *((["1.000"], None), (["2,5", "2.5"], None), (["3", "x", ""], None), ([1.5], None)),
    ],
)
def test_decimal_mark_is_that_of_the_column(column: list[cell_texts.Cell], mark: cell_texts.DecimalMark | None) -> None:
    assert cell_texts.decimal_mark(column) == mark


def test_thousand_in_a_column_with_a_decimal_comma() -> None:
    assert [cell_texts.parse_quantity(text, "comma") for text in ("1.000", "2,5", "1.000,5")] == [1000, 3, 1001]
