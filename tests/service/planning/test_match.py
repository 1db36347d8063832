"""Queries of parts/match: roots, keys, groups, free counts (graphql.md §2.1), and match rules (v3-rest.md §4)."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import model
from proxy.model import PartsMatchQuery
from proxy.planning import match, queries
from proxy.planning.queries import Element, Query, fold
from proxy.store.protocol import Hit

MPN = {"mpn": "A100"}


def planned(*queries: dict[str, Any], single: match.SingleQuery = "supSearchMpn") -> list[Query]:
    request = model.PartsMatchRequest(tuple(model.PartsMatchQuery(**query) for query in queries))
    return [plan.asked for plan in match.plans(request, single)]


@cases.parametrize("queries, single, roots")
def test_query_goes_by_its_root_field(
    queries: list[dict[str, Any]], single: match.SingleQuery, roots: list[str]
) -> None:
    assert [asked.root for asked in planned(*queries, single=single)] == roots


@pytest.mark.parametrize(
    "query, criteria, page",
    [
        ({"mpn": "*10*LONGER*"}, {"q": "LONGER"}, (0, 20)),
        ({"q": "flip", "mpn": "A1", "brand": "TI"}, {"q": "flip A1", "filters": {"manufacturer_id": ["TI"]}}, (0, 20)),
    ],
)
def test_search_has_the_longest_piece_or_both_texts(
    query: dict[str, Any], criteria: dict[str, Any], page: tuple[int, int]
) -> None:
    (asked,) = planned(query)
    assert (asked.criteria, (asked.start, asked.end)) == (criteria, page)


@pytest.mark.parametrize(
    "query, hits, mpns, is_counted",
    [
        (MPN, 9, ["A100", "A-100", "a100"], True),
        (MPN, 3, ["A100", "A-100", "a100"], False),
        (MPN, 9, ["A100", "A1001"], False),
        ({"mpn": "A10*"}, 9, ["A100", "A101", "A102"], False),
        ({**MPN, "start": 3}, 9, ["A1001"], True),
        ({**MPN, "brand": "TI"}, 9, ["A100"], False),
        ({"q": "x"}, 9, ["A100"], False),
    ],
)
def test_hits_beyond_a_page_are_counted_without_cost(
    query: dict[str, Any], hits: int, mpns: list[str], is_counted: bool
) -> None:
    plan = match.plan(model.PartsMatchQuery(**query), False, is_single=True)
    elements = [Element(part(mpn), mpn.encode(), Hit(mpn)) for mpn in mpns]
    assert plan.shown(hits, elements).certain is not is_counted
    counting = plan.count_operation(model.MappingContext("DE", "EUR"))
    assert (counting.parts_max, counting.name) == (0, "supMultiMatch")
    assert [each["limit"] for each in msgspec.json.decode(counting.payload)["variables"]["queries"]] == [0]


def part(mpn: str, *skus: str) -> Any:
    offers = [SimpleNamespace(sku=sku) for sku in skus]
    return SimpleNamespace(mpn=mpn, akaMpns=[], sellers=[SimpleNamespace(offers=offers)])


def keeps(query: dict[str, Any], exact_only: bool, candidate: Any, aka: str | None = None) -> bool:
    elements = [Element(candidate, b"", Hit("", aka))]
    return bool(match.plan(model.PartsMatchQuery(**query), exact_only).shown(1, elements).elements)


@cases.parametrize("asked, mpn, aka, loose, exact")
def test_mpn_matches(asked: str, mpn: str, aka: str | None, loose: bool, exact: bool) -> None:
    assert keeps({"mpn": asked}, False, part(mpn), aka) is loose
    assert keeps({"mpn": asked}, True, part(mpn), aka) is exact


numbers = st.text("aA1-./ *(é", min_size=1, max_size=8)
plain = numbers.filter(lambda number: "*" not in number and match.normalize(number))


@given(plain)
def test_mpn_always_matches_itself(number: str) -> None:
    assert keeps({"mpn": number}, True, part(number))
    assert keeps({"mpn": number}, False, part(number))


@given(plain, plain)
def test_exact_match_implies_match(asked: str, mpn: str) -> None:
    if keeps({"mpn": asked}, True, part(mpn)):
        assert asked == mpn
    assert keeps({"mpn": asked}, False, part(mpn)) == (match.normalize(asked) == match.normalize(mpn))


@given(plain, st.text("aA1-.", max_size=4))
def test_trailing_wildcard_matches_every_suffix(number: str, tail: str) -> None:
    assert keeps({"mpn": number + "*"}, False, part(number + tail))
    assert keeps({"mpn": number + "*"}, True, part(number + tail))


@given(st.text())
def test_normalization_is_idempotent(text: str) -> None:
    once = match.normalize(text)
    assert match.normalize(once) == once
    assert match.normalize(f"-{text} .") == once


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
    assert {match.plan(each, exact_only).asked.key for each in same for exact_only in (False, True)} == {
        match.plan(first, False).asked.key
    }
    assert len({match.plan(PartsMatchQuery(**each), False).asked.key for each in [{"mpn": "BAV99"}, *others]}) == 8


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
