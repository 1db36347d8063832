"""Tests of recording, and of replaying a recording through the current mappings."""

import json
import re
from pathlib import Path
from typing import Any

from aiohttp import web

from proxy.traffic.recording import line_files

CONFIG = """
upstream: sandbox
store: "memory:"
applications: {demo: {apikeys: ["EXAMPLE_KEY"]}}
"""
TARGETS = """/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{"mpn":"SN74S74N"}]
/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{"mpn":"LM317"},{"mpn":"NE555P"}]&include[]=specs
/v3/brands/search?apikey=EXAMPLE_KEY&q=texas
/v3/parts/search?apikey=EXAMPLE_KEY&q=capacitor&limit=5
"""


async def test_replay_verifies_a_changed_mapping_without_cost(
    run_command: Any, tmp_path: Path, program_copy: Any
) -> None:
    folder, change = program_copy
    (tmp_path / "own.yaml").write_text(CONFIG)
    (tmp_path / "urls.txt").write_text(TARGETS)
    found = await run_command(
        *("compare", "--baseline", "sandbox", "--config", "own.yaml", "--requests", "urls.txt", "--record", "rec.zst")
    )
    assert found.code == 0, found
    replay = ("compare", "--replay", "rec.zst", "--config", "own.yaml", "--json", "r.json")

    async def replayed() -> Any:
        made = await run_command(*replay, PYTHONPATH=str(folder))
        return made, json.loads((tmp_path / "r.json").read_text())

    found, result = await replayed()
    assert found.code == 0, found
    assert result["cost"]["spent"] == 0
    assert sum(row["requests"] for row in result["rows"]) == 4
    assert "free of charge" in found.err

    change("mappings/part.yaml", "    mpn: mpn\n", "    mpn: v3uid\n")
    found, result = await replayed()
    assert found.code == 1, found
    assert {group["path"].rpartition(".")[2] for group in result["groups"] if group["counts"]} == {"mpn"}
    assert result["cost"]["spent"] == 0

    change("mappings/part.yaml", "    mpn: v3uid\n", "    mpn: shortDescription\n")
    found, result = await replayed()
    assert found.code == 2, found
    assert sum(each["requests"] for each in result["failures"]) == 3  # all that ask for parts
    for failure in result["failures"]:
        assert "the mappings ask for more than was recorded (" in failure["reason"]
        assert ".shortDescription): record again" in failure["reason"]


