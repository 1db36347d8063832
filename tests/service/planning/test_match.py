"""Tests of match plans: operations, batches, and the assignment of results (contract graphql.md §2.1)."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import cases

from proxy import model
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import match, projection_cache
from proxy.planning.operations import OperationResult


@pytest.fixture(scope="session")
def documents() -> match.Documents:
    return projection_cache.ProjectionCache(loader.load(shipped.path("mappings"))).match(model.Projection()).documents


def plan(
    documents: match.Documents,
    *queries: dict[str, Any],
    single: match.SingleQuery = "supSearchMpn",
    exact: bool = False,
) -> match.MatchPlan:
    asked = tuple(model.PartsMatchQuery(**query) for query in queries)
    request = model.PartsMatchRequest(asked, exact)
    return match.MatchPlan(request, documents, json.loads, model.MappingContext("DE", "EUR"), single)


def variables(ask: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(ask.operation.payload)["variables"]
    return decoded


MPN, OTHER = {"mpn": "A100"}, {"mpn": "B200"}


@cases.parametrize("queries, single, names")
def test_query_uses_its_operation(
    documents: match.Documents, queries: list[dict[str, Any]], single: match.SingleQuery, names: list[str]
) -> None:
    asks = plan(documents, *queries, single=single).operations
    assert [ask.operation.name for ask in asks] == names
    good = [position for position, query in enumerate(queries) if "error" not in query]
    assert sorted(position for ask in asks for position in ask.positions) == good


def test_variables_hold_all_fields_of_a_query(documents: match.Documents) -> None:
    query = {"mpn": "A", "sku": "B", "seller": "C", "brand": "D", "start": 2, "limit": 9, "reference": "r"}
    (together,) = plan(documents, query, {"mpn_or_sku": "E"}).operations
    assert variables(together) == {
        "country": "DE",
        "currency": "EUR",
        "queries": [
            {"mpn": "A", "sku": "B", "seller": "C", "manufacturer": "D", "start": 2, "limit": 9},
            {"mpnOrSku": "E", "start": 0, "limit": 3},
        ],
    }
    assert together.operation.parts_max == 12
    (search,) = plan(documents, {"q": "flip", "brand": "TI", "seller": "Mouser", "start": 1}).operations
    assert variables(search) == {
        "q": "flip", "start": 1, "limit": 3, "country": "DE", "currency": "EUR",
        "filters": {"manufacturer_id": ["TI"], "distributor_id": ["Mouser"]},
    }  # fmt: skip
    (pattern,) = plan(documents, {"mpn": "*10*LONGER*"}).operations
    assert variables(pattern)["q"] == "LONGER"


limits = st.lists(st.integers(0, 20), max_size=150)


@given(limits)
def test_portions_keep_order_within_a_hundred_parts_and_queries(wanted: list[int]) -> None:
    queries = [(position, model.PartsMatchQuery(), limit) for position, limit in enumerate(wanted)]
    portions = list(match.chunks(queries, 100))
    assert [entry for portion in portions for entry in portion] == queries
    assert all(portion and len(portion) <= 100 for portion in portions)
    assert all(sum(limit for _, _, limit in portion) <= 100 for portion in portions)


def found(hits: int, *mpns: str, error: str | None = None) -> OperationResult:
    parts = [SimpleNamespace(mpn=mpn, akaMpns=[]) for mpn in mpns]
    return OperationResult(parts, hits, error, records=[b"{}"] * len(parts))


@pytest.mark.parametrize(
    "query, answer, count",
    [
        (MPN, found(9, "A100", "A-100", "a100"), [{"mpn": "A100", "start": 0, "limit": 0}]),
        (MPN, found(3, "A100", "A-100", "a100"), []),
        (MPN, found(9, "A100", "A1001"), []),
        (MPN, found(9, error="refused"), []),
        ({"mpn": "A10*"}, found(9, "A100", "A101", "A102"), []),
        ({**MPN, "start": 3}, found(9, "A1001"), [{"mpn": "A100", "start": 3, "limit": 0}]),
        ({**MPN, "brand": "TI"}, found(9, "A100"), []),
        ({"q": "x"}, found(9, "A100"), []),
    ],
)
def test_hits_beyond_a_page_are_counted_without_cost(
    documents: match.Documents, query: dict[str, Any], answer: OperationResult, count: list[Any]
) -> None:
    asks = plan(documents, query).count_operations({0: answer})
    assert [entry for ask in asks for entry in variables(ask)["queries"]] == count
    assert [(ask.operation.parts_max, ask.operation.name) for ask in asks] == [(0, "supMultiMatch")] * len(count)
