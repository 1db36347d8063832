"""Queries by GET: parameters of the URL, and operations that GET does not allow (GraphQL over HTTP, "GET")."""

import json
from typing import Any

import pytest
from support import cases
from support.sandbox_client import JsonResponse, SandboxClient

BY_ID = "query($ids: [String!]) { supSellers(ids: $ids) { name } }"
BOTH = 'query A { supSellers(ids: ["459"]) { name } } query B { supSellers(ids: ["2401"]) { name } }'
DIGI_KEY = {"supSellers": [{"name": "Digi-Key"}]}
MIXED = "query Read { __typename } mutation Write { __typename } subscription Watch { __typename }"


async def get(caller: SandboxClient, params: Any, **headers: str) -> JsonResponse:
    request_headers = {"Authorization": f"Bearer {caller.token}", **headers}
    async with caller.session.get(caller.sandbox.graphql_url, params=params, headers=request_headers) as response:
        raw = await response.read()
        return JsonResponse(response.status, json.loads(raw), response.headers, raw)


async def test_variables_are_json_text(caller: SandboxClient) -> None:
    response = await get(caller, {"query": BY_ID, "variables": '{"ids": ["459"]}', "extensions": '{"any": 1}'})
    assert (response.status, response.data) == (200, DIGI_KEY)


@pytest.mark.parametrize("name, status", [("A", 200), ("C", 400), ("", 400)])
async def test_the_operation_name_selects_and_an_empty_one_is_ignored(
    caller: SandboxClient, name: str, status: int
) -> None:
    response = await get(caller, {"query": BOTH, "operationName": name})
    assert response.status == status
    assert status == 400 or response.data == DIGI_KEY
    assert (await get(caller, {"query": "{ __typename }", "operationName": ""})).status == 200


@cases.parametrize("params, named")
async def test_an_invalid_parameter_gets_400_with_its_name(caller: SandboxClient, params: Any, named: str) -> None:
    for accept in ("application/json", "application/graphql-response+json"):
        response = await get(caller, params, Accept=accept)
        assert response.status == 400
        assert named in response.messages[0]


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/graphql-response+json"])
@pytest.mark.parametrize("name", ["Write", "Watch"])
async def test_a_get_other_than_a_query_gets_405_with_allow(caller: SandboxClient, name: str, accept: str) -> None:
    response = await get(caller, {"query": MIXED, "operationName": name}, Accept=accept)
    assert (response.status, response.headers["Allow"]) == (405, "POST")
    assert response.messages == ["The specified operation kind is not allowed."]
    assert "data" not in response.body


async def test_a_get_is_billed_and_journalled_like_a_post(caller: SandboxClient) -> None:
    search = 'query Few { supSearch(q: "", limit: 3) { results { part { id } } } }'
    assert (await get(caller, {"query": search})).status == 200
    assert caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id) == 3
    totals = caller.sandbox.journal.totals
    assert (totals.requests["graphql"], totals.parts) == (1, 3)
