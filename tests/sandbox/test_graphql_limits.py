"""The caps of the supply queries: ranges, sizes, filters that cannot be read (contract graphql.md §2.1 and §2.2)."""

from typing import Any

import pytest
from support import cases
from support.sandbox_client import SandboxClient

START = "start must be between 0 and 1000"
LIMIT = "limit must be between 0 and 100"
MATCH = "query($queries: [SupPartMatchQuery!]!) { supMultiMatch(queries: $queries) { hits parts { id } } }"


async def test_a_bad_range_gets_both_errors_in_the_vendors_format_start_first(caller: SandboxClient) -> None:
    response = await caller.ask('{\n  supSearchMpn(q: "x", limit: 101, start: 1001) { hits }\n}')
    assert response.status == 200
    assert set(response.body) == {"errors", "extensions"}
    assert response.body["errors"] == [
        {
            "message": message,
            "locations": [{"line": 2, "column": 3}],
            "path": ["supSearchMpn"],
            "extensions": {
                "remote": {"message": message, "path": ["supSearchMpn"]},
                "schemaName": "Supply",
            },
        }
        for message in (START, LIMIT)
    ]


@pytest.mark.parametrize("field", ["supSearch", "supSearchMpn"])
@pytest.mark.parametrize(
    "arguments, messages",
    [
        ("start: -1", [START]),
        ("start: 1001", [START]),
        ("limit: -1", [LIMIT]),
        ("limit: 101", [LIMIT]),
        ("start: -1, limit: -1", [START, LIMIT]),
        ("start: 0, limit: 0", None),
        ("start: 1000, limit: 100", None),
    ],
)
async def test_search_ranges_include_their_ends(
    caller: SandboxClient, field: str, arguments: str, messages: list[str] | None
) -> None:
    response = await caller.ask(f'{{ {field}(q: "x", {arguments}) {{ hits }} }}')
    assert response.status == 200
    assert [error["message"] for error in response.body.get("errors", [])] == (messages or [])


@pytest.mark.parametrize(
    "queries, messages",
    [
        ([{"mpn": "x", "limit": 1}] * 100, None),
        ([{"mpn": "x"}] * 33, None),
        ([{"mpn": "x", "limit": 5}] * 20, None),
        ([{"mpn": "x", "limit": 100}], None),
        ([], None),
        ([{"mpn": "x"}] * 34, ["the sum of all limits must not exceed 100"]),
        ([{"mpn": "x", "limit": 51}] * 2, ["the sum of all limits must not exceed 100"]),
        ([{"mpn": "x", "limit": 0}] * 101, ["the number of queries must not exceed 100"]),
        ([{"mpn": "x", "limit": 101}], [LIMIT]),
        ([{"mpn": "x", "limit": -1}, {"mpn": "x", "start": 1001}], [START, LIMIT]),
    ],
)
async def test_a_multi_match_allows_a_hundred_parts_and_a_hundred_queries(
    caller: SandboxClient, queries: list[dict[str, Any]], messages: list[str] | None
) -> None:
    response = await caller.ask(MATCH, {"queries": queries})
    assert response.status == 200
    if messages is None:
        assert len(response.data["supMultiMatch"]) == len(queries)
    else:
        assert response.messages == messages
        assert all(error["path"] == ["supMultiMatch"] for error in response.body["errors"])
        assert "data" not in response.body


@pytest.mark.parametrize("number, refused", [(100, False), (101, True)])
async def test_a_hundred_ids_are_allowed(caller: SandboxClient, number: int, refused: bool) -> None:
    response = await caller.ask("query($ids: [String!]!) { supParts(ids: $ids) { id } }", {"ids": ["1"] * number})
    assert ("errors" in response.body) is refused
    assert not refused or response.messages == ["the number of ids must not exceed 100"]


async def test_an_error_path_has_the_response_name_of_the_field(caller: SandboxClient) -> None:
    response = await caller.ask('{ ok: supSearch(q: "x") { hits } bad: supSearch(q: "x", limit: 500) { hits } }')
    assert [error["path"] for error in response.body["errors"]] == [["bad"]]
    assert "data" not in response.body


async def test_a_rejected_request_is_not_billed(caller: SandboxClient) -> None:
    await caller.ask(MATCH, {"queries": [{"mpn": "SN74S74N", "limit": 60}] * 2})
    assert caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id) == 0


async def test_an_unknown_currency_is_rejected_by_name(caller: SandboxClient) -> None:
    response = await caller.ask('{ supSearch(q: "x", currency: "QQQ") { hits } }')
    assert response.messages == ["currency 'QQQ' is not supported"]


@cases.parametrize("arguments, named")
async def test_an_invalid_filter_or_sort_is_named_in_the_error(
    caller: SandboxClient, arguments: str, named: str
) -> None:
    response = await caller.ask(f'{{ supSearch(q: "x", {arguments}) {{ hits }} }}')
    (error,) = response.body["errors"]
    assert named in error["message"]
    assert error["path"] == ["supSearch"]
    assert error["extensions"]["remote"]["message"] == error["message"]
    assert response.body["data"] is None


async def test_filters_must_be_an_object(caller: SandboxClient) -> None:
    query = 'query($f: Map) { supSearch(q: "x", filters: $f) { hits } }'
    assert (await caller.ask(query, {"f": {"manufacturer_id": ["370"]}})).status == 200
    assert (await caller.ask(query, {"f": None})).status == 200
    assert (await caller.ask(query, {"f": ["370"]})).status == 400
    assert (await caller.ask('{ supSearch(q: "x", filters: "370") { hits } }')).status == 400
