"""Tests of `compare --generate`: what it sends, what that costs, and what it reports."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import cases

SELLER = {"__class__": "Seller", "uid": "2c3be9310496fffc", "name": "Arrow", "id": "1106"}
BRAND = {"__class__": "Brand", "uid": "2239e3330e2df5fe", "name": "Texas Instruments"}
KEY = "a-key-that-is-nowhere"
CONFIG = """
upstream: sandbox
store: "memory:"
applications: {demo: {apikeys: ["EXAMPLE_KEY"]}}
"""


def answering(mpn: str) -> Any:
    """Every request finds one part of this number."""
    part = {
        "__class__": "Part",
        "uid": "bd4d768f82c5628a",
        "mpn": mpn,
        "brand": BRAND,
        "offers": [{"sku": "296-1", "seller": SELLER}],
    }
    return lambda _: {"hits": 1, "results": [{"item": part, "snippet": None}]}


@pytest.fixture
def differing(services: Any) -> Any:
    services.baseline.answer, services.candidate.answer = answering("SN74S74N"), answering("SN74S74X")
    return services


async def test_differences_are_shrunk_within_the_budget(differing: Any, run_command: Any, tmp_path: Path) -> None:
    options = ("--generate", 30, "--seed", 3, "--candidate-key", "env:KEY", "--baseline-key", "env:KEY", "--budget")
    found = await run_command("compare", *differing.sides, *options, 400, "--json", "result.json", KEY=KEY)
    assert found.code == 1, found
    text = (tmp_path / "result.json").read_text("utf-8")
    result = json.loads(text)
    assert sum(row["requests"] for row in result["rows"]) == 30
    assert "differences that are found are shrunk, for at most" in found.err
    assert result["cost"]["spent"] == 2 * len(differing.candidate.requests) <= 400
    assert len(differing.candidate.requests) > 30
    [group] = (each for each in result["groups"] if each["endpoint"] == "/parts/search")
    [sample] = group["samples"]
    assert (sample["request"], group["path"]) == ("/parts/search", "results[*].item.mpn")
    assert sample["origin"].endswith("to 0")
    assert sample["candidate_curl"] == f'curl -g {differing.candidate_url}/v3/parts/search"?apikey=$APIKEY"'
    assert sample["candidate_curl"] in found.out
    assert KEY not in text + found.out + found.err


async def test_same_seed_sends_the_same_requests(differing: Any, run_command: Any, tmp_path: Path) -> None:
    sent = []
    for seed in (1, 1, 2):
        differing.candidate.requests.clear()
        options = ("--generate", 20, "--seed", seed, "--yes", "--fresh", "--candidate-concurrency", 1)
        await run_command("compare", *differing.sides, *options, "--baseline-concurrency", 1, "--json", "result.json")
        sent.append(list(differing.candidate.requests))
    assert sent[0] == sent[1] != sent[2]


async def test_parts_need_a_budget_that_has_room_for_shrinking(differing: Any, run_command: Any) -> None:
    found = await run_command("compare", *differing.sides, "--generate", 10)
    assert found.code == 2
    assert "set a limit with --budget" in " ".join(found.err.replace("│", " ").split())
    assert differing.candidate.requests == []


async def test_parts_list_says_which_parts_the_requests_are_about(
    differing: Any, run_command: Any, tmp_path: Path
) -> None:
    (tmp_path / "bom.csv").write_text("MPN,Manufacturer\nSN74S74N,Texas Instruments\n")
    options = ("--generate", 10, "--bom", "bom.csv", "--yes", "--markdown", "report.md")
    found = await run_command("compare", *differing.sides, *options)
    assert found.code == 1, found
    assert "generated requests, seed 1, for bom.csv" in (tmp_path / "report.md").read_text("utf-8")
    assert "generated for 1 part, 1 brand, 1 seller, 0 categories of the baseline" in found.err


@cases.parametrize("options, reason")
async def test_options_that_contradict_each_other_are_refused(run_command: Any, options: Any, reason: str) -> None:
    found = await run_command("compare", "--candidate", "http://127.0.0.1:9", *options)
    assert found.code == 2
    assert reason in " ".join(found.err.replace("'", "").replace("│", " ").split())


async def test_baseline_without_parts_is_an_error(services: Any, run_command: Any) -> None:
    found = await run_command("compare", *services.sides, "--generate", 5, "--yes")
    assert found.code == 2
    assert "there is no part to generate requests for: the baseline" in found.err


async def test_sandbox_has_no_unexplained_difference(run_command: Any, tmp_path: Path) -> None:
    """Requests by uids that v3bridge does not know differ: they are named."""
    (tmp_path / "own.yaml").write_text(CONFIG)
    options = ("--baseline", "sandbox", "--config", "own.yaml", "--generate", 60, "--json", "result.json")
    found = await run_command("compare", *options)
    assert found.code in (0, 1), found
    result = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert sum(row["requests"] for row in result["rows"]) == 60
    assert [group for group in result["groups"] if group["cause"] == "unexplained" and group["counts"]] == []
    assert any(note.startswith("never exercised, fields without a value") for note in result["notes"])
    curls = {sample["candidate_curl"] for group in result["groups"] for sample in group["samples"]}
    assert all(curl.startswith("curl -g ") and "apikey=$APIKEY" in curl for curl in curls)
