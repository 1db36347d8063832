"""The schema: what the contract lists, in schema_facts.txt, described; and each query with every field of its type."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import graphql
import pytest
from sandbox.design_client import AURORA, DesignClient
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import applications, user_directory
from nexar_sandbox.graphql import schema

FACTS = Path(__file__).with_name("schema_facts.txt").read_text(encoding="utf-8").splitlines()[1:]
BUILT = schema.build()
ROOTS = [root for root in (BUILT.query_type, BUILT.mutation_type, BUILT.subscription_type) if root is not None]
QUERIES, MUTATIONS, SUBSCRIPTIONS = (list(root.fields) for root in ROOTS)
SUPPLY, ADMIN, DESIGN = ([name for name in QUERIES if name.startswith(start)] for start in ("sup", "adm", "des"))
ARGUMENTS = {
    "supOctopartIdFromCiivaId": 'workspaceUrl: "x", ciivaId: "x"',
    "supPartIdFromCiivaId": 'ciivaId: "x"',
    "supPartIdsFromCiivaIds": 'ciivaIds: ["x", "y"]',
    "supCiivaIdFromPartId": 'partId: "54445"',
    "supCiivaIdsFromPartIds": 'partIds: ["54445"]',
    "supPartExtrasByPartId": 'partId: "54445"',
    "supPartExtrasByPartIds": 'partIds: ["54445"]',
    "supParts": 'ids: ["54445", "none"]',
    "supPartOffers": 'country: "US", currency: "EUR", references: [{partId: "54445", offerId: "1"}]',
    "supSuggest": 'q: "sn"',
    "supSearch": 'q: "SN74S74N", filters: {manufacturer_id: ["370"]}',
    "supSearchMpn": 'q: "LM358"',
    "supSpellingCorrection": 'q: "capacitr"',
    "supMultiMatch": 'queries: [{mpn: "SN74S74N"}]',
    "supOctocart": 'items: [{sellerId: "459", items: []}]',
    "admApplicationById": f'id: "{applications.DEFAULT_APPLICATION.application_id}"',
    "specAggs": 'attributeNames: ["numberofpins"], attributeSelection: ALL',
    "sellers": "includeBrokers: true",
}


class Undescribed(graphql.Visitor):
    def leave(self, node: Any, *_: Any) -> Any:
        return dataclasses.replace(node, description=None) if getattr(node, "description", None) else None


def declarations() -> Iterator[str]:
    """The declarations of the schema, without their descriptions."""
    document = graphql.visit(graphql.parse(graphql.print_schema(BUILT)), Undescribed())
    for node in document.definitions:
        name, word = node.name.value, node.kind.partition("_")[0]
        if word in ("object", "input"):
            prefix = "query " if name == "Query" else f"{'type' if word == 'object' else word} {name}."
            yield from (prefix + re.sub(" @deprecated.*", " †", graphql.print_ast(field)) for field in node.fields)
        elif word == "directive":
            required = {each.name.value: "!" * each.type.kind.startswith("non_null") for each in node.arguments or ()}
            yield f"directive @{name}" + (f"({', '.join(map(''.join, required.items()))})" if required else "")
        else:
            among = [one.name.value for one in getattr(node, "values", None) or getattr(node, "types", None) or ()]
            yield f"{word} {name}" + (f": {' '.join(among)}" if among else "")


def test_the_schema_declares_exactly_what_the_contract_lists() -> None:
    assert sorted(declarations()) == sorted(FACTS)
    assert (len(SUPPLY), len(ADMIN), len(SUPPLY + ADMIN + DESIGN)) == (19, 2, len(QUERIES))
    assert all(name.startswith("des") for name in MUTATIONS)
    assert SUBSCRIPTIONS == ["desOnCommentUpdated"]


def test_every_type_and_operation_and_all_of_supply_is_described() -> None:
    bare = [kind.name for kind in BUILT.type_map.values() if not kind.description and kind.name != "Query"]
    kinds = [*ROOTS, *(kind for kind in BUILT.type_map.values() if kind.name.startswith(("Sup", "Adm")))]
    found = {place: text for kind in kinds for place, text in described(kind)}
    assert len(found) > 400
    assert bare + [place for place, text in found.items() if not text and not re.match(r"\w+\.des\w+\(", place)] == []


def described(kind: graphql.GraphQLNamedType) -> Iterator[tuple[str, str | None]]:
    """Every place in the type with its description."""
    for name, field in getattr(kind, "fields", {}).items():
        yield f"{kind.name}.{name}", field.description
        for argument, one in getattr(field, "args", {}).items():
            yield f"{kind.name}.{name}({argument})", one.description
    for name, value in getattr(kind, "values", {}).items():
        yield f"{kind.name}.{name}", value.description


async def test_introspection_has_descriptions_and_deprecation_reasons(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ __type(name: "Query") { fields(includeDeprecated: true) { name deprecationReason'
        " args { name description defaultValue } } } }"
    )
    queries = {one["name"]: one for one in response.data["__type"]["fields"]}
    assert queries["supOctopartIdFromCiivaId"]["deprecationReason"] == "Use supPartIdFromCiivaId."
    arguments = {one["name"]: one for one in queries["supSearch"]["args"]}
    assert "0 to 100; 10 when absent" in arguments["limit"]["description"]
    assert arguments["distributorApiTimeout"]["defaultValue"] == '"3s"'


def selection(kind: object, depth: int, arguments: dict[str, str]) -> str:
    """Every field of a type, objects down to a depth where the service's loops have turned once."""
    if graphql.is_union_type(kind):
        shown = [f"... on {one}{selection(one, depth, arguments)}" for one in kind.types]
    else:
        assert isinstance(kind, graphql.GraphQLObjectType)
        leaves = {name for name, one in kind.fields.items() if graphql.is_leaf_type(graphql.get_named_type(one.type))}
        shown = [written(kind, name, depth, arguments) for name in kind.fields if depth < 5 or name in leaves]
    return " { __typename " + " ".join(shown) + " }"


