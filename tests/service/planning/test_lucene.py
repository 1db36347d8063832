"""Tests of filter queries as clients write them, and of refused ones (contract v3-rest.md §1.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import errors
from proxy.planning import lucene
from proxy.planning.lucene import Condition


@pytest.mark.parametrize(
    "text, found",
    [
        ("brand.name:TI", [Condition("brand.name", ("TI",))]),
        ('brand.name:"Texas Instruments"', [Condition("brand.name", ("Texas Instruments",))]),
        ("brand.name:(Texas Instruments)", [Condition("brand.name", ("Texas Instruments",))]),
        ("specs.a.value:(X5R or X7R or C0G/NP0)", [Condition("specs.a.value", ("X5R", "X7R", "C0G/NP0"))]),
        ("specs.a.value:(X5R OR X7R)", [Condition("specs.a.value", ("X5R", "X7R"))]),
        (r"specs.a.value:C0G\/NP0", [Condition("specs.a.value", ("C0G/NP0",))]),
        ("specs.a.value:[0.25 TO *]", [Condition("specs.a.value", (), "0.25", None)]),
        ("specs.a.value:[* TO 5]", [Condition("specs.a.value", (), None, "5")]),
        ("specs.a.value:[* TO *]", [Condition("specs.a.value", (), None, None)]),
        ("specs.a.value:[-5 TO 1e3]", [Condition("specs.a.value", (), "-5", "1e3")]),
        ("specs.a.value:-5", [Condition("specs.a.value", ("-5",))]),
        ('specs.a.value:["1" TO "2"]', [Condition("specs.a.value", (), "1", "2")]),
        ("a:1 AND b:2", [Condition("a", ("1",)), Condition("b", ("2",))]),
        ("a:1 and b:2", [Condition("a", ("1",)), Condition("b", ("2",))]),
        ("a:1 b:2", [Condition("a", ("1",)), Condition("b", ("2",))]),
        ("+a:1 +b:2", [Condition("a", ("1",)), Condition("b", ("2",))]),
        ("a:1 OR a:2", [Condition("a", ("1", "2"))]),
        ("a:1 or a:2", [Condition("a", ("1", "2"))]),
        ("a:1 or a:2 or a:(3 OR 4)", [Condition("a", ("1", "2", "3", "4"))]),
        ("(a:1 or a:2) and b:3", [Condition("a", ("1", "2")), Condition("b", ("3",))]),
        ('a:"b?c"', [Condition("a", ("b?c",))]),
        (r"a:b\?c", [Condition("a", ("b?c",))]),
        ("(a:1 OR a:2) AND b:[1 TO 2]", [Condition("a", ("1", "2")), Condition("b", (), "1", "2")]),
        ("a:(1 or)", [Condition("a", ("1 or",))]),
        ('a:""', [Condition("a", ("",))]),
    ],
)
def test_supported_syntax_is_parsed(text: str, found: list[Condition]) -> None:
    assert lucene.conditions(text) == found


@pytest.mark.parametrize(
    "text, reason",
    [
        ("-a:1", "nothing can be excluded"),
        ("NOT a:1", "nothing can be excluded"),
        ("a:(1 OR NOT 2)", "nothing can be excluded"),
        ("a:{1 TO 5}", "both ends in"),
        ("a:[1 TO 5}", "both ends in"),
        ("a:1 OR b:2", "one field only"),
        ("a:1 OR (a:2 AND a:3)", "AND cannot stand inside OR"),
        ("a:1 AND a:2 OR a:3", "AND cannot stand inside OR"),
        ("a:1 and a:2 or a:3", "cannot be mixed"),
        ("a:1 or a:2 a:3", "cannot be mixed"),
        ("a:1 or", "cannot be mixed"),
        ("a:b?c", r"\\? is not understood"),
        ("a:1 or b:2", "one field only"),
        ("a:[1 TO 2] OR a:5", "a range cannot be an alternative"),
        ("a:(1 AND 2)", "one value at a time"),
        ("a:((1 OR 2) OR 3)", "groups cannot be nested"),
        ("a:1~", "fuzziness"),
        ('a:"b c"~2', "proximity"),
        ("a:1^2", "boost"),
        ("a:/x.*/", "pattern"),
        ("a", "belongs to no field"),
        ("or or", "belongs to no field"),
        ("or", "belongs to no field"),
        ("a:", "not of the form field:value"),
        (" ", "not of the form field:value"),
        ("a:[1 TO", "not of the form field:value"),
        ("(" * 2000, "not of the form field:value"),
        ("a:" + "b" * 2000, "at most 2000 characters each, not 2002"),
        ('a.b.c: "p q" ~2.2.2', "not of the form field:value"),
        ("a:<=5^2.2.2", "not of the form field:value"),
        ("a:(b and c)", "one value at a time"),
    ],
)
def test_unsupported_syntax_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(errors.BadRequest, match=reason) as refused:
        lucene.conditions(text)
    assert len(refused.value.message) < 250


words = st.sampled_from(
    [
        "a:",
        "b.c:",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        " TO ",
        "*",
        '"',
        "or",
        " OR ",
        " AND ",
        "NOT ",
        "-",
        "+",
        "~2",
        "^2.2.2",
        ">",
        "<=",
    ]
)
texts = st.lists(words | st.text(max_size=4) | st.floats().map(str), max_size=12).map("".join)


@given(texts)
def test_any_text_gives_conditions_or_a_bad_request(text: str) -> None:
    try:
        found = lucene.conditions(text)
    except errors.BadRequest:
        return
    assert found
    assert all(condition.field and (condition.is_range or condition.values) for condition in found)


@pytest.mark.parametrize(
    "values, found",
    [
        (("[1 TO *]",), [Condition("f", (), "1", None)]),
        (("a:b [c",), [Condition("f", ("a:b [c",))]),
        (("[1 TO *]", "x"), [Condition("f", ("[1 TO *]", "x"))]),
        (("*",), [Condition("f", ("*",))]),
    ],
)
def test_filter_values_are_exact_except_ranges(values: tuple[str, ...], found: list[Condition]) -> None:
    assert lucene.field_conditions("f", values) == found


@pytest.mark.parametrize(
    "text, order",
    [
        ("name asc", ("name", "asc")),
        (" name  DESC ", ("name", "desc")),
        ("name", ("name", "asc")),
        ("specs.a.value desc", ("specs.a.value", "desc")),
    ],
)
def test_sort_order_is_field_and_direction(text: str, order: tuple[str, str]) -> None:
    assert lucene.order(text) == order


@pytest.mark.parametrize("text", ["name up", "name asc desc", "a b c"])
def test_invalid_sort_direction_is_refused(text: str) -> None:
    with pytest.raises(errors.BadRequest, match="sortby must be like 'name asc'"):
        lucene.order(text)
