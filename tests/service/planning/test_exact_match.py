"""Tests of v3's match rules (contract v3-rest.md §4), as a table and as properties."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy.model import PartsMatchQuery
from proxy.planning import exact_match
from proxy.planning.queries import Element
from proxy.store.protocol import Hit


def part(mpn: str, *skus: str) -> Any:
    offers = [SimpleNamespace(sku=sku) for sku in skus]
    return SimpleNamespace(mpn=mpn, akaMpns=[], sellers=[SimpleNamespace(offers=offers)])


def keeps(query: dict[str, Any], exact_only: bool, candidate: Any, aka: str | None = None) -> bool:
    keep = exact_match.match_test(PartsMatchQuery(**query), exact_only)
    return keep is None or keep(candidate, aka)


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
    assert exact_match.match_test(PartsMatchQuery(**query), exact_only) is None


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
    assert exact_match.literal(pattern) == asked


@cases.parametrize("mpns, hits, start, limit, kept, counted, certain")
def test_hits_count_matching_parts_only(
    mpns: list[str], hits: int, start: int, limit: int, kept: int, counted: int, certain: bool
) -> None:
    query = PartsMatchQuery(mpn="A1", start=start, limit=limit)
    keep = exact_match.match_test(query, False)
    elements = [Element(part(mpn), mpn.encode(), Hit(mpn)) for mpn in mpns]
    narrowed = exact_match.filter_ranked(query, elements, hits, keep)
    assert (len(narrowed.elements), narrowed.hits, narrowed.certain) == (kept, counted, certain)


numbers = st.text("aA1-./ *(é", min_size=1, max_size=8)
plain = numbers.filter(lambda number: "*" not in number and exact_match.normalize(number))


@given(plain)
def test_mpn_always_matches_itself(number: str) -> None:
    assert keeps({"mpn": number}, True, part(number))
    assert keeps({"mpn": number}, False, part(number))


@given(plain, plain)
def test_exact_match_implies_match(asked: str, mpn: str) -> None:
    if keeps({"mpn": asked}, True, part(mpn)):
        assert asked == mpn
    assert keeps({"mpn": asked}, False, part(mpn)) == (exact_match.normalize(asked) == exact_match.normalize(mpn))


@given(plain, st.text("aA1-.", max_size=4))
def test_trailing_wildcard_matches_every_suffix(number: str, tail: str) -> None:
    assert keeps({"mpn": number + "*"}, False, part(number + tail))
    assert keeps({"mpn": number + "*"}, True, part(number + tail))


@given(st.text())
def test_normalization_is_idempotent(text: str) -> None:
    once = exact_match.normalize(text)
    assert exact_match.normalize(once) == once
    assert exact_match.normalize(f"-{text} .") == once
