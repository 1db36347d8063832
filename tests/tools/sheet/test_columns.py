"""The names of columns, shares of purchases, and what is said of a list that is filled again."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import errors
from proxy.tools.sheet import columns, lines, list_job
from proxy.tools.sheet.cell_texts import Cell
from proxy.tools.sheet.columns import STATUS, CellValue, ColumnSpec, Share
from proxy.tools.sheet.lines import Choice, Line
from proxy.tools.sheet.offers import Offer, OfferRules, Part, PartResult, Price


@pytest.mark.parametrize(
    "text, spec, heading",
    [
        ("price", ColumnSpec("price"), "Nexar price USD"),
        (" Price@100:eur ", ColumnSpec("price", 100, "EUR"), "Nexar price @100 EUR"),
        ("stock:Digi-Key", ColumnSpec("stock", distributor="Digi-Key"), "Nexar stock Digi-Key"),
        ("price@100:TTI", ColumnSpec("price", 100, distributor="TTI"), "Nexar price @100 USD TTI"),
        ("price:eur:Digi-Key", ColumnSpec("price", None, "EUR", "Digi-Key"), "Nexar price EUR Digi-Key"),
        ("moq@5: Mouser", ColumnSpec("moq", 5, distributor="Mouser"), "Nexar MOQ @5 Mouser"),
        ("lead time", ColumnSpec("lead_time"), "Nexar lead time days"),
        ("order-multiple@5", ColumnSpec("order_multiple", 5), "Nexar order multiple @5"),
        ("status", STATUS, "Nexar status"),
    ],
)
def test_column_is_parsed_and_has_a_heading(text: str, spec: ColumnSpec, heading: str) -> None:
    assert columns.parse(text) == spec
    assert spec.heading == heading


@cases.parametrize(
    "text, message",
    ("X" * 99, f"unknown column '{'X' * 60}';"),
)
def test_wrong_column_is_an_error_that_says_what_to_do(text: str, message: str) -> None:
    with pytest.raises(errors.ConfigError) as raised:
        columns.parse_list(text)
    assert message in raised.value.message
    assert "\n" not in raised.value.message


@cases.parametrize("features, note")
def test_columns_that_the_plan_leaves_empty_are_named(features: list[str], note: str | None) -> None:
    specs = columns.parse_list("price,lead_time,package,lifecycle,lead_time@5")
    assert columns.note_without(specs, frozenset(features)) == note


def test_status_is_always_there_and_a_column_only_once() -> None:
    assert columns.parse_list("price,price, stock") == [ColumnSpec("price"), ColumnSpec("stock"), STATUS]
    assert columns.parse_list("status,stock") == [STATUS, ColumnSpec("stock")]


@cases.parametrize("names, quantity, currencies")
def test_quantity_and_currencies_are_those_of_the_prices(
    names: str, quantity: int | None, currencies: list[str]
) -> None:
    specs = columns.parse_list(names)
    assert columns.currencies_and_quantity(specs) == (currencies, quantity)


@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=9),
    st.decimals("0.00001", 10**6, places=5),
    st.integers(1, 10**9),
)
def test_shares_add_up_to_what_is_bought(own: list[int], total: Decimal, pieces: int) -> None:
    shares = [Share(sum(own[:at]), each, sum(own)) for at, each in enumerate(own)]
    assert sum(share.of(total) for share in shares) == total
    assert sum(share.of_pieces(pieces) for share in shares) == pieces


LINE = Line(5, (Choice("NE555P"),), (), 1)


@pytest.mark.parametrize(
    "column, old, new, said",
    [
        ("price", "0.32", Decimal("0.40"), "price USD 0.32 → 0.40 (+25%)"),
        ("price", 0.5, Decimal(1), "price USD 0.5 → 1 (+100%)"),
        ("price", "0,32", Decimal("0.16"), "price USD 0,32 → 0.16 (-50%)"),
        ("total:EUR", "10", None, "total EUR 10 → none"),
        ("price@100", "0.32897", Decimal("0.32897"), ""),
        ("stock", 500, Decimal(0), "stock gone, was 500"),
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
def test_change_is_said(column: str, old: Cell, new: CellValue, said: str) -> None:
    found = list_job.changes(LINE, ["NE555P", old], {columns.parse(column): 1}, {1: new})
    assert found == ([f"row 5, NE555P: {said}"] if said else [])


def test_currency_that_a_decided_line_lacks_is_needed_and_named() -> None:
    found = lines.read(enumerate([["MPN"], ["NE555P"]], 1), lines.Reading(), "BOM.csv", is_csv=True)
    job = list_job.ListJob(found, list_job.Wanted(columns.parse_list("price,price:EUR"), OfferRules()))
    dollars, euros = job.needed()
    offer = Offer("459", "Digi-Key", True, prices=(Price(1, Decimal(2), "USD"),))
    job.add(PartResult(dollars, (Part("NE555P", "onsemi", offers=(offer,)),), 1, None, 0.0))
    assert [job.needed(), job.needed(), job.worst_case] == [[euros], [euros], 1]
    assert [*job.fill().cells[2].values()] == [Decimal(2), "found, not fetched: price EUR"]
    assert (job.outcomes["partly fetched"], job.outcomes["found"]) == (1, 0)
