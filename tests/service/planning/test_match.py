"""Tests of the queries of parts/match: by which root field they go, and what is counted beside them (contract
graphql.md §2.1)."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
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
    elements = [Element(SimpleNamespace(mpn=mpn, akaMpns=[]), mpn.encode(), Hit(mpn)) for mpn in mpns]
    assert match.needs_count(v3, asked, match.shown(v3, False, hits, elements)) is is_counted
    counting = match.count(v3, model.MappingContext("DE", "EUR"))
    assert (counting.parts_max, counting.name) == (0, "supMultiMatch")
    assert [each["limit"] for each in msgspec.json.decode(counting.payload)["variables"]["queries"]] == [0]
