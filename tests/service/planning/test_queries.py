"""Queries of the core: which requests of v3 need the same list, and which go together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.model import PartsMatchQuery
from proxy.planning import queries
from proxy.planning.match import of_match
from proxy.planning.queries import fold


@pytest.mark.parametrize("text, folded", [(" bav99\t", "BAV99"), ("straße µ", "STRAßE µ"), ("1.5ke-6,8", "1.5KE-6,8")])
def test_ascii_case_and_outer_blanks_are_folded_and_nothing_else(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_requests_with_the_same_list_have_the_same_key() -> None:
    first = PartsMatchQuery(mpn="BAV99", reference="a")
    same = [PartsMatchQuery(mpn="bav99 ", start=10, limit=5), PartsMatchQuery(mpn="BAV99", reference="b")]
    others: list[dict[str, Any]] = [
        {"mpn": "BAV-99"},
        {"mpn_or_sku": "BAV99"},
        {"sku": "BAV99"},
        {"mpn": "BAV99", "brand": "NXP"},
    ]
    others += [{"mpn": "BAV9*"}, {"q": "BAV99"}, {"mpn": "BAV99", "seller": "Mouser"}]
    assert {of_match(each, exact_only).key for each in same for exact_only in (False, True)} == {
        of_match(first, False).key
    }
    assert len({of_match(PartsMatchQuery(**each), False).key for each in [{"mpn": "BAV99"}, *others]}) == 8


uids = st.text("0123456789abcdef", min_size=16, max_size=16)


@given(st.lists(uids | st.text(max_size=20), max_size=30))
def test_valid_uids_are_asked_for_once_in_order(given_uids: list[str]) -> None:
    asked = queries.valid_uids(given_uids)
    assert len(set(asked)) == len(asked)
    assert asked == [uid for uid in sorted(set(given_uids), key=given_uids.index) if uid in asked]
    assert all(len(uid) == 16 and set(uid) <= set("0123456789abcdef") for uid in asked)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=150))
def test_what_goes_together_has_no_number_twice_and_at_most_a_hundred_parts(wanted: list[tuple[int, int]]) -> None:
    asked = [queries.matching(0, limit, mpn=f"A{number}") for number, limit in wanted]
    groups = queries.grouped(asked, 100)
    assert [query for group in groups for query in group] == asked
    for group in groups:
        assert len({query.key for query in group}) == len(group) <= 100
        assert sum(query.end for query in group) <= 100
