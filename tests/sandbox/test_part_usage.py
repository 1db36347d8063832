"""Part usage: billing, rejected requests, monthly reset (contract graphql.md §6 and §3.2)."""

from support import cases
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications, part_usage
from proxy.kit import clock

COUNTS = "query($id: String!) { admApplicationById(id: $id) { supplyCounts { partCounter partLimit } } }"
SEARCH = '{ supSearch(q: "", limit: 7) { hits results { part { mpn } } } }'


def small(limit: int) -> tuple[applications.SandboxApplication, ...]:
    return (applications.SandboxApplication("small", "app-small", "small-client", "small-secret", part_limit=limit),)


async def used(caller: SandboxClient) -> int:
    response = await caller.ask(COUNTS, {"id": caller.sandbox.default_application.application_id})
    return int(response.data["admApplicationById"]["supplyCounts"]["partCounter"])


@cases.parametrize(
    "query, parts",
    (SEARCH, 7),
)
async def test_only_part_objects_of_root_queries_are_billed(caller: SandboxClient, query: str, parts: int) -> None:
    assert (await caller.ask(query)).status == 200
    assert await used(caller) == parts


async def test_free_queries_succeed_at_the_limit(start: StartSandbox) -> None:
    async with start(applications=small(0)) as caller:
        response = await caller.ask('{ supSellers(ids: ["459"]) { name } supSuggest(q: "LM") { text } }')
    assert response.data["supSellers"] == [{"name": "Digi-Key"}]


@cases.parametrize("query, left, parts")
async def test_a_part_removed_by_an_error_is_billed_only_where_the_settings_say_so(
    start: StartSandbox, query: str, left: object, parts: int
) -> None:
    plan = (applications.SandboxApplication("bare", "app-bare", "bare-client", "bare-secret", features=frozenset()),)
    for is_billed in (False, True):
        async with start(applications=plan, bill_refused=is_billed) as caller:
            response = await caller.ask(query)
            assert (response.status, response.body["data"]) == (200, left)
            assert response.messages
            assert await used(caller) == (parts if is_billed else 0)


def test_usage_is_counted_per_application() -> None:
    usage = part_usage.PartUsage(clock.ManualClock())
    usage.record("one", 3)
    usage.record("one", 4)
    assert (usage.used("one"), usage.used("other")) == (7, 0)


async def test_an_application_that_does_not_exist_is_null(caller: SandboxClient) -> None:
    assert (await caller.ask(COUNTS, {"id": "nobody"})).data == {"admApplicationById": None}
