"""The journal, and /admin: one entry per request, totals, faults declared and removed over HTTP."""

import io
from typing import Any

import pytest
from support.sandbox_client import JsonResponse, SandboxClient

from nexar_sandbox import journal
from proxy.kit import clock


async def test_a_token_request_is_journalled_with_its_application(caller: SandboxClient) -> None:
    (entry,) = caller.sandbox.journal.entries
    assert (entry.service, entry.status, entry.whole) == ("token", 200, True)
    assert entry.application == caller.sandbox.default_application.application_id
    await caller.log_in(client_secret="wrong")
    refused = caller.sandbox.journal.entries[-1]
    assert (refused.application, refused.status) == (None, 400)


async def test_a_request_with_a_too_large_body_is_journalled_with_its_status(caller: SandboxClient) -> None:
    body, headers = io.BytesIO(b" " * (9 * 2**20)), {"Content-Type": "application/json"}
    async with caller.session.post(caller.sandbox.graphql_url, data=body, headers=headers) as response:
        assert response.status == 413
    assert caller.sandbox.journal.entries[-1].status == 413


def test_the_journal_drops_the_oldest_entries_but_not_the_totals() -> None:
    request_journal = journal.RequestJournal(clock.ManualClock())
    begun = journal.MAX_ENTRIES + 2
    for _ in range(begun):
        request_journal.finish(request_journal.begin("graphql"), is_complete=True)
    assert [entry.number for entry in request_journal.entries] == list(range(3, begun + 1))
    assert [entry.number for entry in request_journal.last(2)] == [begun - 1, begun]
    assert request_journal.last(0) == []
    assert request_journal.totals.requests == {"graphql": begun}


FREE = '{ supSellers(ids: ["459"]) { name } }'


async def send(caller: SandboxClient, method: str, path: str, **options: Any) -> JsonResponse:
    async with caller.session.request(method, caller.sandbox.url + path, **options) as response:
        return JsonResponse(response.status, await response.json(), response.headers, b"")


@pytest.mark.parametrize(
    "body, complaint",
    [
        (b"", "the body is not JSON: "),
        (b"\xff", "the body is not JSON: "),
        (b'{"kind": "429"}', "faults must be a list of texts, not "),
        (b'["429", "latency ms=0"]', "fault 'latency ms=0': ms must be milliseconds, 1 to 600000; it is '0'"),
    ],
)
async def test_invalid_fault_gets_400_and_changes_nothing(caller: SandboxClient, body: bytes, complaint: str) -> None:
    before = await send(caller, "PUT", "/admin/faults", json=["429 on=token"])
    response = await send(caller, "PUT", "/admin/faults", data=body)
    assert response.status == 400
    assert complaint in response.body["error"]
    assert (await send(caller, "GET", "/admin/faults")).body == before.body


async def test_the_journal_returns_the_last_entries_and_can_be_cleared(caller: SandboxClient) -> None:
    for _ in range(3):
        await caller.ask(FREE)
    response = await send(caller, "GET", "/admin/journal?last=2")
    assert response.body["totals"] == {
        "requests": {"token": 1, "graphql": 3},
        "parts": 0,
        "spoiled_parts": 0,
        "faults": {},
    }
    assert [entry["number"] for entry in response.body["entries"]] == [3, 4]
    assert response.body["entries"][1] == {
        "number": 4,
        "time": 1_700_000_000.0,
        "service": "graphql",
        "application": caller.sandbox.default_application.application_id,
        "operation": None,
        "fields": ["supSellers"],
        "parts": 0,
        "faults": [],
        "status": 200,
        "whole": True,
    }
    assert len((await send(caller, "GET", "/admin/journal")).body["entries"]) == 4
    cleared = await send(caller, "DELETE", "/admin/journal")
    assert cleared.body == {
        "totals": {"requests": {}, "parts": 0, "spoiled_parts": 0, "faults": {}},
        "entries": [],
    }
    assert (await send(caller, "GET", "/admin/journal")).body == cleared.body


async def test_admin_requests_have_no_faults_and_are_not_journalled(caller: SandboxClient) -> None:
    await send(caller, "PUT", "/admin/faults", json=["reset on=both"])
    assert (await send(caller, "DELETE", "/admin/faults")).status == 200
    assert caller.sandbox.journal.totals.requests == {"token": 1}
