"""Tests of filter queries as clients write them, and of refused ones (contract v3-rest.md §1.1); and of wildcards: `*`
matches any text, and every pattern takes bounded time (§4)."""

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import errors
from proxy.model import SearchRequest
from proxy.planning import lucene
from proxy.planning.lucene import Condition


@cases.parametrize("text, found")
def test_supported_syntax_is_parsed(text: str, found: list[Any]) -> None:
    assert lucene.conditions(text) == [Condition(field, tuple(values), *ends) for field, values, *ends in found]


@cases.parametrize(
    "text, reason",
    ("(" * 2000, "not of the form field:value"),
    ("a:" + "b" * 2000, "at most 2000 characters each, not 2002"),
)
def test_unsupported_syntax_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(errors.BadRequest, match=reason) as refused:
        lucene.conditions(text)
    assert len(refused.value.message) < 250


words = st.sampled_from(
    ["a:", "b.c:", *"()[]{}", " TO ", "*", '"', "or", " OR ", " AND ", "NOT ", *"-+", "~2", "^2.2.2", ">", "<="]
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
    *_, filters = lucene.parse_filters(SearchRequest(filters=(("f", values),)))
    assert filters.conditions == found


@cases.parametrize("pattern, fitting, others")
def test_pattern_matches_texts(pattern: str, fitting: list[str], others: list[str]) -> None:
    like = lucene.matcher(pattern)
    assert [text for text in fitting if not like(text)] == []
    assert [text for text in others if like(text)] == []


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_pattern_equals_its_regular_expression(pattern: str, text: str) -> None:
    plain = ".*".join(map(re.escape, pattern.split("*")))
    assert lucene.matcher(pattern)(text) is bool(re.fullmatch(plain, text, re.DOTALL))


@pytest.mark.parametrize("pattern", ["*" * 3000 + "x", "*a" * 1000 + "x", "a*" * 1000])
def test_any_pattern_takes_bounded_time(pattern: str) -> None:
    like = lucene.matcher(pattern)
    started = time.process_time()
    assert not like("a" * 500)
    assert time.process_time() - started < 1