async def test_replay_is_compared_with_a_response_file(run_command: Any, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(CONFIG)
    (tmp_path / "urls.txt").write_text(TARGETS)
    found = await run_command("record", "--config", "own.yaml", "--requests", "urls.txt", "--output", "r.zst")
    assert found.code == 0, found
    baseline = {"url": "/v3/brands/search?q=texas", "body": {"hits": "many"}}
    (tmp_path / "old.jsonl").write_text(json.dumps(baseline) + "\n")
    found = await run_command(
        "compare", "--replay", "r.zst", "--config", "own.yaml", "--baseline", "old.jsonl", "--json", "r.json"
    )
    result = json.loads((tmp_path / "r.json").read_text())
    assert found.code == 1, found
    assert any(sample["baseline"] == '"many"' for group in result["groups"] for sample in group["samples"])


async def test_replay_needs_no_credentials(run_command: Any, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(CONFIG)
    (tmp_path / "urls.txt").write_text(TARGETS)
    found = await run_command(
        "record", "--config", "own.yaml", "--baseline", "sandbox", "--requests", "urls.txt", "--output", "r.zst"
    )
    assert found.code == 0, found
    (tmp_path / "real.yaml").write_text(
        """
upstream: {graphql_url: "https://api.example/graphql", token_url: "https://id.example/token"}
store: env:STORE_THAT_IS_NOT_THERE
applications:
  shop: {client_id: env:NOT_SET_ID, client_secret: env:NOT_SET_SECRET, apikeys: ["another"], parts: 0}
"""
    )
    found = await run_command("compare", "--replay", "r.zst", "--config", "real.yaml")
    assert found.code == 0, found


async def test_baseline_only_recording_is_free_and_resumes(
    run_command: Any, services: Any, make_request_file: Any, tmp_path: Path
) -> None:
    services.baseline.answer = lambda q: (
        {"hits": 1} if len(services.baseline.requests) <= 5 else web.Response(status=502)
    )
    command = (
        "record",
        "--baseline",
        services.baseline_url,
        "--baseline-rate",
        "0",
        "--requests",
        make_request_file(30),
        "--output",
        "rec.zst",
    )
    found = await run_command(*command)
    assert found.code == 2, found
    assert "10 times in a row" in found.err
    services.baseline.answer = lambda q: {"hits": len(q)}
    services.baseline.requests.clear()
    found = await run_command(*command)
    assert found.code == 0, found
    assert "resuming: 5 requests were recorded before" in found.err
    assert len(services.baseline.requests) == 25
    assert services.candidate.requests == []
    found = await run_command(
        "compare", "--baseline", "rec.zst", "--candidate", services.candidate_url, "--yes", "--json", "r.json"
    )
    assert sum(row["requests"] for row in json.loads((tmp_path / "r.json").read_text())["rows"]) == 30, found


async def test_recording_without_upstream_responses_cannot_be_replayed(
    run_command: Any, services: Any, make_request_file: Any
) -> None:
    await run_command(
        "record",
        "--baseline",
        services.baseline_url,
        "--baseline-rate",
        "0",
        "--requests",
        make_request_file(2),
        "--output",
        "rec.zst",
    )
    found = await run_command("compare", "--replay", "rec.zst")
    assert found.code == 2
    assert "holds no responses of the GraphQL service" in " ".join(found.err.split())


LINK_OF_NEIGHBOR = """
def link_of_neighbor(own: str, offers: list[Any]) -> str:
    links = [each.clickUrl for each in offers]
    return links[links.index(own) - 1]


TRANSFORMS: dict["""


async def test_swapped_click_links_are_found_with_the_graphql_responses(
    run_command: Any, tmp_path: Path, program_copy: Any
) -> None:
    folder, change = program_copy
    (tmp_path / "own.yaml").write_text(CONFIG)
    (tmp_path / "urls.txt").write_text("/v3/parts/search?apikey=EXAMPLE_KEY&q=capacitor&limit=20\n")
    live = ("compare", "--baseline", "sandbox", "--config", "own.yaml", "--requests", "urls.txt", "--fresh")
    found = await run_command(*live, "--record", "rec.zst")
    assert found.code == 0, found
    change("proxy/mapping/transforms.py", "\nTRANSFORMS: dict[", LINK_OF_NEIGHBOR)
    change("proxy/mapping/transforms.py", "        first_click,\n", "        first_click,\n        link_of_neighbor,\n")
    change(
        "mappings/offer.yaml",
        "product_url: {from: clickUrl,",
        'product_url: {from: [clickUrl, "^offers{clickUrl}"], through: link_of_neighbor,',
    )
    for arguments in (live, ("compare", "--replay", "rec.zst", "--config", "own.yaml")):
        found = await run_command(*arguments, "--json", "r.json", PYTHONPATH=str(folder))
        assert found.code == 1, found
        result = json.loads((tmp_path / "r.json").read_text())
        paths = {group["path"] for group in result["groups"] if group["counts"]}
        assert paths == {"results[*].item.offers[*].product_url"}


async def test_replay_looks_up_computed_uids_in_the_recording(
    run_command: Any, tmp_path: Path, program_copy: Any
) -> None:
    folder, change = program_copy
    (tmp_path / "own.yaml").write_text(CONFIG)
    (tmp_path / "urls.txt").write_text("/v3/parts/search?apikey=EXAMPLE_KEY&limit=40\n")
    found = await run_command(
        *("compare", "--baseline", "sandbox", "--config", "own.yaml", "--requests", "urls.txt", "--record", "rec.zst")
    )
    assert found.code == 0, found
    recording = b"".join(line_files.WholeLines(tmp_path / "rec.zst")).decode()
    one, other = sorted(set(re.findall(r"/brands/b4a2d0([0-9a-f]{10})", recording)))[:2]
    replay = ("compare", "--replay", "rec.zst", "--config", "own.yaml", "--json", "r.json")
    found = await run_command(*replay)
    assert found.code == 0, found
    assert json.loads((tmp_path / "r.json").read_text())["failures"] == []

    wrong = {str(int(one, 16)): str(int(other, 16))}
    change(
        "proxy/mapping/tables.py",
        '"brand_uid": self.uids["Brand"].uid,',
        f'"brand_uid": lambda id_, name: self.uids["Brand"].uid({wrong}.get(id_, id_), name),',
    )
    found = await run_command(*replay, PYTHONPATH=str(folder))
    assert found.code == 1, found
    result = json.loads((tmp_path / "r.json").read_text())
    paths = {group["path"] for group in result["groups"] if group["counts"]}
    assert (paths, result["failures"]) == ({"results[*].item.brand.uid"}, [])
