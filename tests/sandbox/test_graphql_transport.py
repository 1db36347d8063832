"""Headers, status codes and bodies of the query service (contract graphql.md §3.1 and §3.2)."""

import re

import jwt
import pytest
from support.sandbox_client import SandboxClient

from proxy.kit import clock

ASKED = '{ supSellers(ids: ["459"]) { name } }'
ANSWER = {"supSellers": [{"name": "Digi-Key"}]}
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
INVALID = "Token validation failed. Please provide a valid access token."


async def test_both_authorization_headers_are_accepted(caller: SandboxClient) -> None:
    for headers in (
        {"Authorization": f"Bearer {caller.token}"},
        {"authorization": f"bearer {caller.token}"},
        {"token": caller.token},
    ):
        assert (await caller.ask(ASKED, headers=headers)).data == ANSWER


async def test_the_trailing_slash_makes_no_difference(caller: SandboxClient) -> None:
    response = await caller.post(
        caller.sandbox.graphql_url + "/", json={"query": ASKED}, headers={"token": caller.token}
    )
    assert response.data == ANSWER


async def test_every_response_has_a_unique_request_id(caller: SandboxClient) -> None:
    bodies = [(await caller.ask(query)).body for query in (ASKED, ASKED, "{ nonsense }", "{")]
    ids = [body["extensions"]["requestId"] for body in bodies]
    assert all(UUID4.fullmatch(one) for one in ids)
    assert len(set(ids)) == 4
    assert all(list(body)[-1] == "extensions" for body in bodies)


@pytest.mark.parametrize(
    "headers", [{}, {"token": "nonsense"}, {"Authorization": "Bearer "}, {"Authorization": "Basic Zm9vOmJhcg=="}]
)
async def test_a_missing_or_garbled_token_gets_401_in_the_format_of_the_service(
    caller: SandboxClient, headers: dict[str, str]
) -> None:
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


async def test_a_token_of_another_key_or_audience_is_invalid(
    caller: SandboxClient, manual_clock: clock.ManualClock
) -> None:
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
