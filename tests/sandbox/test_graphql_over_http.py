"""GraphQL over HTTP: GET, media types, status codes, and each audit of the reference implementation."""

import json
from typing import Any

import pytest
from support import cases
from support.sandbox_client import JsonResponse, SandboxClient

GRAPHQL = "application/graphql-response+json"
JSON = "application/json"
ASKED = '{ supSellers(ids: ["459"]) { name } }'
DIGI_KEY = {"supSellers": [{"name": "Digi-Key"}]}
BOTH = 'query A { supSellers(ids: ["459"]) { name } } query B { supSellers(ids: ["2401"]) { name } }'
MIXED = "query Read { __typename } mutation Write { __typename } subscription Watch { __typename }"
RECOMMENDED = f"{GRAPHQL}; charset=utf-8, {JSON}; charset=utf-8"


@cases.parametrize("id_, says, audit")
async def test_audits_of_the_reference_pass(caller: SandboxClient, id_: str, says: str, audit: dict[str, Any]) -> None:
    """An audit is a request (accept, content_type, body; `url`: the parameters are in the URL, by GET), and what holds
    for its response: bounds of the status, a part of its content type, and whether it has errors and data."""
    url, body = audit.get("url"), audit.get("body")
    content_type = None if url else audit.get("content_type", JSON)
    headers = {"Accept": audit.get("accept"), "Content-Type": content_type, "token": caller.token}
    async with caller.session.request(
        "GET" if url else "POST",
        caller.sandbox.graphql_url,
        params=url,
        data=body.encode() if isinstance(body, str) else body and json.dumps(body).encode(),
        headers={name: value for name, value in headers.items() if value is not None},
        skip_auto_headers=("Accept", "Content-Type"),
    ) as response:
        least, most = audit.get("status", (200, 200))
        assert least <= response.status <= most
        answer = json.loads((await response.read()).decode("utf-8"))
        assert audit.get("kind", "") in response.headers["Content-Type"]
    assert audit.get("errors") in (None, "errors" in answer)
    assert audit.get("data") in (None, "data" in answer)


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
async def test_unsupported_content_type_is_named(caller: SandboxClient, content_type: str, named: str) -> None:
    response = await send(caller, None, b'{"query": "{ __typename }"}', **{"Content-Type": content_type})
    assert response.status == 415
    assert named in response.messages[0]


async def get(caller: SandboxClient, params: Any, **headers: str) -> JsonResponse:
    request_headers = {"Authorization": f"Bearer {caller.token}", **headers}
    async with caller.session.get(caller.sandbox.graphql_url, params=params, headers=request_headers) as response:
        raw = await response.read()
        return JsonResponse(response.status, json.loads(raw), response.headers, raw)


@pytest.mark.parametrize("name, status", [("A", 200), ("C", 400), ("", 400)])
async def test_operation_name_selects_and_an_empty_one_is_none(caller: SandboxClient, name: str, status: int) -> None:
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
