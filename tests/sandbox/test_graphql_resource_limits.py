"""Bounds of one GraphQL request: body, document and response."""

import gzip
import io
import json
from collections.abc import AsyncIterator

import pytest
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox.graphql import transport

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
