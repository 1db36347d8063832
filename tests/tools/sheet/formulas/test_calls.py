"""Calls of functions, found in formulas."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy.tools.sheet.formulas import calls
from proxy.tools.sheet.package.cells import CellError, CellValue

PRICE = "NEXAR_SUPPLY_DISTRIBUTOR_PRICE"


def arguments(text: str) -> list[str]:
    """The texts of the arguments of the last call of a formula."""
    parsed = calls.parse(text)
    return [
        "".join(token.value for token in parsed.tokens[span.start : span.end]) for span in parsed.calls[-1].arguments
    ]


@cases.parametrize("text,expected")
def test_arguments_are_divided_at_the_call_s_own_commas(text: str, expected: list[str]) -> None:
    assert arguments(f"_xll.{PRICE}{text}") == expected


def test_a_call_may_stand_among_others() -> None:
    parsed = calls.parse(f"IFERROR(_xll.{PRICE}(A2)*2,-1)+octopart_get_info()")
    assert [call.function.name for call in parsed.calls] == [PRICE, "OCTOPART_GET_INFO"]
    assert not parsed.is_one_call


def test_calls_in_arguments_come_before_the_outer_call() -> None:
    parsed = calls.parse(f" {PRICE}(NEXAR_SUPPLY_DISTRIBUTOR_SKU(A1),,A2) ")
    assert [call.function.result for call in parsed.calls] == ["sku", "price"]
    assert parsed.is_one_call


def test_functions_that_no_add_in_has_are_named() -> None:
    assert calls.parse("_xll.NEXAR_SUPPLY_LIFECYCLE(A1)").unknown == ("NEXAR_SUPPLY_LIFECYCLE",)


def test_google_sheets_exports_functions_of_scripts_as_text() -> None:
    text = 'IFERROR(__xludf.DUMMYFUNCTION("OCTOPART_DISTRIBUTOR_PRICE(A2,"""",""Digi-Key"")"),0.12)'
    parsed = calls.parse(text)
    assert parsed.is_one_call
    assert arguments(text) == ["A2", '""', '"Digi-Key"']


@pytest.mark.parametrize("text", [f"{PRICE}(A1", f"{PRICE}(A1))", f'{PRICE}("A1)', ")", "(", f"{PRICE}(A1}}"])
def test_what_is_no_formula_is_an_error_without_its_text(text: str) -> None:
    with pytest.raises(calls.FormulaError) as error:
        calls.parse(text)
    assert "A1" not in str(error.value)


def test_values_stand_in_formulas_as_literals() -> None:
    values: list[CellValue] = ['say "x"', Decimal("-1.50"), Decimal("1E+3"), True, False, None, CellError("#N/A")]
    assert [calls.literal(value) for value in values] == [
        '"say ""x"""',
        "-1.50",
        "1000",
        "TRUE",
        "FALSE",
        '""',
        "#N/A",
    ]


def test_formula_beyond_excel_s_length_is_not_parsed() -> None:
    with pytest.raises(calls.FormulaError, match="longer than Excel allows"):
        calls.parse("+".join([f"{PRICE}(A1)"] * 1000))


def parsed_texts(parsed: calls.ParsedFormula) -> tuple[object, ...]:
    """A parsed formula as values that can be compared."""
    return [(each.value, each.type, each.subtype) for each in parsed.tokens], parsed.calls, parsed.unknown


_OPERANDS = st.sampled_from(
    [
        *("A%d", "$B$%d", "C%d:C%d", "Sheet1!D%d", "'A%d ''s (1)'!E%d", "5:%d", "$%d:$%d", "1E%d", "1.5E+%d", "x%d"),
        *('"A%d, 100%%"', '"%%s"', "LOG10(%d)", "ATAN2(A%d,B%d)", "{1,A%d;TRUE%d}", "T1[MPN%d]", "#N/A%d", "50%%"),
        *(f"{PRICE}(A%d,,B%d)", f"_xll.{PRICE}((A%d, B%d))", "NEXAR_SUPPLY_NONE(A%d)", "F%d(1)"),
        f'IFERROR(__xludf.DUMMYFUNCTION("{PRICE}(A%d)"),1)',
    ]
)


@given(
    st.lists(_OPERANDS, min_size=1, max_size=4),
    st.sampled_from("+-*/&,= "),
    st.lists(st.lists(st.integers(0, 2_000_000), min_size=16, max_size=16), min_size=2, max_size=3),
)
def test_filled_down_formulas_are_parsed_as_each_alone(
    operands: list[str], operator: str, rows: list[list[int]]
) -> None:
    written = operator.join(operands)
    texts = [written % tuple(numbers[: written.replace("%%", "").count("%d")]) for numbers in rows]
    parser = calls.FormulaParser()
    for text in texts:
        try:
            alone = parsed_texts(calls.parse(text))
        except calls.FormulaError:
            continue
        assert parsed_texts(parser.parse(text)) == alone
