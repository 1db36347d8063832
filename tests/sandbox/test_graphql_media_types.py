"""Media types of responses, and their status codes (GraphQL over HTTP, "Accept" and "Status Codes")."""

from typing import Any

import pytest
from support import cases
from support.sandbox_client import JsonResponse, SandboxClient

GRAPHQL = "application/graphql-response+json"
JSON = "application/json"
ASKED = '{ supSellers(ids: ["459"]) { name } }'
RECOMMENDED = f"{GRAPHQL}; charset=utf-8, {JSON}; charset=utf-8"


async def send(caller: SandboxClient, accept: str | None, content: Any, **headers: str) -> JsonResponse:
    request_headers = {"token": caller.token, **headers} | ({} if accept is None else {"Accept": accept})
    body = {"data": content} if isinstance(content, str | bytes) else {"json": content}
    return await caller.post(caller.sandbox.graphql_url, headers=request_headers, skip_auto_headers=["Accept"], **body)


@pytest.mark.parametrize(
    "accept, kind",
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (JSON, JSON),
        (GRAPHQL, GRAPHQL),
        (RECOMMENDED, GRAPHQL),
        (f"{JSON}, {GRAPHQL}", JSON),
        (f"{JSON};q=0.5, {GRAPHQL};q=0.4", JSON),
        (f"{JSON};q=0.5, {GRAPHQL};q=0.6", GRAPHQL),
        (f"{JSON};q=0, */*", GRAPHQL),
        (f"*/*, {GRAPHQL}", GRAPHQL),
        ("application/json, text/plain, */*", JSON),
        ("text/html, application/xhtml+xml, */*;q=0.8", JSON),
        ('Application/GraphQL-Response+JSON; charset="UTF-8"', GRAPHQL),
    ],
)
async def test_the_preferred_media_type_is_chosen(caller: SandboxClient, accept: str | None, kind: str) -> None:
    response = await send(caller, accept, {"query": ASKED})
    assert (response.status, response.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
    assert response.headers["Vary"] == "Accept"


@pytest.mark.parametrize(
    "accept", ["text/html", "image/*", f"{JSON};q=0", f"{JSON}; charset=utf-16", "nonsense", f"{GRAPHQL}; v=2"]
)
async def test_unacceptable_media_types_get_406_and_nothing_is_executed(caller: SandboxClient, accept: str) -> None:
    search = '{ supSearch(q: "", limit: 3) { results { part { id } } } }'
    response = await send(caller, accept, {"query": search})
    assert (response.status, response.headers["Content-Type"]) == (406, "application/json; charset=utf-8")
    assert accept in response.messages[0]
    assert caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id) == 0


@cases.parametrize(
    "content, anything, json, graphql",
    ([{"query": ASKED}], 400, 400, 400),
    ({"query": ASKED, "variables": "{}"}, 400, 400, 400),
)
async def test_a_well_formed_request_gets_200_if_json_is_named(
    caller: SandboxClient, content: Any, anything: int, json: int, graphql: int
) -> None:
    replies = [await send(caller, accept, content) for accept in ("*/*", JSON, GRAPHQL)]
    assert [response.status for response in replies] == [anything, json, graphql]
    assert all(response.messages and "data" not in response.body for response in replies)


@cases.parametrize("content_type, named")
async def test_an_unsupported_content_type_gets_415_with_its_name(
    caller: SandboxClient, content_type: str, named: str
) -> None:
    response = await send(caller, None, b'{"query": "{ __typename }"}', **{"Content-Type": content_type})
    assert response.status == 415
    assert named in response.messages[0]
