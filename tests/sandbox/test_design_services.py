"""The design services behind the query service: internal access only, batched requests, one set per sandbox."""

import json

import aiohttp
import pytest
import yarl
from sandbox.design_client import DesignClient, StartDesignSandbox

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


async def test_design_services_stop_with_the_sandbox(start_design: StartDesignSandbox) -> None:
    async with start_design() as designer:
        urls = dict(designer.sandbox.design_urls)
    async with aiohttp.ClientSession() as session:
        for url in urls.values():
            with pytest.raises(aiohttp.ClientConnectionError):
                await session.get(url)
