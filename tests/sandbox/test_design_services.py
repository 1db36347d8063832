"""The design services behind the query service: internal access only, batched requests, one set per sandbox."""

import json

import aiohttp
import pytest
import yarl
from sandbox.design_client import AURORA, DesignClient, StartDesignSandbox

from nexar_sandbox.design import rest

BOM = """design { variants { bom { items(first: 200) { nodes {
  component { name folder { name createdBy { userName } } } } } } } }"""


async def test_components_of_many_items_are_loaded_in_one_request(designer: DesignClient) -> None:
    await designer.get("{ desUserByAuth { userName } }")
    designer.sandbox.journal.clear()
    project = await designer.project(BOM)
    lines = [line for one in project["design"]["variants"] for line in one["bom"]["items"]["nodes"]]
    assert len(lines) > 80
    calls = designer.rest_calls()
    assert calls.count("library GET /components") == 1
    assert calls.count("library GET /folders") == 1
    assert calls.count("projects GET /boms") == 1
    assert len(calls) <= 8


async def test_more_than_two_hundred_ids_are_loaded_in_several_requests(
    designer: DesignClient,
) -> None:
    selection = "design { variants { pcb { designItems(first: 1000) { nodes { component { name } } } } } }"
    query = f"query($u: String!) {{ desProjects(workspaceUrl: $u) {{ nodes {{ {selection} }} }} }}"
    designer.sandbox.journal.clear()
    data = await designer.get(query, u="https://northwind-robotics.365.example")
    boards = [one for project in data["desProjects"]["nodes"] for one in project["design"]["variants"]]
    components = {item["component"]["name"] for one in boards for item in one["pcb"]["designItems"]["nodes"]}
    assert designer.rest_calls().count("library GET /components") == -(-len(components) // 200)
    assert designer.rest_calls().count("projects GET /items") == 1


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


async def test_design_requests_are_journalled_without_ids(designer: DesignClient) -> None:
    query = '{ desProjectById(id: "a-secret-id") { name } }'
    await designer.get(query)
    entries = [one for one in designer.sandbox.journal.last(10) if one.service == rest.JOURNALLED]
    assert ("projects GET /projects", 200, True) in [(one.operation, one.status, one.whole) for one in entries]
    assert "a-secret-id" not in repr(entries)
    assert designer.sandbox.journal.totals.requests["design"] == len(entries)


async def test_two_sandboxes_do_not_see_each_other(start_design: StartDesignSandbox) -> None:
    query = "query($u: String!) { desWorkspaceTasks(workspaceUrl: $u, last: 1) { totalCount nodes { name } } }"
    asked = {"workspaceUrl": AURORA, "task": {"name": "Only here", "description": ""}}
    async with start_design() as one, start_design() as other:
        before = await other.get(query, u=AURORA)
        await one.change("desCreateWorkspaceTask", "task { id }", **asked)
        assert (await one.get(query, u=AURORA))["desWorkspaceTasks"]["nodes"] == [{"name": "Only here"}]
        assert await other.get(query, u=AURORA) == before
        assert not set(one.sandbox.design_urls.values()) & set(other.sandbox.design_urls.values())


async def test_design_services_stop_with_the_sandbox(start_design: StartDesignSandbox) -> None:
    async with start_design() as designer:
        urls = dict(designer.sandbox.design_urls)
    async with aiohttp.ClientSession() as session:
        for url in urls.values():
            with pytest.raises(aiohttp.ClientConnectionError):
                await session.get(url)
