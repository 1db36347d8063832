"""Caps of the supply queries, bounds of one request, and validation errors (contract graphql.md §2, §3.3)."""

import gzip
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox.graphql import transport

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


HOSTILE = {
    "selections in selections": "{" + "a{" * 3000 + "b" + "}" * 3000 + "}",
    "lists in lists": "{ supParts(ids: " + "[" * 5000 + "]" * 5000 + ") { id } }",
    "objects in objects": '{ supSearch(q: "x", filters: ' + "{a: " * 5000 + "1" + "}" * 5000 + ") { hits } }",
    "more tokens than are read": "{" + " a" * 30_000 + "}",
    "a circle of fragments": "{ supCategories { ...A } } fragment A on SupCategory { children { ...A } }",
    "types of fields of types": "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }",
}


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_document_gets_400_and_the_next_request_succeeds(caller: SandboxClient, document: str) -> None:
    response = await caller.ask(document)
    assert response.status == 400
    assert response.messages
    assert "data" not in response.body
    assert (await caller.ask("{ __typename }")).status == 200


async def test_body_length_is_limited_for_every_encoding(caller: SandboxClient) -> None:
    async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    def padded(length: int) -> bytes:
        return json.dumps({"query": "{ __typename }"}).encode().ljust(length)

    headers = {"Content-Type": "application/json", "token": caller.token}
    packed = {**headers, "Content-Encoding": "gzip"}
    most, more = padded(transport.MAX_BODY), padded(transport.MAX_BODY + 1)
    for body, said, status in (
        (io.BytesIO(most), headers, 200),
        (io.BytesIO(more), headers, 413),
        (in_pieces(most), headers, 200),
        (in_pieces(more), headers, 413),
        (gzip.compress(most), packed, 200),
        (gzip.compress(more), packed, 413),
    ):
        response = await caller.post(caller.sandbox.graphql_url, data=body, headers=said)
        assert response.status == status
        assert status == 200 or response.body["errors"][0]["extensions"]["code"] == "HC0010"


async def test_a_response_with_too_many_fields_is_rejected_and_not_billed(start: StartSandbox) -> None:
    query = '{{ supSearch(q: "", limit: {}) {{ results {{ part {{ mpn similarParts {{ id }} }} }} }} }}'
    async with start(answer_fields=100) as caller:
        assert (await caller.ask(query.format(1))).status == 200
        response = await caller.ask(query.format(90))
        assert caller.sandbox.billed_parts == 1
    assert response.status == 400
    assert response.messages == ["The maximum allowed operation complexity was exceeded."]
    assert response.body["errors"][0]["extensions"] == {"allowedComplexity": 100, "code": "HC0047"}


SEARCH = 'supSearch(q: "x") { hits }'


@cases.parametrize(
    "query, message, extensions",
    (
        "query($a: String, $b: Int) { " + SEARCH + " }",
        "The following variables were not used: a, b.",
        {},
    ),
)
async def test_a_validation_error_gets_400_with_the_message_of_the_service(
    caller: SandboxClient, query: str, message: str, extensions: dict[str, Any]
) -> None:
    response = await caller.ask(query)
    assert (response.status, response.messages) == (400, [message])
    found = dict(response.body["errors"][0]["extensions"])
    assert found.pop("specifiedBy").startswith("http://spec.graphql.org/October2021/#sec-")
    assert found == extensions
    assert response.body["errors"][0]["locations"]
    assert "data" not in response.body


@cases.parametrize("query")
async def test_all_other_rules_of_the_specification_hold(caller: SandboxClient, query: str) -> None:
    response = await caller.ask(query)
    assert response.status == 400
    assert response.messages


@pytest.mark.parametrize(
    "variables, code",
    [({"q": 7}, "HC0016"), ({"q": ["x"]}, "HC0016"), ({"q": None}, "HC0018"), ({}, "HC0018")],
)
async def test_an_invalid_variable_gets_400_with_its_code(
    caller: SandboxClient, variables: dict[str, Any], code: str
) -> None:
    response = await caller.ask("query($q: String!) { supSuggest(q: $q) { text } }", variables)
    assert (response.status, response.body["errors"][0]["extensions"]["code"]) == (400, code)


@pytest.mark.parametrize("field", ["supSearch", "supSearchMpn"])
@cases.parametrize("head, arguments, variables")
async def test_a_search_without_q_equals_one_with_an_empty_q(
    caller: SandboxClient, field: str, head: str, arguments: str, variables: dict[str, Any]
) -> None:
    response = await caller.ask(f"{head} {{ {field}{arguments} {{ hits results {{ part {{ id }} }} }} }}", variables)
    empty = await caller.ask(f'{{ {field}(q: "") {{ hits results {{ part {{ id }} }} }} }}')
    found, everything = response.data[field], empty.data[field]
    assert response.status == 200
    assert found["hits"] == everything["hits"] > 300
    assert found["results"] == everything["results"][: len(found["results"])] != []


async def test_the_vendors_examples_without_q_succeed(caller: SandboxClient) -> None:
    """Contract graphql.md §2.4, from the vendor's page on sorting and filtering."""
    part = "{ hits results { part { mpn manufacturer { name id } specs { attribute { shortname } siValue } } } }"
    sorted_ = f'query SupSearch {{ supSearch(sort: "maxoutputvoltage", sortDir: desc) {part} }}'
    volts = [_spec(hit, "maxoutputvoltage") for hit in (await caller.ask(sorted_)).data["supSearch"]["results"]]
    assert volts == sorted(volts, reverse=True)
    assert volts[0] > 0
    filters = '{manufacturer_id: ["Infineon"], numberofpins: ["(8__16)"]}'
    narrow = f'query filter_test {{ supSearch(filters: {filters} sort: "numberofpins" start: 2) {part} }}'
    found = (await caller.ask(narrow)).data["supSearch"]
    assert found["results"]
    assert found["hits"] == len(found["results"]) + 2
    assert {hit["part"]["manufacturer"]["name"] for hit in found["results"]} == {"Infineon"}
    pins = [_spec(hit, "numberofpins") for hit in found["results"]]
    assert pins == sorted(pins)
    assert 8 <= pins[0] <= pins[-1] <= 16


def _spec(hit: dict[str, Any], name: str) -> float:
    [value] = [one["siValue"] for one in hit["part"]["specs"] if one["attribute"]["shortname"] == name]
    return float(value)
