"""Design data by GraphQL: access, content, links to parts of the catalog, and the services behind it (contract
graphql.md §5)."""

import json

import pytest
import yarl
from sandbox.design_client import APPLICATION, AURORA, NORTHWIND, DesignClient, StartDesignSandbox
from support.sandbox_client import JsonResponse, StartSandbox

from nexar_sandbox import applications, user_directory
from nexar_sandbox.catalog import store
from nexar_sandbox.design import rest


async def test_there_are_two_workspaces_with_projects_and_users(designer: DesignClient) -> None:
    data = await designer.get(
        "query($a: String!, $n: String!) { infos: desWorkspaceInfos { name url isDefault }"
        " a: desWorkspaceByUrl(workspaceUrl: $a) { projects { name } team { users { userName } groups { name } } }"
        " n: desWorkspaceByUrl(workspaceUrl: $n) { projects { name } tasks { name } } }",
        a=AURORA,
        n=NORTHWIND,
    )
    assert [(one["url"], one["isDefault"]) for one in data["infos"]] == [(AURORA, True), (NORTHWIND, False)]
    assert data["a"]["projects"][0]["name"] == "Weather Station Mk2"
    assert len(data["n"]["projects"]) == 4
    assert len(data["n"]["tasks"]) == 16
    assert {"grace.okafor", "ada", "grace"} <= {one["userName"] for one in data["a"]["team"]["users"]}


async def test_the_current_user_is_the_user_who_signed_in(designer: DesignClient) -> None:
    for name in ("ada", "grace"):
        await designer.sign_in(name)
        shown = (await designer.get("{ desUserByAuth { userName email userId } }"))["desUserByAuth"]
        assert shown["email"] == f"{name}@sandbox.example"
    assert shown["userId"] == user_directory.DEFAULT_USERS[1].id


async def test_boms_have_parts_of_the_catalog(designer: DesignClient, catalog: store.Catalog) -> None:
    selection = """design { variants { bom { items(first: 1000) { nodes { quantity bomItemInstances {
        designator isFitted }
        component { manufacturerParts { octopartId companyName partNumber supplierParts { partNumber } } } } } } } }"""
    project = await designer.project(selection)
    base, lite = (one["bom"]["items"]["nodes"] for one in project["design"]["variants"])
    assert len(base) > 40
    for line in base:
        first = line["component"]["manufacturerParts"][0]
        part = catalog.part(first["octopartId"])
        assert part is not None
        assert (part.manufacturer.name, part.mpn) == (first["companyName"], first["partNumber"])
        assert line["quantity"] == len(line["bomItemInstances"])
        assert all(one["isFitted"] for one in line["bomItemInstances"])
    designators = [one["designator"] for line in base for one in line["bomItemInstances"]]
    assert len(designators) == len(set(designators))
    assert not all(one["isFitted"] for line in lite for one in line["bomItemInstances"])
    some = next(line["component"]["manufacturerParts"][0]["octopartId"] for line in base)
    supply = await designer.get("query($id: String!) { supParts(ids: [$id]) { id mpn } }", id=some)
    assert supply["supParts"][0]["id"] == some


async def test_design_data_is_not_billed(designer: DesignClient) -> None:
    await designer.project("design { variants { bom { items { nodes { component { name } } } } } }")
    assert designer.sandbox.part_usage.used(APPLICATION.application_id) == 0


@pytest.mark.parametrize("scope", ["supply.domain", "design.domain", "openid user.access supply.domain"])
async def test_a_token_with_fewer_scopes_is_rejected(designer: DesignClient, scope: str) -> None:
    await designer.sign_in(scope=scope)
    for query in ("{ desWorkspaceInfos { name } }", "{ a: desUserByAuth { userName } supManufacturers { id } }"):
        response = await designer.ask(query)
        assert response.body["data"] is None
        refusal = response.body["errors"][0]["extensions"]
        assert (refusal["code"], refusal["schemaName"]) == ("AUTH_NOT_AUTHORIZED", "Design")
    assert designer.rest_calls() == []


async def test_a_missing_record_is_null_or_an_error(designer: DesignClient) -> None:
    nulls = ("desProjectById", "desComponentById", "desFolderById", "desReleaseById", "desBomById", "desDesignItemById")
    for id_ in ("none", "", "a,b", "x" * 5000, "a&id=b"):
        data = await designer.get(
            "query($i: ID!) {" + " ".join(f"{one}(id: $i) {{ id }}" for one in nulls) + "}", i=id_
        )
        assert set(data.values()) == {None}
    data = await designer.get('{ desComponentsByIds(ids: ["none"]) { ... on DesErrorPayload { message } } }')
    assert data["desComponentsByIds"] == [{"message": "there is no component none"}]
    response = await designer.ask('{ desLibrary(workspaceUrl: "https://nowhere.example") { name } }')
    assert response.messages == ["there is no workspace https://nowhere.example"]


async def test_a_workspace_is_visible_to_its_members_only(designer: DesignClient) -> None:
    query = '{ desTeam(workspaceUrl: "%s") { users { userId email } } }'
    people_of = (await designer.get(query % AURORA))["desTeam"]["users"]
    other = next(one for one in people_of if one["email"].endswith("aurora-instruments.example"))
    project = await designer.project("id", NORTHWIND, "Sensor Hub")
    grace = user_directory.SandboxUser(
        other["userId"],
        "g@sandbox.example",
        "Grace O",
        user_directory.DEFAULT_USERS[0].password,
        user_directory.DEFAULT_ORGANIZATION.id,
    )
    designer.sandbox.users.add(grace)
    form = {
        "username": "g@sandbox.example",
        "password": user_directory.DEFAULT_PASSWORD,
        "scope": "user.access design.domain",
    }
    await designer.log_in(grant_type="password", **form)
    infos = (await designer.get("{ desWorkspaceInfos { url } }"))["desWorkspaceInfos"]
    assert infos == [{"url": AURORA}]
    assert (await designer.get("query($i: ID!) { desProjectById(id: $i) { id } }", i=project["id"]))[
        "desProjectById"
    ] is None
    assert (await designer.ask(query % NORTHWIND)).messages == [f"there is no workspace {NORTHWIND}"]


async def test_design_data_is_the_same_at_every_start(start_design: StartDesignSandbox) -> None:
    made = []
    for _ in range(2):
        async with start_design() as designer:
            made.append(
                await designer.project("id design { variants { bom { items { nodes { component { comment } } } } } }")
            )
    assert made[0] == made[1]


async def test_design_services_reject_public_tokens(designer: DesignClient) -> None:
    assert set(designer.sandbox.design_urls) == {"workspaces", "library", "projects", "collaboration"}
    own = {yarl.URL(url).port for url in designer.sandbox.design_urls.values()}
    assert len(own | {designer.sandbox.port}) == 5
    tries: tuple[dict[str, str], ...] = (
        {},
        {"Authorization": f"Bearer {designer.token}"},
        {"token": designer.token},
        {rest.CREDENTIAL: designer.token},
        {rest.CREDENTIAL: ""},
    )
    paths = {"workspaces": "/users", "library": "/components", "projects": "/projects", "collaboration": "/events"}
    for name, url in designer.sandbox.design_urls.items():
        for headers in tries:
            for method, path in (("GET", paths[name]), ("POST", paths[name]), ("GET", "/nothing")):
                async with designer.session.request(method, url + path, headers=headers) as response:
                    assert response.status == 401
                    assert json.loads(await response.read()) == {
                        "error": "this service accepts requests of the query service only"
                    }


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
