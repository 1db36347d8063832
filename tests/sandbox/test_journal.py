"""The journal: one entry per request, its fields, its size, and the totals."""

import io

from support.sandbox_client import SandboxClient

from nexar_sandbox import faults, journal
from proxy.kit import clock

NAMED = "query Parts($q: String!) { supSearch(q: $q, limit: 3) { results { part { mpn } } } }"


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


async def test_journal_totals_count_requests_parts_and_faults(caller: SandboxClient) -> None:
    await caller.ask(NAMED, {"q": ""})
    caller.sandbox.faults.replace(faults.parse_faults("malformed body=half"))
    async with caller.session.post(
        caller.sandbox.graphql_url, json={"query": NAMED, "variables": {"q": ""}}, headers={"token": caller.token}
    ) as response:
        await response.read()
    totals = caller.sandbox.journal.totals
    assert totals.requests == {"graphql": 2, "token": 1}
    assert (totals.parts, totals.spoiled_parts, totals.faults) == (6, 3, {"malformed": 1})


def test_the_journal_drops_the_oldest_entries_but_not_the_totals() -> None:
    request_journal = journal.RequestJournal(clock.ManualClock())
    begun = journal.MAX_ENTRIES + 2
    for _ in range(begun):
        request_journal.finish(request_journal.begin("graphql"), is_complete=True)
    assert [entry.number for entry in request_journal.entries] == list(range(3, begun + 1))
    assert [entry.number for entry in request_journal.last(2)] == [begun - 1, begun]
    assert request_journal.last(0) == []
    assert request_journal.totals.requests == {"graphql": begun}
