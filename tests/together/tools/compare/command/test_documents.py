"""Tests of comparing GraphQL and v4 requests: what the upstream itself answers, and what v3bridge does."""

import json
from pathlib import Path
from typing import Any

import pytest

CONFIG = """
upstream: sandbox
store: "memory:"
applications: {demo: {apikeys: ["EXAMPLE_KEY"], features: all}}
"""
MATCH = "query ($q: [SupPartMatchQuery!]!) { all: supMultiMatch(queries: $q) { hits parts { mpn __typename id } } }"
V4 = '{ multi_match(queries: [{mpn_or_sku: "SN74S74N"}]) { __typename hits parts { mpn short_description } } }'
WRAPPER = '/api/v4/rest/parts/match?token=EXAMPLE_KEY&queries=[{"mpn":"SN74S74N"}]'
LINES = [
    {"query": MATCH, "variables": {"q": [{"mpn": "SN74S74N"}, {"mpn": "1N4007", "limit": 1}]}},
    {"query": '{ supSearch(q: "SN74", limit: 2) { cadAgg { count } results { part { similarParts { mpn } } } } }'},
    {"query": "{ supSearch { hit } }"},  # refused by both
    {"url": "https://old.example/api/v4/endpoint?token=EXAMPLE_KEY", "query": V4},
    {"url": '/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{"mpn":"SN74S74N"}]'},
]  # fmt: skip
PARTS = {"/graphql": 2 * (4 + 2), "/api/v4/endpoint": 2 * 3, "/parts/match": 3}  # at most, documents at both sides


@pytest.fixture
def compare(run_command: Any, tmp_path: Path) -> Any:
    """Runs `compare` with a baseline and lines of requests; returns the command and its result."""
    (tmp_path / "own.yaml").write_text(CONFIG)

    async def of(*more: str, lines: Any = LINES, baseline: str = "sandbox") -> Any:
        (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, lines)))
        sides = ("--baseline", baseline, "--config", "own.yaml", "--requests", "requests.jsonl")
        found = await run_command("compare", *sides, "--json", "r.json", *more)
        return found, json.loads((tmp_path / "r.json").read_text())

    return of


async def test_documents_are_compared_with_the_upstream_itself(compare: Any) -> None:
    found, result = await compare()
    assert found.code == 0, found
    requests = {row["endpoint"]: (row["requests"], row["equivalent"]) for row in result["rows"]}
    assert requests == {"/graphql": (3, 3), "/api/v4/endpoint": (1, 1), "/parts/match": (1, 1)}
    cells = [[cell.strip() for cell in line.split("│")] for line in found.err.splitlines() if "│" in line]
    assert {row[1]: int(row[4]) for row in cells} == PARTS
    assert result["cost"]["spent"] <= sum(PARTS.values())


async def test_recorded_documents_are_compared_again_for_free(compare: Any, run_command: Any, tmp_path: Path) -> None:
    found, _ = await compare("--record", "rec.zst", lines=LINES[:4])
    assert found.code == 0, found
    again = await run_command("compare", "--replay", "rec.zst", "--config", "own.yaml", "--json", "again.json")
    assert again.code == 0, again
    result = json.loads((tmp_path / "again.json").read_text())
    assert (sum(row["equivalent"] for row in result["rows"]), result["cost"]["spent"]) == (4, 0)


async def test_differences_of_data_order_and_errors_are_found(compare: Any, tmp_path: Path) -> None:
    """Against responses in a file: another value, another order of keys, and another code."""
    selections = ("hits", "hits __typename", "x")
    queries = [f'{{ supSearchMpn(q: "nosuchpart") {{ {selection} }} }}' for selection in selections]
    answers = [
        {"data": {"supSearchMpn": {"hits": -1}}},
        {"data": {"supSearchMpn": {"__typename": "SupPartResultSet", "hits": 0}}},
        {"data": None, "errors": [{"message": "no", "path": ["supSearchMpn"], "extensions": {"code": "OTHER"}}]},
    ]
    lines = [{"request": {"query": query}} for query in queries]
    stored = [{**line, "url": "/graphql", "body": body} for line, body in zip(lines, answers, strict=True)]
    (tmp_path / "old.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in stored))
    found, result = await compare(lines=lines, baseline="old.jsonl")
    assert found.code == 1, found
    kinds = {(group["kind"], group["path"]) for group in result["groups"]}
    assert {("value", "data.supSearchMpn.hits"), ("order", "data")} <= kinds
    assert any(path.startswith("errors[*]") for _, path in kinds)
    assert all(group["counts"] for group in result["groups"])


async def test_wrapper_is_compared_as_v3_is(compare: Any, tmp_path: Path) -> None:
    found, result = await compare(lines=[{"url": WRAPPER}])
    assert (found.code, result["failures"][0]["reason"]) == (
        2, "the baseline serves v3 requests and GraphQL documents only",
    )  # fmt: skip
    part = {"uid": "5ec397c9af088104", "mpn": "ANOTHER"}
    stored = {"url": WRAPPER, "body": {"request": {}, "results": [{"hits": 1, "items": [part]}]}}
    (tmp_path / "old.jsonl").write_text(f"{json.dumps(stored)}\n")
    found, result = await compare(lines=[{"url": WRAPPER}], baseline="old.jsonl")
    assert found.code == 1, found
    assert ("value", "results[*].items[*].mpn") in {(group["kind"], group["path"]) for group in result["groups"]}


async def test_mutation_is_sent_to_nobody(compare: Any) -> None:
    mutation = {"query": "mutation { desCreateWorkspace { id } }"}
    found, result = await compare(lines=[LINES[2], mutation])
    assert [each["reason"] for each in result["failures"]] == ["the baseline is asked for queries only"], found


async def test_parts_of_both_sides_are_said_before(run_command: Any, tmp_path: Path) -> None:
    """The plan, and the question, come before anything is sent: there is no such upstream."""
    own = CONFIG.replace("sandbox", "{graphql_url: 'http://127.0.0.1:9/graphql', token_url: 'http://127.0.0.1:9/t'}")
    credentials = 'client_id: "id", client_secret: "secret-of-nine"'
    (tmp_path / "own.yaml").write_text(own.replace("features: all", f"features: all, {credentials}, parts: 100"))
    (tmp_path / "requests.jsonl").write_text(json.dumps(LINES[0]))
    sides = ("compare", "--baseline", "upstream", "--config", "own.yaml", "--requests", "requests.jsonl")
    found = await run_command(*sides)
    assert found.code == 2, found
    assert "8 parts at most" in found.err
    assert "a document is paid for twice" in found.err
    within = await run_command(*sides, "--budget", "7")
    assert "1 request was left out" in within.out + within.err
    failed = await run_command(*sides, "--budget", "8")
    assert "the baseline cannot be asked" in failed.out
