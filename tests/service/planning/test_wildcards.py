"""Tests of wildcards: `*` matches any text, and every pattern takes bounded time (contract v3-rest.md §1.1, §4)."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy.planning import wildcards


@cases.parametrize("pattern, fitting, others")
def test_pattern_matches_texts(pattern: str, fitting: list[str], others: list[str]) -> None:
    like = wildcards.matcher(pattern)
    assert [text for text in fitting if not like(text)] == []
    assert [text for text in others if like(text)] == []


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_pattern_equals_its_regular_expression(pattern: str, text: str) -> None:
    plain = ".*".join(map(re.escape, pattern.split("*")))
    assert wildcards.matcher(pattern)(text) is bool(re.fullmatch(plain, text, re.DOTALL))


@pytest.mark.parametrize("pattern", ["*" * 3000 + "x", "*a" * 1000 + "x", "a*" * 1000])
def test_any_pattern_takes_bounded_time(pattern: str) -> None:
    like = wildcards.matcher(pattern)
    started = time.process_time()
    assert not like("a" * 500)
    assert time.process_time() - started < 1
