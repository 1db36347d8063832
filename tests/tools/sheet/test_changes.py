"""Tests of what is said of a list that is filled again."""

from decimal import Decimal

import pytest

from proxy.tools.sheet import changes, columns
from proxy.tools.sheet.columns import CellValue
from proxy.tools.sheet.lines import Choice, Line

LINE = Line(5, (Choice("NE555P"),), (), 1)


@pytest.mark.parametrize(
    "column, old, new, said",
    [
        ("price", "0.32", Decimal("0.40"), "price USD 0.32 → 0.40 (+25%)"),
        ("price", "0,32", Decimal("0.16"), "price USD 0,32 → 0.16 (-50%)"),
        ("total:EUR", "10", None, "total EUR 10 → none"),
        ("price@100", "0.32897", Decimal("0.32897"), ""),
        ("stock", "500", Decimal(0), "stock gone, was 500"),
        ("stock", "Yes", None, "stock gone, was Yes"),
        ("stock", "500", Decimal(20), ""),
        ("stock", "0", Decimal(0), ""),
        ("stock", "500", "Yes", ""),
        ("lead_time", "56", 112, "lead time days 56 → 112"),
        ("lead_time", "56", None, "lead time days 56 → none"),
        ("manufacturer", "Texas Instruments", "onsemi", "manufacturer Texas Instruments → onsemi"),
        ("mpn", "NE555P", "NE555PE4", "MPN NE555P → NE555PE4"),
        ("description", "a", "b", ""),
        ("price", "", Decimal(1), ""),
    ],
)
def test_change_is_said(column: str, old: str, new: CellValue, said: str) -> None:
    found = changes.changes(LINE, ["NE555P", old], {columns.parse(column): 1}, {1: new})
    assert found == ([f"row 5, NE555P: {said}"] if said else [])


def test_changes_of_a_line_stand_together() -> None:
    places = {columns.parse("price"): 0, columns.parse("stock"): 1}
    assert changes.changes(LINE, [0.5, 20], places, {0: Decimal(1), 1: Decimal(0)}) == [
        "row 5, NE555P: price USD 0.5 → 1 (+100%), stock gone, was 20"
    ]
