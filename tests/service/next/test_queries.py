"""Queries of the core: which requests of v3 need the same list, and what v3 shows of it."""

from types import SimpleNamespace
from typing import Any

import pytest

from proxy.model import PartsMatchQuery
from proxy.planning.match import of_match, shown
from proxy.planning.queries import Element, fold
from proxy.store.protocol import Hit

NUMBERS = ("BAV99", "BAV-99", "BAV99W", "BAV99")


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


@pytest.mark.parametrize(
    "query, exact_only, numbers, hits",
    [
        ({"mpn": "BAV99"}, False, ["BAV99", "BAV-99"], 2),
        ({"mpn": "BAV99", "start": 1, "limit": 1}, False, ["BAV-99"], 4),
        ({"mpn": "bav99"}, True, [], 0),
        ({"mpn": "BAV99"}, True, ["BAV99", "BAV99"], 2),
        ({"mpn": "BAV99*"}, False, ["BAV99", "BAV-99", "BAV99W"], 4),
    ],
)
def test_v3_shows_matches_of_its_page(query: dict[str, Any], exact_only: bool, numbers: list[str], hits: int) -> None:
    asked = of_match(PartsMatchQuery(**query), exact_only)
    candidates = [Element(SimpleNamespace(mpn=each, akaMpns=[]), each.encode(), Hit(each)) for each in NUMBERS]
    matches = shown(PartsMatchQuery(**query), exact_only, 4, candidates[asked.start : asked.end])
    assert ([each.part.mpn for each in matches.elements], matches.hits) == (numbers, hits)
