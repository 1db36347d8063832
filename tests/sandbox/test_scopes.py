"""Scopes of a token limit operations: supply.domain the sup*, design.domain with user.access the des* (contract
graphql.md §4.1 and §5). The error of a missing scope is Hot Chocolate's, because the contract has none."""

from support.sandbox_client import JsonResponse, StartSandbox

from nexar_sandbox import applications

MESSAGE = "The current user is not authorized to access this resource."
DESIGN_ONLY = applications.SandboxApplication(
    "design only", "8c0f6d3e-51f4-4a8e-9f0b-2f7d5f1d9a78", "client-d", "secret-d", domains=("design",)
)
SEARCH = '{ found: supSearch(q: "", limit: 7) { hits results { part { mpn } } } }'


def refused(response: JsonResponse) -> list[tuple[str, str]]:
    """The operations that were refused for the token's scopes, and by which schema."""
    assert response.status == 200
    assert response.body["data"] is None
    assert set(response.messages) == {MESSAGE}
    assert {error["extensions"]["code"] for error in response.body["errors"]} == {"AUTH_NOT_AUTHORIZED"}
    return [(error["path"][0], error["extensions"]["schemaName"]) for error in response.body["errors"]]


async def test_a_token_without_the_supply_scope_gets_no_parts_and_is_billed_none(start: StartSandbox) -> None:
    async with start(applications=(DESIGN_ONLY,)) as caller:
        response = await caller.ask(SEARCH)
        used = caller.sandbox.part_usage.used(DESIGN_ONLY.application_id)
    assert refused(response) == [("found", "Supply")]
    assert used == 0
    remote = {"message": MESSAGE, "path": ["found"], "extensions": {"code": "AUTH_NOT_AUTHORIZED"}}
    assert response.body["errors"] == [
        {
            "message": MESSAGE,
            "locations": [{"line": 1, "column": 3}],
            "path": ["found"],
            "extensions": {"code": "AUTH_NOT_AUTHORIZED", "remote": remote, "schemaName": "Supply"},
        }
    ]


async def test_each_rejected_operation_has_its_own_error(start: StartSandbox) -> None:
    async with start(applications=(DESIGN_ONLY,)) as caller:
        both = "{ supAttributes { id } desWorkspaceInfos { name } admOrganizations { name } }"
        response = await caller.ask(both)
        organization = await caller.ask("{ admOrganizations { name } }")
    assert refused(response) == [("supAttributes", "Supply"), ("desWorkspaceInfos", "Design")]
    assert organization.data["admOrganizations"]


async def test_without_authentication_a_request_without_a_token_has_every_scope(start: StartSandbox) -> None:
    async with start(applications=(DESIGN_ONLY, applications.DEFAULT_APPLICATION), no_auth=True) as caller:
        response = await caller.ask(SEARCH, headers={})
        design = await caller.ask("{ desUserByAuth { userName } }", headers={})
        used = [
            caller.sandbox.part_usage.used(one.application_id)
            for one in (DESIGN_ONLY, applications.DEFAULT_APPLICATION)
        ]
        own = await caller.ask(SEARCH)
    assert len(response.data["found"]["results"]) == 7
    assert used == [0, 7]
    assert design.data["desUserByAuth"]["userName"] == "ada"
    assert refused(own) == [("found", "Supply")]
