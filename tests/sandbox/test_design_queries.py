"""Design data by GraphQL: access, content, and links to parts of the catalog (contract graphql.md §5)."""

import pytest
from sandbox.design_client import APPLICATION, AURORA, NORTHWIND, DesignClient, StartDesignSandbox

from nexar_sandbox import user_directory
from nexar_sandbox.catalog import store


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
