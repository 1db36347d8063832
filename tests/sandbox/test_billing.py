"""Parts that are billed, and that the admin figures are their sum (contract graphql.md §6 and §3.2)."""

import dataclasses

from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications

FIGURES = "{ admOrganizations { applications { id supplyCounts { partCounter partLimit } } } }"
READY = applications.DEFAULT_APPLICATION
OTHER = dataclasses.replace(READY, name="other", application_id="other-id", client_id="other", client_secret="other")


async def used(caller: SandboxClient) -> dict[str, int]:
    (organization,) = (await caller.ask(FIGURES)).data["admOrganizations"]
    return {one["id"]: one["supplyCounts"]["partCounter"] for one in organization["applications"]}


async def own(caller: SandboxClient) -> int:
    return (await used(caller))[caller.sandbox.default_application.application_id]


@cases.parametrize("query, parts")
async def test_part_is_billed_once_for_each_path_from_a_root(caller: SandboxClient, query: str, parts: int) -> None:
    response = await caller.ask(query)
    assert "errors" not in response.body
    assert await own(caller) == parts


@cases.parametrize("field")
async def test_a_rejected_request_bills_no_part_of_any_field(caller: SandboxClient, field: str) -> None:
    response = await caller.ask(f'{{ good: supParts(ids: ["54445"]) {{ id }} bad: {field} }}')
    assert response.messages
    assert not response.body.get("data")
    assert await own(caller) == 0


@cases.parametrize("query, left, parts")
async def test_a_part_removed_by_an_error_is_billed_only_where_the_settings_say_so(
    start: StartSandbox, query: str, left: object, parts: int
) -> None:
    plan = (dataclasses.replace(READY, features=frozenset()),)
    for is_billed in (False, True):
        async with start(applications=plan, bill_refused=is_billed) as caller:
            response = await caller.ask(query)
            assert (response.status, response.body["data"]) == (200, left)
            assert response.messages
            assert await own(caller) == (parts if is_billed else 0)


async def test_only_the_operation_that_is_executed_is_billed(caller: SandboxClient) -> None:
    document = 'query A { supParts(ids: ["54445"]) { id } } query B { supSearch(q: "") { results { part { id } } } }'
    headers = {"Authorization": f"Bearer {caller.token}"}
    body = {"query": document, "operationName": "A"}
    assert (await caller.post(caller.sandbox.graphql_url, json=body, headers=headers)).status == 200
    assert await own(caller) == 1


async def test_free_queries_succeed_at_the_limit(start: StartSandbox) -> None:
    async with start(applications=(dataclasses.replace(READY, part_limit=0),)) as caller:
        response = await caller.ask('{ supSellers(ids: ["459"]) { name } supSuggest(q: "LM") { text } }')
    assert response.data["supSellers"] == [{"name": "Digi-Key"}]


async def test_part_usage_of_all_applications_is_the_sum_of_the_journal(start: StartSandbox) -> None:
    async with start(applications=(READY, OTHER), token_windows=()) as caller:
        for client, requests in ((READY, 3), (OTHER, 2)):
            await caller.log_in(client_id=client.client_id, client_secret=client.client_secret)
            for limit in range(1, 1 + requests):
                await caller.ask(f'{{ supSearch(q: "resistor", limit: {limit}) {{ results {{ part {{ id }} }} }} }}')
        figures = await used(caller)
        entries = caller.sandbox.journal.last(100)
        assert figures == {READY.application_id: 6, "other-id": 3}
        for id_, parts in figures.items():
            assert sum(one.parts for one in entries if one.application == id_) == parts
        assert caller.sandbox.journal.totals.parts == 9
