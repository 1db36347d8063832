"""Tests of the queries of parts/match: by which root field they go, what is counted beside them (contract graphql.md
§2.1), and v3's match rules (contract v3-rest.md §4), as a table and as properties."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import model
from proxy.planning import match
from proxy.planning.queries import Element, Query
from proxy.store.protocol import Hit

MPN = {"mpn": "A100"}


def planned(*queries: dict[str, Any], single: match.SingleQuery = "supSearchMpn") -> list[Query]:
    request = model.PartsMatchRequest(tuple(model.PartsMatchQuery(**query) for query in queries))
    return [asked for _, asked in match.of_request(request, single)]


@cases.parametrize("queries, single, roots")
def test_query_goes_by_its_root_field(
    queries: list[dict[str, Any]], single: match.SingleQuery, roots: list[str]
) -> None:
    assert [asked.root for asked in planned(*queries, single=single)] == roots


@pytest.mark.parametrize(
    "query, criteria, page",
    [
        (
            {"mpn": "A", "sku": "B", "seller": "C", "brand": "D", "start": 2, "limit": 9, "reference": "r"},
            {"mpn": "A", "sku": "B", "seller": "C", "manufacturer": "D"},
            (2, 11),
        ),
        (
            {"q": "flip", "brand": "TI", "seller": "Mouser", "start": 1},
            {"q": "flip", "filters": {"manufacturer_id": ["TI"], "distributor_id": ["Mouser"]}},
            (1, 4),
        ),
        ({"mpn": "*10*LONGER*"}, {"q": "LONGER"}, (0, 20)),
        ({"q": "flip", "mpn": "A1", "brand": "TI"}, {"q": "flip A1", "filters": {"manufacturer_id": ["TI"]}}, (0, 20)),
    ],
)
def test_query_has_all_fields_that_v3_sent(
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
    (asked,), v3 = planned(query), model.PartsMatchQuery(**query)
    elements = [Element(part(mpn), mpn.encode(), Hit(mpn)) for mpn in mpns]
    assert match.needs_count(v3, asked, match.shown(v3, False, hits, elements)) is is_counted
    counting = match.count(v3, model.MappingContext("DE", "EUR"))
    assert (counting.parts_max, counting.name) == (0, "supMultiMatch")
    assert [each["limit"] for each in msgspec.json.decode(counting.payload)["variables"]["queries"]] == [0]


def part(mpn: str, *skus: str) -> Any:
    offers = [SimpleNamespace(sku=sku) for sku in skus]
    return SimpleNamespace(mpn=mpn, akaMpns=[], sellers=[SimpleNamespace(offers=offers)])


def keeps(query: dict[str, Any], exact_only: bool, candidate: Any, aka: str | None = None) -> bool:
    elements = [Element(candidate, b"", Hit("", aka))]
    return bool(match.shown(model.PartsMatchQuery(**query), exact_only, 1, elements).elements)


@cases.parametrize("asked, mpn, aka, loose, exact")
def test_mpn_matches(asked: str, mpn: str, aka: str | None, loose: bool, exact: bool) -> None:
    assert keeps({"mpn": asked}, False, part(mpn), aka) is loose
    assert keeps({"mpn": asked}, True, part(mpn), aka) is exact


def test_exact_only_mpn_or_sku_compares_skus_exactly() -> None:
    query = {"mpn_or_sku": "67K1122"}
    assert keeps(query, True, part("A", "67K1122"))
    assert keeps(query, True, part("67K1122"))
    assert not keeps(query, True, part("A", "67k1122"))


def test_exact_only_compares_sku_and_several_mpns() -> None:
    assert not keeps({"sku": "67k-1122"}, True, part("A", "67K1122"))
    assert keeps({"sku": "67K1122", "mpn": "A"}, True, part("A", "67K1122"))
    assert not keeps({"sku": "67K1122", "mpn": "a"}, True, part("A", "67K1122"))


@pytest.mark.parametrize("query", [{"q": "flip"}, {"brand": "TI"}, {"seller": "Mouser"}])
@pytest.mark.parametrize("exact_only", [False, True])
def test_query_without_number_keeps_upstream_results(query: dict[str, Any], exact_only: bool) -> None:
    assert keeps(query, exact_only, part("A"))


def test_a_sku_is_left_to_upstream_unless_exact_only() -> None:
    assert keeps({"mpn_or_sku": "67k1122"}, False, part("A", "67K1122"))
    assert not keeps({"mpn_or_sku": "67k1122"}, True, part("A", "67K1122"))


@pytest.mark.parametrize("exact_only", [False, True])
def test_any_alternate_number_of_a_part_matches(exact_only: bool) -> None:
    candidate = part("A")
    candidate.akaMpns = ["B", "C-1"]
    assert keeps({"mpn": "C-1"}, exact_only, candidate)
    assert keeps({"mpn": "C1"}, exact_only, candidate) is not exact_only
    assert not keeps({"mpn": "D"}, exact_only, candidate)


@pytest.mark.parametrize(
    "pattern, asked", [("SN74*", "SN74"), ("*74*SN7400*", "SN7400"), ("A*BC", "BC"), ("ABC", "ABC")]
)
def test_wildcard_is_searched_by_its_longest_literal(pattern: str, asked: str) -> None:
    assert match.literal(pattern) == asked


@cases.parametrize("mpns, hits, start, limit, kept, counted, certain")
def test_hits_count_matching_parts_only(
    mpns: list[str], hits: int, start: int, limit: int, kept: int, counted: int, certain: bool
) -> None:
    query = model.PartsMatchQuery(mpn="A1", start=start, limit=limit)
    elements = [Element(part(mpn), mpn.encode(), Hit(mpn)) for mpn in mpns]
    found = match.shown(query, False, hits, elements)
    assert (len(found.elements), found.hits, found.certain) == (kept, counted, certain)


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
