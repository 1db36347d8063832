"""Pages of design data: cursors forwards and backwards, and conditions (contract graphql.md §5.3)."""

from collections.abc import Mapping
from typing import Any

import pytest
from sandbox.design_client import AURORA, DesignClient
from support import cases

from nexar_sandbox.graphql import errors, pages

ITEMS = list("abcdefgh")


def page(items: list[str] = ITEMS, **asked: Any) -> dict[str, Any]:
    return pages.page(items, asked)


def cursor(item: str) -> str:
    return str(next(edge["cursor"] for edge in page()["edges"] if edge["node"] == item))


@cases.parametrize("asked, nodes, following, preceding")
def test_page_has_items_of_its_bounds(asked: Mapping[str, Any], nodes: str, following: bool, preceding: bool) -> None:
    placed: dict[str, Any] = {name: cursor(value) if isinstance(value, str) else value for name, value in asked.items()}
    found = pages.page(ITEMS, placed)
    assert "".join(found["nodes"]) == nodes
    assert (found["pageInfo"]["hasNextPage"], found["pageInfo"]["hasPreviousPage"]) == (following, preceding)
    assert found["totalCount"] == 8
    ends = (found["pageInfo"]["startCursor"], found["pageInfo"]["endCursor"])
    assert ends == ((cursor(nodes[0]), cursor(nodes[-1])) if nodes else (None, None))


def test_a_page_has_ten_items_by_default() -> None:
    found = pages.page(list(range(30)), {})
    assert found["nodes"] == list(range(10))


@pytest.mark.parametrize("asked", [{"after": "%%"}, {"before": "bm9uZQ"}, {"first": -1}, {"last": -1}, {"first": 1001}])
def test_an_invalid_cursor_or_size_is_rejected(asked: Mapping[str, Any]) -> None:
    with pytest.raises(errors.DesignError):
        page(**asked)


@cases.parametrize("asked, names")
def test_filters_select_records(asked: Mapping[str, Any] | None, names: str) -> None:
    days = ("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z")
    texts = (("Ada", None), ("Bob", "x"), ("Cy", "xy"))
    rows = [
        {"name": name, "description": text, "createdAt": day} for (name, text), day in zip(texts, days, strict=True)
    ]
    assert " ".join(one["name"] for one in pages.matching(rows, asked)) == names


async def test_a_client_reads_a_list_page_by_page(designer: DesignClient) -> None:
    query = """query($url: String!, $after: String) { desLibrary(workspaceUrl: $url) {
      components(first: 50, after: $after) {
        totalCount pageInfo { hasNextPage endCursor } edges { cursor node { id } } nodes { id } } } }"""
    seen: list[str] = []
    after, more = None, True
    while more:
        found = (await designer.get(query, url=AURORA, after=after))["desLibrary"]["components"]
        assert [edge["node"] for edge in found["edges"]] == found["nodes"]
        seen += [one["id"] for one in found["nodes"]]
        more, after = found["pageInfo"]["hasNextPage"], found["pageInfo"]["endCursor"]
    assert len(seen) == len(set(seen)) == found["totalCount"] > 100


async def test_filters_work_through_the_query_service(designer: DesignClient) -> None:
    query = """query($url: String!) {
      some: desProjects(workspaceUrl: $url, where: {name: {contains: "Logger"}}) { totalCount nodes { name } }
      none: desProjects(workspaceUrl: $url, where: {createdAt: {gt: "2040-01-01T00:00:00Z"}}) { totalCount }
    }"""
    data = await designer.get(query, url=AURORA)
    assert data["some"] == {"totalCount": 1, "nodes": [{"name": "Data Logger USB"}]}
    assert data["none"] == {"totalCount": 0}


async def test_workspaces_variants_and_sheets_can_be_filtered(designer: DesignClient) -> None:
    query = """query($url: String!) {
      one: desWorkspaces(where: {url: {eq: $url}}) { name projects { name } }
      default: desWorkspaces(where: {isDefault: {eq: true}}) { isDefault }
      others: desWorkspaces(where: {isDefault: {neq: true}}) { isDefault }
      all: desWorkspaces { url }
    }"""
    data = await designer.get(query, url=AURORA)
    assert len(data["one"]) == 1
    assert data["one"][0]["projects"]
    assert {one["isDefault"] for one in data["default"]} == {True}
    assert {one["isDefault"] for one in data["others"]} == {False}
    assert len(data["default"]) + len(data["others"]) == len(data["all"]) == 2
    selection = """design { variants { name } workInProgress {
      variants(where: {name: {startsWith: "Ba"}}) { name schematics(where: {documentName: {contains: "Power"}}) {
        documentName } } }
      releases(first: 1) { nodes { variants(where: {name: {eq: "none"}}) { name } } } }"""
    design = (await designer.project(selection))["design"]
    assert [one["name"] for one in design["workInProgress"]["variants"]] == ["Base"]
    assert design["workInProgress"]["variants"][0]["schematics"] == [{"documentName": "Power.SchDoc"}]
    assert "Base" in {one["name"] for one in design["variants"]}
    assert design["releases"]["nodes"] == [{"variants": []}]
