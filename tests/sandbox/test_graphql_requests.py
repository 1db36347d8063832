"""Requests of the query service: tokens, formats, bounds and documents that are refused (contract graphql.md §3)."""

import gzip
import io
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox.graphql import transport

ASKED = '{ supSellers(ids: ["459"]) { name } }'
ANSWER = {"supSellers": [{"name": "Digi-Key"}]}
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
INVALID = "Token validation failed. Please provide a valid access token."


async def test_both_authorization_headers_are_accepted_with_and_without_a_slash(caller: SandboxClient) -> None:
    for headers in (
        {"Authorization": f"Bearer {caller.token}"},
        {"authorization": f"bearer {caller.token}"},
        {"token": caller.token},
    ):
        for url in (caller.sandbox.graphql_url, caller.sandbox.graphql_url + "/"):
            assert (await caller.post(url, json={"query": ASKED}, headers=headers)).data == ANSWER


async def test_every_response_has_a_unique_request_id(caller: SandboxClient) -> None:
    bodies = [(await caller.ask(query)).body for query in (ASKED, ASKED, "{ nonsense }", "{")]
    ids = [body["extensions"]["requestId"] for body in bodies]
    assert all(UUID4.fullmatch(one) for one in ids)
    assert len(set(ids)) == 4
    assert all(list(body)[-1] == "extensions" for body in bodies)


@pytest.mark.parametrize(
    "headers", [{}, {"token": "nonsense"}, {"Authorization": "Bearer "}, {"Authorization": "Basic Zm9vOmJhcg=="}]
)
async def test_missing_or_garbled_token_is_a_401_of_the_service(caller: SandboxClient, headers: dict[str, str]) -> None:
    response = await caller.ask(ASKED, headers=headers)
    assert response.status == 401
    assert set(response.body) == {"errors", "extensions"}
    (error,) = response.body["errors"]
    assert error["message"] == INVALID
    assert error["path"] == ["supSellers"]
    assert error["locations"] == [{"line": 1, "column": 3}]
    assert error["extensions"]["code"] == "AuthInvalidToken"
    assert error["extensions"]["remote"]["message"] == INVALID
    assert error["extensions"]["schemaName"] == "Supply"


async def test_token_of_another_key_is_invalid(caller: SandboxClient) -> None:
    claims = jwt.decode(caller.token, options={"verify_signature": False})
    foreign = jwt.encode(claims, "x" * 32, algorithm="HS256")
    unsigned = jwt.encode(claims, "", algorithm="none")
    broken = caller.token[:-6] + "AAAAAA"
    for token in (foreign, unsigned, broken):
        response = await caller.ask(ASKED, headers={"token": token})
        assert (response.status, response.body["errors"][0]["extensions"]["code"]) == (401, "AuthInvalidToken")


async def test_a_token_error_precedes_a_document_error(caller: SandboxClient) -> None:
    for query in ("{ nonsense }", "{", "{ __schema { nonsense } supSellers { id } }"):
        assert (await caller.ask(query, headers={})).status == 401


@pytest.mark.parametrize(
    "body, code",
    [
        (b"", "HC0012"),
        (b"{", "HC0012"),
        (b'"text"', "HC0012"),
        (b"[]", "HC0009"),
        (b'[{"query": "{ __typename }"}]', "HC0009"),
        (b"{}", "HC0013"),
        (b'{"query": null}', "HC0013"),
        (b'{"query": " "}', "HC0013"),
        (b'{"query": 7}', "HC0013"),
        (b'{"query": "{ __typename }", "variables": []}', "HC0012"),
        (b'{"query": "{ __typename }", "operationName": {}}', "HC0012"),
        (b'{"query": "{ supSellers { name "}', "HC0011"),
        (b'{"query": "{ supSellers { } }"}', "HC0011"),
        (b"\xff\xfe", "HC0012"),
    ],
)
async def test_an_invalid_graphql_request_gets_400_with_its_code(caller: SandboxClient, body: bytes, code: str) -> None:
    headers = {"token": caller.token, "Content-Type": "application/json"}
    response = await caller.post(caller.sandbox.graphql_url, data=body, headers=headers)
    assert (response.status, response.body["errors"][0]["extensions"]["code"]) == (400, code)
    assert "data" not in response.body


async def test_json_is_escaped_as_the_service_escapes_it(caller: SandboxClient) -> None:
    """Recorded: µ, Ω, + and &, hex digits in upper case (contract graphql.md §3.1)."""
    odd = "µΩ+&<>' 😀"
    response = await caller.ask(
        "query($q: [SupPartMatchQuery!]!) { supMultiMatch(queries: $q) { reference } }",
        {"q": [{"mpn": "x", "reference": odd}]},
    )
    assert response.data == {"supMultiMatch": [{"reference": odd}]}
    assert rb"\u00B5\u03A9\u002B\u0026\u003C\u003E\u0027 \uD83D\uDE00" in response.raw


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
        assert caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id) == 1
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
async def test_invalid_variable_gets_its_code(caller: SandboxClient, variables: dict[str, Any], code: str) -> None:
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