def written(parent: graphql.GraphQLObjectType, name: str, depth: int, arguments: dict[str, str] = ARGUMENTS) -> str:
    field = parent.fields[name]
    kind = graphql.get_named_type(field.type)
    given = arguments.get(name, "") if field.args else ""
    assert given or not any(map(graphql.is_required_argument, field.args.values())), name
    below = selection(kind, depth + 1, arguments) if graphql.is_composite_type(kind) else ""
    return f"{name}({given}){below}" if given else name + below


@pytest.mark.parametrize("name", SUPPLY + ADMIN)
async def test_every_query_returns_every_field_of_its_type(caller: SandboxClient, name: str) -> None:
    response = await caller.ask("{ " + written(ROOTS[0], name, 3) + " }")
    assert response.status == 200
    assert name in response.data


async def test_every_supply_query_needs_the_supply_scope(start: StartSandbox) -> None:
    async with start(applications=(applications.DEFAULT_DESIGN_APPLICATION,)) as caller:
        await caller.log_in(scope="design.domain")
        for name in SUPPLY:
            (error,) = (await caller.ask("{ " + written(ROOTS[0], name, 3) + " }")).body["errors"]
            found = error["path"], error["extensions"]["code"], error["extensions"]["schemaName"]
            assert found == ([name], "AUTH_NOT_AUTHORIZED", "Supply")


async def known(designer: DesignClient) -> dict[str, str]:
    """An id for every query that needs one."""
    selection = """id design { variants { bom { id items(first: 1) { nodes { component
        { id revision { id } folder { id } } } } } pcb { designItems(first: 1) { nodes { id } } } }
        releases(first: 1) { nodes { id } } }"""
    project = await designer.project(selection)
    variant = project["design"]["variants"][0]
    component = variant["bom"]["items"]["nodes"][0]["component"]
    (thread, *_) = (
        await designer.get("query($p: ID!) { desCommentThreads(projectId: $p) { commentThreadId } }", p=project["id"])
    )["desCommentThreads"]
    job = await designer.change(
        "desCreateManufacturePackage", "jobId", projectId=project["id"], name="x.zip", shareWith=[]
    )
    infos = (await designer.get("{ desWorkspaceInfos { workspaceId } }"))["desWorkspaceInfos"]
    at, of = f'workspaceUrl: "{AURORA}"', f'projectId: "{project["id"]}"'
    one = {
        "desWorkspaceById": infos[0]["workspaceId"],
        "desUserByGlobalId": user_directory.DEFAULT_USERS[0].id,
        "desProjectById": project["id"],
        "desDesignItemById": variant["pcb"]["designItems"]["nodes"][0]["id"],
        "desComponentById": component["id"],
        "desRevisionDetailsById": component["revision"]["id"],
        "desFolderById": component["folder"]["id"],
        "desReleaseById": project["design"]["releases"]["nodes"][0]["id"],
        "desBomById": variant["bom"]["id"],
        "desManufacturePackageById": job["jobId"],
        "desManufacturePackageCreationJob": job["jobId"],
    }
    return {name: f'id: "{id_}"' for name, id_ in one.items()} | {
        "desWorkspaceByUrl": at,
        "desTeam": at,
        "desUsers": f'{at}, ids: ["{user_directory.DEFAULT_USERS[0].id}", "nobody"]',
        "desProjects": at,
        "desLibrary": at,
        "desWorkspaceTasks": at,
        "desComponentsByIds": f'ids: ["{component["id"]}", "none"]',
        "desCommentThreads": of,
        "desCommentThread": f'{of}, threadId: "{thread["commentThreadId"]}"',
        "desProjectTasks": of,
        "desProjectExportJob": f'projectExportJobId: "{job["jobId"]}"',
    }


async def test_every_design_query_returns_every_field_of_its_type(designer: DesignClient) -> None:
    arguments = await known(designer)
    for name in DESIGN:
        assert (await designer.get("{ " + written(ROOTS[0], name, 2, arguments) + " }"))[name], name
