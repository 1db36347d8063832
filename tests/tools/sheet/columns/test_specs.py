"""Tests of the names of columns, and of templates."""

from pathlib import Path

import pytest
from support import cases

from proxy import errors
from proxy.tools.sheet.columns import specs
from proxy.tools.sheet.columns.specs import STATUS, ColumnSet, ColumnSpec
from proxy.tools.sheet.offers import OfferRules


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
    assert specs.parse(text) == spec
    assert spec.heading("USD") == heading


@pytest.mark.parametrize(
    "text, message",
    [
        *cases.of(__file__, "wrong_column_is_an_error_that_says_what_to_do"),
        ("X" * 99, f"unknown column '{'X' * 60}';"),
    ],
)
def test_wrong_column_is_an_error_that_says_what_to_do(text: str, message: str) -> None:
    with pytest.raises(errors.ConfigError) as raised:
        specs.parse_list(text)
    assert message in raised.value.message
    assert "\n" not in raised.value.message


@cases.parametrize("features, note")
def test_columns_that_the_plan_leaves_empty_are_named(features: list[str], note: str | None) -> None:
    columns = ColumnSet(specs.parse_list("price,lead_time,package,lifecycle,lead_time@5"))
    assert columns.note_without(features) == note


def test_status_is_always_there_and_a_column_only_once() -> None:
    assert specs.parse_list("price,price, stock") == [ColumnSpec("price"), ColumnSpec("stock"), STATUS]
    assert specs.parse_list("status,stock") == [STATUS, ColumnSpec("stock")]


@cases.parametrize("names, quantity, currencies")
def test_quantity_and_currencies_are_those_of_the_prices(
    names: str, quantity: int | None, currencies: list[str]
) -> None:
    columns = ColumnSet(specs.parse_list(names))
    assert (columns.quantity, columns.currencies) == (quantity, currencies)


TEMPLATES = """\
buying:
  columns: [price@100, "stock:Digi-Key"]
  currency: EUR
  rules:
    distributors: [Digi-Key, Mouser]
    authorized_only: true
engineering:
  columns:
    - lifecycle
    - datasheet
"""


@pytest.fixture
def template_file(tmp_path: Path) -> Path:
    """A file of two templates."""
    file = tmp_path / "sets.yaml"
    file.write_text(TEMPLATES)
    return file


def test_template_names_columns_rules_and_currency(template_file: Path) -> None:
    columns = [ColumnSpec("price", 100), ColumnSpec("stock", distributor="Digi-Key"), STATUS]
    rules = OfferRules(("Digi-Key", "Mouser"), authorized_only=True)
    assert specs.load_template(f"{template_file}:buying") == ColumnSet(columns, rules, "EUR")
    template_file.write_text("engineering: {columns: [lifecycle]}")
    assert specs.load_template(str(template_file)) == ColumnSet([ColumnSpec("lifecycle"), STATUS])


@cases.parametrize("old, new, name, message")
def test_mistake_in_a_template_is_located(
    template_file: Path, old: str, new: str, name: str | None, message: str
) -> None:
    template_file.write_text(TEMPLATES.replace(TEMPLATES if old == "TEMPLATES" else old, new, 1))
    with pytest.raises(errors.ConfigError) as raised:
        specs.load_template(f"{template_file}:{name}" if name else str(template_file))
    assert message in raised.value.message
